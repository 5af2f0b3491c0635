//! Who did what.

use atlas_service::catalogue::NOT_CONFIGURED;

use super::super::{Content, Kind, Operation};
use super::parts::{READ, get, ok, query, word};

pub(super) const OPERATIONS: &[Operation] = &[get(
    "readAudit",
    "/api/audit",
    "Records of who did what through this controller, and of who was denied it, oldest first.",
)
.takes(&[
    query("after", Kind::Whole, "only records after this number"),
    query("limit", Kind::Whole, "maximum number, 1 to 1000; defaults to 100"),
    query("principal", Kind::Text, "only those of this principal"),
    query("verb", Kind::Text, "only those of this operation"),
    query("object", Kind::Text, "only those about objects that begin with this, such as `agent/`"),
    query("namespace", Kind::Text, "only those in this namespace"),
    word("decision", &["allow", "failed", "deny", "dropped"], "only those with this decision"),
    query("since", Kind::Number, "not before this time, Unix seconds"),
    query("until", Kind::Number, "before this time, Unix seconds"),
])
.answers(&[ok("the records, and where the next page begins", &[Content::Json("AuditPage")])])
.refuses(&[READ, &[NOT_CONFIGURED]])];
