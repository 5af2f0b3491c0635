//! What policies decide.

use atlas_access::Right;

use super::operation::{Body, Content, Operation};
use super::parts::{BODY, READ, STORED, in_namespace, ok, post};
use crate::catalogue::UNKNOWN_AGENT;
use crate::types::{PolicyAnswer, PolicyQuestion};

operation_ids! {
    /// What policies decide.
    Policies {
        ExplainPolicies = "explainPolicies",
    }
}

pub(super) const OPERATIONS: &[Operation] = &[post(
    Policies::ExplainPolicies.id(),
    in_namespace(Right::AgentsRead),
    "/api/policies/explain",
    "What policies would decide if the caller deployed a registered agent, or submitted a job for it. Nothing is changed.",
)
.body(Body::json::<PolicyQuestion>())
.answers(&[ok("what each policy decides, and the permissions that they leave the agent", &[Content::json::<PolicyAnswer>()])])
.refuses(&[READ, BODY, STORED, &[UNKNOWN_AGENT]])];
