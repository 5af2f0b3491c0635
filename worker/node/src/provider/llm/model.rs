//! Calls of the model of one attempt.

use std::sync::Arc;
use std::time::Duration;

use atlas_llm::Event;
use atlas_llm::scripted::Script;
use atlas_model::{Answer, CallError, CallErrorKind, Delta, Request};

use super::fault::Fault;
use super::fixed::Source;
use crate::agent::Agent;
use crate::slot::Control;

/// Tries of one call of a script, as a client of a provider would make.
const SCRIPT_TRIES_MAX: u32 = 3;

/// The pause after an error of a script that says nothing about pauses.
const SCRIPT_PAUSE: Duration = Duration::from_millis(100);

/// Where calls go.
pub(super) enum Backend {
    /// The rules of the agent's `mock.yaml`.
    Script(Arc<Script>),
}

impl Backend {
    pub(super) fn open(source: Source, agent: &Agent) -> Result<Self, Fault> {
        match source {
            Source::Mock => match &agent.mock {
                Some(Ok(script)) => Ok(Self::Script(Arc::clone(script))),
                Some(Err(why)) => Err(Fault::NoModel(format!("mock.yaml: {why}"))),
                None => Err(Fault::NoModel("the job began with mock.yaml, which the agent does not have".to_owned())),
            },
            Source::Environment(_) => Err(Fault::NoModel("this worker calls no providers over the network".to_owned())),
        }
    }

    /// Makes a call. Pieces of the answer go to those who follow the job.
    pub(super) async fn call(&self, request: &Request, step: u32, control: &Control<'_>) -> Result<Answer, CallError> {
        match self {
            Self::Script(script) => scripted(script, request, step, control).await,
        }
    }
}

async fn scripted(script: &Script, request: &Request, step: u32, control: &Control<'_>) -> Result<Answer, CallError> {
    let mut tries = 0;
    loop {
        let reply = script.call(request, tries);
        control.env.clock.sleep(reply.delay).await;
        tries += 1;
        match reply.result {
            Err(error) if error.kind.is_transient() && tries < SCRIPT_TRIES_MAX => {
                control.env.clock.sleep(error.retry_after.unwrap_or(SCRIPT_PAUSE)).await;
            }
            Err(error) => return Err(error),
            Ok(events) => {
                for event in events {
                    match event {
                        Event::Delta(Delta::Text(text)) => control.delta((step, tries), text).await,
                        Event::Delta(_) => {}
                        Event::Answer(answer) => return Ok(*answer),
                    }
                }
                return Err(CallError::new(CallErrorKind::Answer, "the script has no answer"));
            }
        }
    }
}
