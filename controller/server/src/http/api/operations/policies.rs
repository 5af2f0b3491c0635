//! What policies decide.

use atlas_service::catalogue::UNKNOWN_AGENT;

use super::super::{Body, Content, Operation};
use super::parts::{BODY, READ, STORED, ok, post};

pub(super) const OPERATIONS: &[Operation] = &[post(
    "explainPolicies",
    "/api/policies/explain",
    "What policies would decide if the caller deployed a registered agent, or submitted a job for it. Nothing is changed.",
)
.body(Body::Json("PolicyQuestion"))
.answers(&[ok("what each policy decides, and the permissions that they leave the agent", &[Content::Json("PolicyAnswer")])])
.refuses(&[READ, BODY, STORED, &[UNKNOWN_AGENT]])];
