//! Who did what.

use atlas_access::Right;

use super::operation::{Content, Kind, Operation};
use super::parts::{READ, get, in_cluster, ok, query, word};
use crate::catalogue::{NOT_CONFIGURED, UNKNOWN_MEMBER};
use crate::types::AuditPage;

operation_ids! {
    /// Who did what.
    Audit {
        ReadAudit = "readAudit",
    }
}

pub(super) const OPERATIONS: &[Operation] = &[get(
    Audit::ReadAudit.id(),
    in_cluster(Right::AuditRead),
    "/api/audit",
    "Records of who did what, and of who was denied it, oldest first. Each controller has those of its own doors; the answer has those of all, and names controllers that did not answer.",
)
.takes(&[
    query("cursor", Kind::Text, "continues where the answer with this cursor ended; `end` is after the newest record of each controller"),
    query("member", Kind::Text, "only those of this controller, by name or number"),
    query("limit", Kind::Whole, "maximum number, 1 to 1000; defaults to 100"),
    query("principal", Kind::Text, "only those of this principal"),
    query("verb", Kind::Text, "only those of this operation"),
    query("object", Kind::Text, "only those about objects that begin with this, such as `agent/`"),
    query("namespace", Kind::Text, "only those in this namespace"),
    word("decision", &["allow", "failed", "deny", "dropped"], "only those with this decision"),
    query("since", Kind::Number, "not before this time, Unix seconds"),
    query("until", Kind::Number, "before this time, Unix seconds"),
])
.answers(&[ok("the records, and where the next page begins", &[Content::json::<AuditPage>()])])
.refuses(&[READ, &[NOT_CONFIGURED, UNKNOWN_MEMBER]])];
