//! Prepares an attempt: fetches its package and its input.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use atlas_env::Env;

use atlas_slots::{AttemptEnd, Input};
use atlas_types::{
    Assignment, Failure, FailureKind, FencingToken, Micros, Payload, PayloadBody, ReportKind, StreamEvent, StreamKind,
    Usage,
};
use serde_json::value::RawValue;
use tokio::sync::mpsc;
use tracing::warn;

use super::{News, Pump, RunningAttempt};
use crate::agent::{Agent, OutputFault};
use crate::environment::EnvironmentError;
use crate::packages::{PackageError, Packages};
use crate::payloads::{TransferError, Transfers};
use crate::provider::{Settings, bounded};
use crate::slot::{Ended, Work};

/// The prefix of a line that reports why an attempt does not run yet. Controllers show it as the reason.
const PREPARING: &str = "preparing: ";

/// The prefix of the line that ends the preparation.
const PREPARED: &str = "prepared in ";

/// Why an attempt could not start.
pub(crate) enum Unprepared {
    /// The job fails, because the problem would occur on any node.
    Failed(Failure),
    /// The problem concerns only this node, so the lease is given back.
    GiveBack,
}

impl Unprepared {
    /// The report for the attempt.
    fn report(self) -> ReportKind {
        match self {
            Self::Failed(failure) => Ended::failed(failure).into_end(None).report,
            Self::GiveBack => ReportKind::NotHeld,
        }
    }
}

/// The state of a preparation: its time limit and its log lines.
pub(crate) struct Preparing {
    env: Env,
    news: mpsc::Sender<News>,
    token: FencingToken,
    /// The total time limit.
    pub(crate) limit: Duration,
    until: Duration,
    text_left: AtomicUsize,
    /// The settings of a node of which the leader does not know that it has no Python, if that is so.
    untold: Option<Arc<Settings>>,
    /// The monotonic time in microseconds at which slow work started; 0 for none.
    since: AtomicU64,
}

impl Preparing {
    /// The most bytes of text in one preparation.
    const TEXT_MAX: usize = 256 << 10;

    /// Work that takes longer than this is reported.
    const SLOW: Duration = Duration::from_secs(1);

    fn new(pump: &Pump, token: FencingToken) -> Self {
        let limit = pump.prepare_timeout;
        Self {
            env: pump.env.clone(),
            news: pump.news.clone(),
            token,
            limit,
            until: pump.env.clock.monotonic() + limit,
            text_left: AtomicUsize::new(Self::TEXT_MAX),
            untold: (!pump.told_of_python(token)).then(|| Arc::clone(&pump.shared.settings)),
            since: AtomicU64::new(0),
        }
    }

    /// Why there is no Python, if the leader could not know: the attempt came before it was told. It waits until that is known.
    async fn untold_lack(&self) -> Option<String> {
        let settings = Arc::clone(self.untold.as_ref()?);
        let known = self.env.spawn_blocking("wait for python", move || settings.python.get().err().map(str::to_owned));
        known.join().await.ok().flatten()
    }

    /// The remaining time.
    pub(crate) fn left(&self) -> Duration {
        self.until.saturating_sub(self.env.clock.monotonic())
    }

    /// Reports that slow work starts. It is shown as the reason why the job does not run yet.
    pub(crate) async fn begin(&self, doing: &str) {
        let now = Micros::from(self.env.clock.monotonic()).0.max(1);
        // The earliest start counts.
        let _ = self.since.compare_exchange(0, now, Ordering::Relaxed, Ordering::Relaxed);
        self.say("info", format!("{PREPARING}{doing}")).await;
    }

    /// Reports that slow work is done.
    pub(crate) async fn end(&self) {
        let since = self.since.swap(0, Ordering::Relaxed);
        if since > 0 {
            let took = Micros::from(self.env.clock.monotonic()).0.saturating_sub(since);
            self.say("info", format!("{PREPARED}{:.1} s", took as f64 / 1e6)).await;
        }
    }

    /// Runs work that is reported if it is slow.
    pub(crate) async fn slow<T>(&self, doing: &str, work: impl Future<Output = T>) -> T {
        tokio::pin!(work);
        tokio::select! {
            biased;
            done = &mut work => return done,
            () = self.env.clock.sleep(Self::SLOW) => {}
        }
        self.begin(doing).await;
        let done = work.await;
        self.end().await;
        done
    }

    /// Writes a log line of the attempt. Lines beyond the limit are dropped.
    pub(crate) async fn say(&self, level: &str, text: String) {
        let take = |left: usize| left.checked_sub(text.len() + 1);
        if self.text_left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take).is_err() {
            return;
        }
        let (at, level, text) = (self.env.clock.wall(), level.to_owned(), bounded(text));
        let event = StreamEvent { number: 0, at, kind: StreamKind::Log, level, text };
        // If the pump has ended, the line is dropped.
        let _ = self.news.send(News::Said { token: self.token, event }).await;
    }
}

impl Pump {
    /// Runs an attempt at once if everything is available. Otherwise prepares it outside this loop.
    pub(super) fn start(&mut self, assignment: Box<Assignment>, place: RunningAttempt) {
        let token = assignment.token;
        self.attempts.insert(token, place);
        if let Some(work) = self.prepared.remove(&token).flatten() {
            return self.begin(place, work);
        }
        match self.at_hand(assignment) {
            Ok(work) => self.begin(place, work),
            Err(assignment) => self.fetch(assignment),
        }
    }

    /// Prepares an attempt whose start is committed afterwards.
    pub(super) fn prepare(&mut self, assignment: Box<Assignment>) {
        let token = assignment.token;
        match self.at_hand(assignment) {
            Ok(work) => {
                self.prepared.insert(token, Some(work));
                self.step_later(Input::Prepared { token });
            }
            Err(assignment) => {
                self.prepared.insert(token, None);
                self.fetch(assignment);
            }
        }
    }

    /// Handles the result of a preparation.
    pub(super) fn on_prepared(&mut self, token: FencingToken, work: Result<Arc<Work>, Unprepared>) {
        if let Some(kept) = self.prepared.get_mut(&token) {
            return match work {
                Ok(work) => {
                    *kept = Some(work);
                    self.step(Input::Prepared { token });
                }
                Err(unprepared) => {
                    self.prepared.remove(&token);
                    self.spool.close(token);
                    self.step(Input::Unprepared { token, report: unprepared.report() });
                }
            };
        }
        match (self.attempts.get(&token).copied(), work) {
            (Some(place), Ok(work)) => self.begin(place, work),
            (Some(_), Err(Unprepared::Failed(failure))) => self.ended(token, Ended::failed(failure)),
            (Some(place), Err(Unprepared::GiveBack)) => {
                self.attempts.remove(&token);
                self.spool.discard(token);
                let end = AttemptEnd { report: ReportKind::NotHeld, slot_usable: false };
                self.end_later(token, place.slot, end);
                self.settle();
            }
            // The attempt was stopped meanwhile and already reported.
            (None, _) => {}
        }
    }

    /// The work of an attempt, if everything is available.
    fn at_hand(&self, assignment: Box<Assignment>) -> Result<Arc<Work>, Box<Assignment>> {
        let inline = |payload: &Payload| match &payload.body {
            PayloadBody::Inline(bytes) => Some(Arc::clone(bytes)),
            PayloadBody::Artifact { .. } => None,
        };
        let context = assignment.context.as_ref().map(inline);
        match (self.packages.ready(assignment.digest), inline(&assignment.input), context) {
            (_, _, Some(None)) => Err(assignment),
            (Some(agent), Some(input), context) => {
                let agent = agent.within(assignment.attachments.bounds());
                Ok(Arc::new(Work { assignment, input, context: context.flatten(), agent }))
            }
            _ => Err(assignment),
        }
    }

    fn fetch(&mut self, assignment: Box<Assignment>) {
        let token = assignment.token;
        self.spool.open(assignment.job, assignment.attempt, token);
        let preparing = Preparing::new(self, token);
        let (packages, transfers, news) = (self.packages.clone(), self.transfers.clone(), self.news.clone());
        self.env.spawn("prepare attempt", async move {
            let work = prepare(assignment, &packages, &transfers, &preparing).await;
            // If the pump has ended, it has given the lease back.
            let _ = news.send(News::Prepared { token, work }).await;
        });
    }
}

/// The in-process agent's answer: its input.
pub(super) fn echo(input: &Arc<[u8]>, agent: &Agent, warm: bool) -> AttemptEnd {
    let text = String::from_utf8_lossy(input).into_owned();
    let checked = match RawValue::from_string(text) {
        Ok(output) => agent.check_output(&output),
        Err(error) => Err(OutputFault::Unusable(error.to_string())),
    };
    match checked {
        Ok(()) => {
            let output = Payload { key_id: 0, body: PayloadBody::Inline(Arc::clone(input)) };
            let warmup = if warm { Micros(0) } else { Micros(1) };
            let usage = Usage { warm, warmup, ..Usage::default() };
            AttemptEnd { report: ReportKind::Completed { output, usage, metadata: None }, slot_usable: true }
        }
        Err(fault) => Ended::failed(fault.into_failure()).into_end(None),
    }
}

/// Fetches the data of an attempt. On failure, decides whether the job or the node is the cause.
async fn prepare(
    assignment: Box<Assignment>,
    packages: &Packages,
    transfers: &Transfers,
    preparing: &Preparing,
) -> Result<Arc<Work>, Unprepared> {
    let agent = packages.get(assignment.digest, assignment.package_bytes, preparing);
    let agent = agent.await.map_err(|error| match &error {
        PackageError::Fetch(cause) if cause.is_nodes_own() => give_back(cause),
        PackageError::CutShort | PackageError::Environment(EnvironmentError::CutShort) => give_back(&error),
        PackageError::Environment(EnvironmentError::NoPython(_)) if preparing.untold.is_some() => give_back(&error),
        PackageError::Environment(_) => failed(FailureKind::Startup, "Pool error", &error),
        _ => failed(FailureKind::Internal, "Pool error", &error),
    })?;
    if agent.contract.needs_python()
        && let Some(why) = preparing.untold_lack().await
    {
        warn!("{why}: returning the lease of a Python agent");
        return Err(Unprepared::GiveBack);
    }
    let load = |payload| preparing.slow("fetching the input", transfers.load(payload));
    let lost = |error: TransferError| match error {
        error if error.is_nodes_own() => give_back(&error),
        // An input that did not fit into a welcome is stored only at the controller that sent it. It is sent again
        // with the next lease. An input that is lost for good uses up the job's attempts.
        TransferError::Gone(_) => give_back(&error),
        error => failed(FailureKind::Internal, "could not fetch the input", &error),
    };
    let input = load(&assignment.input).await.map_err(lost)?;
    let context = match &assignment.context {
        Some(context) => Some(load(context).await.map_err(lost)?),
        None => None,
    };
    let agent = agent.within(assignment.attachments.bounds());
    Ok(Arc::new(Work { assignment, input, context, agent }))
}

fn give_back(error: &dyn std::error::Error) -> Unprepared {
    warn!(%error, "could not prepare an attempt, returning its lease");
    Unprepared::GiveBack
}

fn failed(kind: FailureKind, what: &str, error: &dyn std::error::Error) -> Unprepared {
    let cause = error.source().map(|cause| format!(": {cause}")).unwrap_or_default();
    let error = bounded(format!("{what}: {error}{cause}")).into();
    Unprepared::Failed(Failure { kind, error })
}
