//! Model calls of one attempt: where they go, and what followers and the job's log see of them.

use std::sync::Arc;
use std::time::Duration;

use atlas_env::{Clock, Entropy};
use atlas_http::Proxy;
use atlas_llm::client::{Backend, Client, CompletedCall, Failure, Http, Progress, Target};
use atlas_llm::scripted::MODEL;
use atlas_model::live::{LiveWriter, numbered};
use atlas_model::{Answer, CallError, CallErrorKind, Delta, Purpose, Request, Retry};
use atlas_types::{SecretText, StreamKind};
use tokio::sync::mpsc;

use super::again::{self, Rounds};
use super::fault::Fault;
use super::fixed::Source;
use super::gate;
use super::health::Seen;
use super::outage::{Down, Patience, Unanswered};
use super::stored::{self, Around, StoredModel};
use crate::agent::Agent;
use crate::attempt::Work;
use crate::model_environment::Chosen;
use crate::provider::login::Logins;
use crate::provider::platform::Platform;
use crate::provider::{Control, Shared};
use crate::secrets::Secrets;

/// Longest time of one try of a call, and between two pieces of its answer.
const TRY_TIMEOUT: Duration = Duration::from_secs(300);
const PIECE_TIMEOUT: Duration = Duration::from_secs(120);

/// The models that a job may call, in the order in which they are tried.
pub(in crate::provider) struct Models {
    pub(in crate::provider) client: Client,
    pub(in crate::provider) targets: Vec<Target>,
    /// For each target, its place among the models that the job was fixed to.
    places: Vec<usize>,
    /// Longest time of one call. The job's own time limit ends it earlier.
    limit: Duration,
    /// Models that cannot be called, with the reasons. Others are called instead.
    pub(in crate::provider) left_out: Vec<String>,
    /// Which of them could be reached; none of those of the environment, which are no objects.
    pub(in crate::provider) seen: Option<Seen>,
    logins: Logins,
    entropy: Arc<dyn Entropy>,
    /// Whether followers also see thoughts and tool calls form.
    pub(super) all_parts: bool,
}

/// An answer, and the place of the model that gave it.
pub(in crate::provider) struct Answered {
    pub(in crate::provider) answer: Answer,
    pub(in crate::provider) place: usize,
}

/// What happened during a call.
#[derive(Debug)]
pub(in crate::provider) enum News {
    /// A piece of an answer. Its mark says which part it belongs to.
    Delta {
        try_number: u32,
        mark: u32,
        text: String,
    },
    Log {
        level: &'static str,
        text: String,
    },
}

impl News {
    /// The pieces of this try and those before are void. The number of the next try says so, also if that has no text.
    fn void(tries: u32) -> Self {
        Self::Delta { try_number: tries.saturating_add(1), mark: 0, text: String::new() }
    }
}

impl Models {
    pub(in crate::provider) fn open(
        source: &Source,
        model: &str,
        work: &Work,
        control: &Control<'_>,
        shared: &Shared,
    ) -> Result<Self, Fault> {
        let target = match source {
            Source::Stored(recorded) => return Self::stored(recorded, work, control, shared),
            Source::Mock => mock(&work.agent)?,
            Source::Environment(chosen) => environment(*chosen, model, shared)?,
        };
        let logins = Logins::new(Platform::of(work, shared), shared);
        Ok(Self::of((vec![(0, target)], Vec::new()), None, logins, shared))
    }

    fn of(
        (targets, left_out): (Vec<(usize, Target)>, Vec<String>),
        seen: Option<Seen>,
        logins: Logins,
        shared: &Shared,
    ) -> Self {
        let (places, targets): (Vec<_>, Vec<_>) = targets.into_iter().unzip();
        let limit = targets.iter().map(|target: &Target| target.deadline).sum();
        let (client, entropy) = (shared.models.clone(), Arc::clone(&shared.env.entropy));
        Self { client, targets, places, limit, left_out, seen, logins, entropy, all_parts: false }
    }

    /// A model that cannot be called, for example because its key is missing, is left out if another one can.
    fn stored(recorded: &[StoredModel], work: &Work, control: &Control<'_>, shared: &Shared) -> Result<Self, Fault> {
        let attached = stored::read(work.assignment.attachments.models())?;
        let script = work.agent.mock.as_ref().and_then(|mock| mock.as_ref().ok());
        let logins = Logins::new(Platform::of(work, shared), shared);
        let (bearer, environment) = (work.assignment.attachments.bearer(), &shared.settings.models);
        let (secrets, local) = (&control.secrets, &shared.local);
        let around = Around { secrets, environment, logins: &logins, bearer, script, local };
        let (mut targets, mut left_out, seen) = (Vec::new(), Vec::new(), Seen::default());
        for (place, model) in stored::current(recorded, &attached).iter().enumerate() {
            match around.target(model) {
                Ok(target) => targets.push((place, Target { gate: gate::of(model, work, shared), ..target })),
                Err(error) => {
                    let why = atlas_env::chain(&error);
                    seen.unreachable(&model.name, &why);
                    left_out.push(format!("the model \"{}\" cannot be called: {why}", model.name));
                }
            }
        }
        if targets.is_empty() {
            return Err(Fault::Unreachable { text: left_out.join("; "), seen });
        }
        Ok(Self::of((targets, left_out), Some(seen), logins, shared))
    }

    /// Removes access tokens from the texts of the attempt, once there are any.
    pub(super) fn hide(&self, listener: &mut impl Listener) {
        for (name, token) in self.logins.unhidden() {
            listener.hide(&name, token);
        }
    }

    /// Makes a call. Pieces of the answer go to those who follow the job, failed tries into its log. If no model answers, there can be further
    /// rounds. With a patience for outages, a provider that is down is tried again for that time only, and the caller waits for it.
    pub(in crate::provider) async fn call(
        &self,
        request: &Request,
        step: u32,
        (clock, listener): (&Arc<dyn Clock>, &mut impl Listener),
        patience: Patience,
    ) -> Result<Answered, Unanswered> {
        let (mut tries, mut rounds) = (0, Rounds::default());
        // For limits of models. It does not count as time of the call.
        let mut waited = Duration::ZERO;
        let client = self.client.patient_for(patience.down.unwrap_or(Duration::MAX));
        let limit = patience.longest.map_or(self.limit, |longest| longest.min(self.limit));
        let end = clock.monotonic().saturating_add(limit);
        loop {
            let left = end.saturating_add(waited).saturating_sub(clock.monotonic());
            let failure = match self
                .round(&client, (request, left), (step, &mut tries, &mut waited), (clock, &mut *listener))
                .await?
            {
                Ok(answered) => return Ok(answered),
                Err(failure) => failure,
            };
            if let Some((target, named)) = again::down(&failure, &self.targets).filter(|_| patience.down.is_some()) {
                listener.hear(step, News::void(tries)).await;
                let (model, why, random) = (target.name.clone(), failure.to_string(), self.entropy.u64());
                let error = again::told(failure, &self.targets, tries);
                let down = Down { error, model, why, named, longest: self.limit, random };
                return Err(Unanswered::Down(Box::new(down)));
            }
            let pause = rounds.next(&failure, &self.targets, self.entropy.u64());
            let Some(pause) =
                pause.filter(|pause| clock.monotonic().saturating_add(*pause) < end.saturating_add(waited))
            else {
                return Err(again::told(failure, &self.targets, tries).into());
            };
            let text = format!("no model answered: {failure}; the next try is in {:.1} s", pause.as_secs_f64());
            listener.hear(step, News::Log { level: "warning", text }).await;
            listener.hear(step, News::void(tries)).await;
            clock.sleep(pause).await;
        }
    }

    /// One round: each model is called, until one answers. `tries` counts the tries of all rounds.
    async fn round(
        &self,
        client: &Client,
        (request, limit): (&Request, Duration),
        (step, tries, waited): (u32, &mut u32, &mut Duration),
        (clock, listener): (&Arc<dyn Clock>, &mut impl Listener),
    ) -> Result<Result<Answered, Failure>, CallError> {
        // The client's callback cannot wait. What it leaves here is bounded by the size of an answer.
        let (sender, mut receiver) = mpsc::unbounded_channel();
        let others = self.targets.len() > 1;
        let clock = Arc::clone(clock);
        let mut began = clock.monotonic();
        let mut live = None;
        let end = {
            let mut watch = |progress: Progress<'_>| {
                match (&progress, &self.seen) {
                    (Progress::Try { .. }, _) => {
                        began = clock.monotonic();
                        live = self.all_parts.then(LiveWriter::default);
                    }
                    (Progress::Waited(more), _) => *waited = waited.saturating_add(*more),
                    (Progress::Failed { target, error, pause: None }, Some(seen)) => seen.failed(&target.name, error),
                    _ => {}
                }
                let news = match progress {
                    Progress::Delta(delta) => piece(&delta, *tries, live.as_mut()),
                    progress => news(&progress, tries, others),
                };
                if let Some(news) = news {
                    // The receiver lives until the call has ended.
                    let _ = sender.send(news);
                }
            };
            let call = client.call(&self.targets, request, limit, &mut watch);
            tokio::pin!(call);
            loop {
                tokio::select! {
                    biased;
                    Some(news) = receiver.recv() => {
                        self.hide(listener);
                        listener.hear(step, news).await;
                    }
                    end = &mut call => break end,
                }
            }
        };
        self.hide(listener);
        while let Ok(news) = receiver.try_recv() {
            listener.hear(step, news).await;
        }
        let CompletedCall { answer, target, .. } = match end {
            Ok(done) => done,
            Err(failure) => return Ok(Err(failure)),
        };
        let unknown = || CallError::new(CallErrorKind::Answer, "the answer is from no model of the job");
        let place = *self.places.get(target).ok_or_else(unknown)?;
        if let (Some(seen), Some(target)) = (&self.seen, self.targets.get(target)) {
            seen.reached(&target.name, clock.monotonic().saturating_sub(began));
        }
        Ok(Ok(Answered { answer, place }))
    }
}

/// A piece of an answer, for followers: of its text, or with `live` of any part.
fn piece(delta: &Delta, try_number: u32, live: Option<&mut LiveWriter>) -> Option<News> {
    let (mark, text) = match (live, delta) {
        (Some(live), delta) => live.write(delta)?,
        // A piece without text says that those before are void.
        (None, Delta::Text(text)) if !text.is_empty() => (0, text.clone()),
        (None, _) => return None,
    };
    Some(News::Delta { try_number, mark, text })
}

/// `others` says that there are several models.
fn news(progress: &Progress<'_>, tries: &mut u32, others: bool) -> Option<News> {
    match progress {
        Progress::Try { .. } => {
            *tries += 1;
            None
        }
        Progress::Reset => Some(News::void(*tries)),
        Progress::Delta(_) | Progress::Waited(_) => None,
        Progress::Dropped { target, setting } => {
            let text =
                format!("the provider of {} has no setting {setting}; the request goes without it", target.model);
            Some(News::Log { level: "warning", text })
        }
        Progress::Failed { target, error, pause: Some(pause) } => {
            let text = format!("{}: {error}; the next try is in {:.1} s", target.model, pause.as_secs_f64());
            Some(News::Log { level: "warning", text })
        }
        Progress::Failed { target, error, pause: None } if others => {
            let text = format!("{}: {error}", target.name);
            Some(News::Log { level: "warning", text })
        }
        // The job fails with this error.
        Progress::Failed { .. } => None,
    }
}

/// Who is told of pieces of answers and of failed tries.
pub(in crate::provider) trait Listener: Send {
    /// Learns what happened in the call of a step.
    fn hear(&mut self, step: u32, news: News) -> impl Future<Output = ()> + Send;

    /// Learns that a call of an MCP server began or ended.
    fn hear_of_server(&mut self, _text: String) -> impl Future<Output = ()> + Send {
        std::future::ready(())
    }

    /// Removes a value from texts from now on.
    fn hide(&mut self, name: &str, value: SecretText);

    /// The secrets of the attempt, as far as they are known.
    fn secrets(&self) -> Secrets;
}

impl Listener for Control<'_> {
    async fn hear(&mut self, step: u32, news: News) {
        match news {
            News::Delta { try_number, mark, text } => self.delta((numbered(step, mark), try_number), text).await,
            News::Log { level, text } => self.say(StreamKind::Log, level, text).await,
        }
    }

    async fn hear_of_server(&mut self, text: String) {
        self.say(StreamKind::Progress, "info", text).await;
    }

    fn hide(&mut self, name: &str, value: SecretText) {
        Control::hide(self, name, value);
    }

    fn secrets(&self) -> Secrets {
        self.secrets.clone()
    }
}

fn mock(agent: &Agent) -> Result<Target, Fault> {
    match &agent.mock {
        Some(Ok(script)) => Ok(target(MODEL, Backend::Scripted(Arc::clone(script)))),
        Some(Err(why)) => Err(Fault::NoModel(format!("mock.yaml: {why}"))),
        None => Err(Fault::NoModel("the job began with a mock.yaml, which the agent does not have".to_owned())),
    }
}

pub(in crate::provider) fn environment(chosen: Chosen, model: &str, shared: &Shared) -> Result<Target, Fault> {
    let variables = &shared.settings.models;
    let Some((protocol, endpoint)) = variables.reach(chosen) else {
        let text =
            format!("the job began with a model of {chosen:?}, and the environment of this worker has no key for it");
        return Err(Fault::NoModel(text));
    };
    let proxy = Proxy::choose(None, &|name| variables.proxy(name), &endpoint.base_url);
    let proxy = proxy.map_err(|error| Fault::NoModel(error.to_string()))?;
    let http = Http {
        protocol,
        endpoint,
        patches: Vec::new(),
        proxy,
        login: None,
        // A model of the namespace can allow it: its parameter plain_http.
        plain: false,
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
        purpose: Purpose::Chat,
        stream: true,
        timeout: TRY_TIMEOUT,
        attempts,
        deadline: Duration::from_secs(deadline_seconds.into()),
        context_window: None,
        output_tokens_max: None,
        capabilities: None,
        gate: None,
    }
}
