//! Agents in a language with a host program of ours: one host process per slot, framed JSON over two separate pipes.
//!
//! The agent's stdout and stderr become log lines. The host flushes both before it answers, so that the
//! lines of an attempt are in the pipes when its answer arrives.

mod calls;
mod frame;
mod leave;
mod printed;
mod process;

use std::ffi::OsString;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use atlas_env::Env;
use atlas_types::FailureKind;
use serde_json::json;
use serde_json::value::RawValue;

use self::calls::Calls;
use self::frame::Kind;
use self::process::{Host, HostError};
use super::durable::{Called, Durable};
use super::io_loop::Wait;
use super::llm::fault::Fault;
use super::program_model::{offered, told_of};
use super::{Execution, Settings, StartError, explained, seconds, stopped};
use crate::attempt::Work;
use crate::cgroup::Breach;
use crate::process::Tree;
use crate::provider::{Control, Shared};

/// A host process with its agent.
pub(crate) struct HostProgram {
    host: Host,
    /// The processes that the agent keeps for its next job, as it said with its latest answer.
    keeps: Vec<i32>,
    settings: Arc<Settings>,
    shared: Shared,
}

/// Why there is no answer.
enum Silence {
    TimedOut,
    Stopped,
    /// The host was not started, because it could not be confined.
    Unconfined(String),
    /// The job was parked. The host is still in it.
    Parked,
    /// A durable program cannot go on. The same.
    Fault(Fault),
    /// The host ended or violated the protocol.
    Broken(String),
}

/// How a host is started.
pub(super) struct HostStart {
    /// What runs it, as in `could not start Python`.
    pub(super) language: &'static str,
    pub(super) program: OsString,
    /// The descriptors from which it reads and to which it writes come after these.
    pub(super) arguments: Vec<OsString>,
    /// Variables besides those of the attempt.
    pub(super) environment: Vec<(OsString, OsString)>,
    /// Folders that it reads besides the package.
    pub(super) own: Vec<PathBuf>,
}

/// Finds out how the host of an attempt is started. The error says what the node lacks.
pub(super) type FindHost = fn(&Work, &Settings) -> Result<HostStart, String>;

impl HostProgram {
    pub(super) async fn start(
        find: FindHost,
        work: &Arc<Work>,
        shared: &Shared,
        control: &mut Control<'_>,
    ) -> Result<Self, StartError> {
        let settings = Arc::clone(&shared.settings);
        let contract = &work.agent.contract;
        let agent = || contract.name.to_string();
        let (job, supervisor, chosen) = (Arc::clone(work), Arc::clone(&shared.supervisor), Arc::clone(&settings));
        // Runs on a blocking thread, because finding the interpreter and forking would delay other tasks of the
        // runtime.
        let start = move || {
            let found = find(&job, &chosen).map_err(HostError::Lacks)?;
            Host::spawn(found, &job, &supervisor, &chosen)
        };
        let host = shared.env.spawn_blocking("start host", start).join().await;
        let host = host.unwrap_or_else(|_| Err(HostError::Spawn(io::ErrorKind::Interrupted.into())));
        let host = host.map_err(|error| match error {
            HostError::Lacks(why) => StartError::NodeLacks(why),
            HostError::Spawn(source) => StartError::Spawn { agent: agent(), source },
            HostError::Unconfined(unconfined) => StartError::Unconfined(unconfined.to_string()),
        })?;
        let mut program = Self { host, keeps: Vec::new(), settings, shared: shared.clone() };
        let directory = program.host.directory.display().to_string();
        let model = offered(work, shared);
        program.host.send(&json!({
            "type": "start",
            "contract": contract.to_json(),
            "directory": directory,
            "model": model.as_ref().ok(),
            "no_model": model.as_ref().err(),
        }));
        // The contract's timeout applies. Without one, the cluster's limit applies, or the worker's if it is shorter.
        let granted = work.assignment.startup_timeout;
        let own = program.settings.warmup_timeout.filter(|_| contract.startup_timeout.is_none());
        let limit = own.map_or(granted, |own| own.min(granted));
        let mut wait = Wait::until(control.now() + limit.as_duration());
        let mut calls = Calls::new(work, shared);
        let answer = program.host.answer(&mut wait, control, &mut calls, program.settings.output_bytes_max).await;
        let frame = match answer {
            Ok(frame) => frame,
            Err(Silence::TimedOut) => return Err(StartError::TimedOut { agent: agent(), limit: seconds(limit) }),
            Err(Silence::Stopped | Silence::Parked) => return Err(StartError::Stopped),
            Err(Silence::Fault(fault)) => return Err(StartError::Raised(fault.to_string())),
            Err(Silence::Unconfined(why)) => return Err(StartError::Unconfined(why)),
            Err(Silence::Broken(why)) => {
                return Err(match program.host.tree.breach() {
                    Some(Breach { code, text, .. }) => StartError::Exceeded { code, text: explained(&why, &text) },
                    None => StartError::Raised(why),
                });
            }
        };
        match frame.kind {
            Kind::Ready => {
                program.host.tree.settle();
                Ok(program)
            }
            Kind::Failed if frame.stage == "load" => {
                Err(StartError::NoImplementation { agent: agent(), why: frame.error })
            }
            Kind::Failed if frame.stage == "import" => Err(StartError::Import(frame.error)),
            _ => Err(StartError::Raised(frame.error)),
        }
    }

    pub(super) async fn execute(&mut self, work: &Arc<Work>, control: &mut Control<'_>) -> Execution {
        let limit = work.assignment.execution_timeout;
        let wait = Wait::until(control.now() + limit.as_duration());
        let mut calls = Calls::new(work, &self.shared);
        if work.agent.contract.durable {
            let (mailbox, env) = (control.mailbox, control.env);
            let opened = tokio::select! {
                biased;
                () = stopped(mailbox) => return Execution::stopped(),
                () = env.clock.sleep(limit.as_duration()) => return Execution::timed_out(limit),
                opened = Durable::open(work, &self.shared, control) => opened,
            };
            match opened {
                Ok(durable) => calls.durable = Some(durable),
                Err(fault) => return Execution::fault(&fault).usable_if(true),
            }
        }
        let (model, durable) = (offered(work, &self.shared), calls.durable.as_ref());
        let beginning = durable.map(Durable::beginning).unwrap_or_default();
        self.host.run(work, (&model, beginning.as_str()), &control.secrets, control.env);
        let mut wait = if calls.durable.is_some() { wait.or_park() } else { wait };
        let answer = self.host.answer(&mut wait, control, &mut calls, self.settings.output_bytes_max).await;
        calls.finish(control).await;
        let mut frame = match answer {
            Ok(frame) => frame,
            Err(Silence::TimedOut) => return Execution::timed_out(limit),
            Err(Silence::Stopped) => return Execution::stopped(),
            Err(Silence::Parked) => {
                let has_left = self.host.leave(control, None, self.settings.output_bytes_max).await;
                return Execution::stopped().usable_if(has_left);
            }
            Err(Silence::Fault(fault)) => {
                let call = calls.durable.as_ref().and_then(Durable::a_call);
                let stop = call.map(|call| Called::stop(call, told_of(&fault)));
                let has_left = self.host.leave(control, stop, self.settings.output_bytes_max).await;
                let measured = calls.measured();
                return Execution::fault(&fault).also_measured(measured).usable_if(has_left);
            }
            // Told by the first answer, which is that to the start.
            Err(Silence::Unconfined(why)) => return Execution::unconfined(why),
            Err(Silence::Broken(why)) => return Execution::failed(FailureKind::Agent, why),
        };
        self.keeps = std::mem::take(&mut frame.keeps);
        frame.execution_metadata.extend(calls.measured());
        let usable = !wait.stopping() && !self.host.strayed;
        let left_out = calls.durable.as_mut().and_then(|durable| durable.left_out(frame.claimed));
        let left_out = left_out.filter(|_| frame.kind == Kind::Result);
        if let Some(text) = left_out
            && let Some(failed) = Execution::left_out(work, text, control).await
        {
            return failed.also_measured(frame.execution_metadata).usable_if(usable);
        }
        match frame.kind {
            Kind::Result => Execution::Output {
                // An agent that returns nothing returns null.
                output: frame.output.unwrap_or_else(|| RawValue::NULL.to_owned()),
                metadata: frame.execution_metadata,
                usable,
            },
            _ => match Execution::failed(FailureKind::Agent, frame.error) {
                Execution::Failed { failure, usable, .. } => {
                    Execution::Failed { failure, metadata: frame.execution_metadata, usable }
                }
                other => other,
            },
        }
    }

    /// The processes that the agent keeps for its next job.
    pub(super) fn keeps(&self) -> &[i32] {
        &self.keeps
    }

    pub(super) fn tree(&self) -> &Tree {
        &self.host.tree
    }

    pub(super) fn tree_mut(&mut self) -> &mut Tree {
        &mut self.host.tree
    }

    pub(super) async fn stop(&mut self, env: &Env) {
        let patience = self.settings.shutdown_timeout;
        self.host.stop(env, patience).await;
    }
}
