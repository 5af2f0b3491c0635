//! Calls of the model of one attempt: where they go, and what followers and the job's log see of them.

use std::sync::Arc;
use std::time::Duration;

use atlas_llm::client::{Backend, Client, Done, Http, Progress, Proxy, Target};
use atlas_llm::scripted::MODEL;
use atlas_model::{Answer, CallError, Delta, Request, Retry};
use atlas_types::StreamKind;
use tokio::sync::mpsc;

use super::environment::Chosen;
use super::fault::Fault;
use super::fixed::Source;
use crate::agent::Agent;
use crate::slot::{Control, Shared};

/// Longest time of one try of a call, and between two pieces of its answer.
const TRY_TIMEOUT: Duration = Duration::from_secs(300);
const PIECE_TIMEOUT: Duration = Duration::from_secs(120);

/// The models that a job may call, in the order in which they are tried.
pub(super) struct Models {
    client: Client,
    targets: Vec<Target>,
    /// Longest time of one call. The job's own time limit ends it earlier.
    limit: Duration,
}

/// What happened during a call.
enum News {
    Delta { try_number: u32, text: String },
    Log { level: &'static str, text: String },
}

impl Models {
    pub(super) fn open(source: Source, model: &str, agent: &Agent, shared: &Shared) -> Result<Self, Fault> {
        let target = match source {
            Source::Mock => mock(agent)?,
            Source::Environment(chosen) => environment(chosen, model, shared)?,
        };
        let limit = target.deadline;
        Ok(Self { client: shared.models.clone(), targets: vec![target], limit })
    }

    /// Makes a call. Pieces of the answer go to those who follow the job, failed tries into its log.
    pub(super) async fn call(
        &self,
        request: &Request,
        step: u32,
        control: &mut Control<'_>,
    ) -> Result<Answer, CallError> {
        // The client's callback cannot wait. What it leaves here is bounded by the size of an answer.
        let (sender, mut receiver) = mpsc::unbounded_channel();
        let mut tries = 0;
        let mut watch = |progress: Progress<'_>| {
            if let Some(news) = news(progress, &mut tries) {
                // The receiver lives until the call has ended.
                let _ = sender.send(news);
            }
        };
        let call = self.client.call(&self.targets, request, self.limit, &mut watch);
        tokio::pin!(call);
        let end = loop {
            tokio::select! {
                biased;
                Some(news) = receiver.recv() => tell(control, step, news).await,
                end = &mut call => break end,
            }
        };
        while let Ok(news) = receiver.try_recv() {
            tell(control, step, news).await;
        }
        end.map(|Done { answer, .. }| answer).map_err(|failure| failure.error)
    }
}

fn news(progress: Progress<'_>, tries: &mut u32) -> Option<News> {
    match progress {
        Progress::Try { .. } => {
            *tries += 1;
            None
        }
        Progress::Delta(Delta::Text(text)) => Some(News::Delta { try_number: *tries, text }),
        // The number of the next try tells followers that the call starts over.
        Progress::Delta(_) | Progress::Reset => None,
        Progress::Dropped { target, setting } => {
            let text =
                format!("the provider of {} has no setting {setting}; the request goes without it", target.model);
            Some(News::Log { level: "warning", text })
        }
        Progress::Failed { target, error, pause: Some(pause) } => {
            let text = format!("{}: {error}; the next try is in {:.1} s", target.model, pause.as_secs_f64());
            Some(News::Log { level: "warning", text })
        }
        // The job fails with this error, or the next model is called.
        Progress::Failed { .. } => None,
    }
}

async fn tell(control: &mut Control<'_>, step: u32, news: News) {
    match news {
        News::Delta { try_number, text } => control.delta((step, try_number), text).await,
        News::Log { level, text } => control.say(StreamKind::Log, level, text).await,
    }
}

fn mock(agent: &Agent) -> Result<Target, Fault> {
    match &agent.mock {
        Some(Ok(script)) => Ok(target(MODEL, Backend::Scripted(Arc::clone(script)))),
        Some(Err(why)) => Err(Fault::NoModel(format!("mock.yaml: {why}"))),
        None => Err(Fault::NoModel("the job began with a mock.yaml, which the agent does not have".to_owned())),
    }
}

fn environment(chosen: Chosen, model: &str, shared: &Shared) -> Result<Target, Fault> {
    let variables = &shared.settings.models;
    let Some((protocol, endpoint)) = variables.reach(chosen) else {
        let text =
            format!("the job began with a model of {chosen:?}, and the environment of this worker has no key for it");
        return Err(Fault::NoModel(text));
    };
    let proxy = Proxy::choose(None, &|name| variables.get(name), &endpoint.base_url);
    let proxy = proxy.map_err(|error| Fault::NoModel(error.to_string()))?;
    let http = Http {
        protocol,
        endpoint,
        patches: Vec::new(),
        proxy,
        // The operator of the worker has chosen the address.
        plain: true,
        read_timeout: PIECE_TIMEOUT,
    };
    Ok(target(model, Backend::Http(Box::new(http))))
}

fn target(model: &str, backend: Backend) -> Target {
    let Retry { attempts, deadline_seconds } = Retry::default();
    Target {
        name: model.to_owned(),
        model: model.to_owned(),
        backend,
        stream: true,
        timeout: TRY_TIMEOUT,
        attempts,
        deadline: Duration::from_secs(deadline_seconds.into()),
        context_window: None,
    }
}
