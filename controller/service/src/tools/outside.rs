//! The tools of the platform for clients outside of jobs: those of the MCP server that is compatible with Atlas for Python.

use std::time::Duration;

use atlas_contract::platform;
use atlas_types::{AgentName, JobId, JobStatus};
use bytes::Bytes;
use serde_json::{Map, Value, json};
use tokio::sync::watch;

use super::{Call, NoResult};
use crate::{Caller, Consistency, Error, Service, Shown, Submission, View};

/// What `atlas.exec.spawn`, `status` and `cancel` answer without a pool.
const NO_POOL: &str = "Pool is not running \u{2014} exec tools require a live pool (use 'atlas serve')";

/// The longest wait for the end of a job.
const WAIT_MAX: Duration = Duration::from_secs(3_600);

/// Says when a client does not want the result of its call any more: the job that it started is then cancelled.
#[derive(Debug, Clone)]
pub struct Unwanted(watch::Receiver<bool>);

impl Unwanted {
    /// One that says so once the sender sends `true`.
    pub fn new(said: watch::Receiver<bool>) -> Self {
        Self(said)
    }

    /// One that never does.
    pub fn never() -> Self {
        Self(watch::channel(false).1)
    }

    async fn said(mut self) {
        // Without a sender, nobody says it.
        if self.0.wait_for(|said| *said).await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}

/// A call of a client.
#[derive(Debug)]
pub struct OutsideCall {
    /// The name of the tool, `atlas.…`.
    pub tool: String,
    pub arguments: Map<String, Value>,
    /// Whether jobs can be submitted, asked for and cancelled.
    pub pool: bool,
    pub unwanted: Unwanted,
}

impl Service {
    /// Calls a tool of the platform. The inner error is a text for the client.
    pub async fn platform_tool(&self, caller: &Caller, call: OutsideCall) -> Result<Result<Value, String>, Error> {
        let OutsideCall { tool, arguments, pool, unwanted } = call;
        let needs_pool = ["atlas.exec.spawn", "atlas.exec.status", "atlas.exec.cancel"].contains(&tool.as_str());
        if needs_pool && !pool {
            return Ok(Ok(json!({ "error": NO_POOL })));
        }
        let call = Call { caller: caller.clone(), tool: &tool, arguments, from: None, unwanted };
        match self.dispatch(&call).await {
            Ok(result) => Ok(Ok(result)),
            Err(NoResult::Refused(why)) => Ok(Err(why)),
            Err(NoResult::Error(error)) => Err(error),
        }
    }

    /// Runs an agent and waits for its end. Failures are values.
    pub(super) async fn tool_run(&self, call: &Call<'_>) -> Result<Value, Error> {
        let name = call.text("agent");
        if name.is_empty() {
            return Ok(platform::ran(name, Err("Missing 'agent' parameter".to_owned())));
        }
        let Ok(agent) = AgentName::new(name) else {
            return Ok(platform::ran(name, Err(format!("Agent not found: {name}"))));
        };
        // An agent of another cluster is run by that cluster: two clusters that pass calls on to each other would never end.
        let shown = self.agent(&call.caller, name, None, Consistency::Stale).await;
        if shown.is_ok_and(|shown| !shown.contract.text("/provider/agent").is_empty()) {
            return Ok(platform::ran(name, Err(format!("Agent not found: {name}"))));
        }
        let input = call.arguments.get("input").cloned().unwrap_or_else(|| json!({}));
        let submission = Submission::new(agent, Bytes::from(input.to_string()));
        let ended = self.run_to_end(&call.caller, submission, call.unwanted.clone()).await?;
        Ok(platform::ran(name, ended))
    }

    /// Submits a job and waits for the end of its retry family: its output, or its error.
    pub async fn run_to_end(
        &self,
        caller: &Caller,
        submission: Submission,
        unwanted: Unwanted,
    ) -> Result<Result<Value, String>, Error> {
        let id = self.submit(caller, submission).await?;
        let mut waiting = std::pin::pin!(self.wait_family(caller, id, View::Plain, WAIT_MAX));
        let shown = tokio::select! {
            shown = &mut waiting => shown,
            () = unwanted.said() => {
                // Whoever may not cancel it waits for its end.
                let _ = self.cancel_family(caller, id).await;
                waiting.await
            }
        };
        Ok(ended(&shown?))
    }

    /// Cancels the newest member of a job's retry family. One that fails meanwhile may have a successor.
    async fn cancel_family(&self, caller: &Caller, mut id: JobId) -> Result<(), Error> {
        while !self.cancel(caller, id, true).await? {
            let ended = self.job(caller, id, View::Plain, Consistency::Linearizable).await?;
            match ended.job().successor {
                Some(next) => id = next,
                None => break,
            }
        }
        Ok(())
    }
}

fn ended(shown: &Shown) -> Result<Value, String> {
    let job = shown.job();
    if job.status == JobStatus::Completed {
        return Ok(shown.output().unwrap_or_default());
    }
    let error = job.failure.as_ref().map(|failure| failure.error.to_string()).filter(|error| !error.is_empty());
    Err(error.unwrap_or_else(|| format!("{} is {}", job.id, job.status.as_str())))
}
