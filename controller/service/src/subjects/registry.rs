//! Policies.

use serde_json::Value;

use crate::{Caller, Error, PolicyQuestion, Service};

impl Service {
    /// The permissions that policies leave the agent of a job, and the names of these policies.
    pub async fn policies_of_job(&self, caller: &Caller, text: &str) -> Result<Value, Error> {
        self.shared.registry.policies_of_job(caller, text).await
    }

    /// Which policies would allow or deny an operation of this caller, and why.
    pub async fn explain_policies(&self, caller: &Caller, question: &PolicyQuestion) -> Result<Value, Error> {
        self.shared.registry.explain_policies(caller, question).await
    }
}
