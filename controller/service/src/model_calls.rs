//! Jobs of one model call for a client ([ADR 89](../../../docs/adr/0089-openai-door.md)), and what can be done with the jobs of OpenAI's
//! interface afterwards.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use atlas_desk::{on_behalf, requests};
use atlas_types::{Command, ErasePayloads, Job, JobId, RequestId};
use serde_json::Value;

use crate::probes::{self, Standing};
use crate::{Caller, Error, Service, Submission, SubmittedJob, View};

/// How long the end of a job that is deleted is waited for.
const CANCEL_WAIT: Duration = Duration::from_secs(10);

/// A call to be made.
#[derive(Debug, Clone)]
pub struct ModelCall {
    /// The input of the job: `{"model": NAME, "request": …}`, with what a door adds.
    pub input: Value,
    /// The labels of the job.
    pub labels: BTreeMap<String, String>,
    /// A repeat with the same key finds the job.
    pub request_id: Option<RequestId>,
}

impl Service {
    /// Submits a model call by a job of the cluster's own agent, which is registered where it is missing.
    pub async fn call_model(&self, caller: &Caller, call: ModelCall) -> Result<SubmittedJob, Error> {
        let ModelCall { input, labels, request_id } = call;
        let own = probes::call()?;
        let state = self.shared.current().await?;
        match own.standing(&state, &caller.namespace) {
            Standing::Ready => {}
            Standing::Missing => {
                let cluster = on_behalf::cluster_in(caller.namespace.clone());
                self.register_made(&cluster, own.package.clone()).await?;
            }
            Standing::Foreign => {
                self.shared.needs.is_foreign(&caller.namespace, own);
                return Err(Error::VersionTaken(own.foreign()));
            }
        }
        let submission = Submission { labels: Arc::new(labels), request_id, ..own.submission(&input, 0) };
        self.submit_to_wait(caller, submission).await
    }

    /// Whether a job is such a call.
    pub fn is_model_call(&self, job: &Job) -> bool {
        probes::call().is_ok_and(|own| own.runs(job))
    }

    /// Removes what was said from the record of a job that the caller may control, after cancelling it if it has not ended.
    pub async fn forget_job(&self, caller: &Caller, id: JobId) -> Result<(), Error> {
        self.shared.may_control_job(caller, id).await?;
        // What controls jobs of its own namespace controls no others.
        self.shared.job_in(caller, &self.shared.read().await?, id).await?;
        let caller = caller.clone().with_request_id(None);
        if self.cancel(&caller, id, true).await? {
            let _ = self.wait_family(&caller, id, View::Plain, CANCEL_WAIT).await?;
        }
        let command = Command::ErasePayloads(ErasePayloads { job: Some(id) });
        self.propose(requests::of(&caller, command)).await.map(drop)
    }
}
