//! Jobs that carry the credential of the request that they came from, for the MCP servers that get it.

use atlas_raft::Leadership;
use atlas_state::State;
use atlas_types::{JobId, ObjectKey, ObjectKind, ObjectName, SecretText};
use serde::Deserialize;

use crate::submit::resolve;
use crate::{Caller, Error, Service, Submission};

/// The part of the spec of an MCP server that says whether it gets the credential.
#[derive(Deserialize, Default)]
#[serde(default)]
struct Forwards {
    forward_inbound_auth: bool,
}

impl Service {
    /// Submits a job for a request with a credential. Only a job whose agent names a server that gets it carries it, because such a job
    /// neither parks nor is retried. The credential is held in memory before the job can be granted.
    pub async fn submit_with_bearer(
        &self,
        caller: &Caller,
        submission: Submission,
        bearer: Option<SecretText>,
    ) -> Result<JobId, Error> {
        let Some(bearer) = bearer else { return self.submit(caller, submission).await };
        let state = self.shared.current().await?;
        if !forwards(&state, caller, &submission)? {
            return self.submit(caller, submission).await;
        }
        if !matches!(*self.shared.handle.leadership().borrow(), Leadership::Leader { .. }) {
            // The leader sends the lease, and credentials are not sent between controllers.
            let text = "the agent passes on the credential of its caller, which only the leader can do: send the request to the leader";
            return Err(Error::Malformed(text.to_owned()));
        }
        let (id, now) = (self.draw_id(), self.shared.env.clock.monotonic());
        self.bearers().hold(id, bearer, now).map_err(|error| Error::Malformed(error.to_string()))?;
        let submission = Submission { bearer: true, ..submission };
        let submitted = self.submit_as(caller, &submission, Some(id)).await;
        if !matches!(submitted, Ok(submitted) if submitted == id) {
            self.bearers().forget(id);
        }
        submitted
    }
}

/// Whether the agent of a submission names a server that gets the credential of callers.
fn forwards(state: &State, caller: &Caller, submission: &Submission) -> Result<bool, Error> {
    let Some(agent) = resolve(caller, submission, state)? else { return Ok(false) };
    let Ok(kind) = ObjectKind::new("mcp-server") else { return Ok(false) };
    Ok(agent.spec.servers.iter().any(|server| {
        let Ok(name) = ObjectName::new(server) else { return false };
        let key = ObjectKey { namespace: caller.namespace.clone(), kind: kind.clone(), name };
        let Some(object) = state.object(&key) else { return false };
        serde_json::from_slice::<Forwards>(&object.spec).is_ok_and(|spec| spec.forward_inbound_auth)
    }))
}
