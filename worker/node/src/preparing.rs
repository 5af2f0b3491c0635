//! The preparation of an attempt: its time limit, and the lines that say why the attempt does not run yet.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use atlas_contract::Contract;
use atlas_env::Env;
use atlas_types::{FencingToken, Micros, StreamEvent, StreamKind};
use tokio::sync::mpsc;
use tracing::debug;

use crate::news::News;
use crate::provider::Settings;
use crate::texts::bounded;

/// The prefix of a line that reports why an attempt does not run yet. Controllers show it as the reason.
const PREPARING: &str = "preparing: ";

/// The prefix of the line that ends the preparation.
const PREPARED: &str = "prepared in ";

/// What the leader may not have known of the node when it gave a lease.
pub(crate) struct Untold {
    pub(crate) settings: Arc<Settings>,
    /// That it has no Python.
    pub(crate) python: bool,
    /// That it has no Node.js.
    pub(crate) nodejs: bool,
}

/// The state of a preparation: its time limit and its log lines.
pub(crate) struct Preparing {
    env: Env,
    /// Who is told for which attempt; nobody if the worker itself needs what is prepared.
    told: Option<(mpsc::Sender<News>, FencingToken)>,
    /// The total time limit.
    pub(crate) limit: Duration,
    until: Duration,
    text_left: AtomicUsize,
    untold: Option<Untold>,
    /// The monotonic time in microseconds at which slow work started; 0 for none.
    since: AtomicU64,
}

impl Preparing {
    /// The most bytes of text in one preparation.
    const TEXT_MAX: usize = 256 << 10;

    /// Work that takes longer than this is reported.
    const SLOW: Duration = Duration::from_secs(1);

    /// A preparation that begins now.
    pub(crate) fn new(
        env: Env,
        news: mpsc::Sender<News>,
        token: FencingToken,
        limit: Duration,
        untold: Untold,
    ) -> Self {
        Self { told: Some((news, token)), untold: Some(untold), ..Self::of_worker(env, limit) }
    }

    /// The preparation of something that belongs to no attempt.
    pub(crate) fn of_worker(env: Env, limit: Duration) -> Self {
        let until = env.clock.monotonic() + limit;
        let (text_left, since) = (AtomicUsize::new(Self::TEXT_MAX), AtomicU64::new(0));
        Self { env, told: None, limit, until, text_left, untold: None, since }
    }

    /// Whether the leader may not know that the node has no Python.
    pub(crate) fn is_python_untold(&self) -> bool {
        self.untold.as_ref().is_some_and(|untold| untold.python)
    }

    /// Why the node lacks what runs the agent, if the leader could not know: the attempt came before it was told. It waits until that is
    /// known.
    pub(crate) async fn untold_lack(&self, contract: &Contract) -> Option<String> {
        let untold = self.untold.as_ref()?;
        let python = untold.python && contract.needs_python();
        let nodejs = untold.nodejs && contract.needs_nodejs();
        if !python && !nodejs {
            return None;
        }
        let settings = Arc::clone(&untold.settings);
        let known = self.env.spawn_blocking("wait for interpreter", move || {
            let why = if python { settings.python.get().err() } else { settings.nodejs.get().err() };
            why.map(str::to_owned)
        });
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

    /// Writes a log line of the attempt, or of the worker. Lines beyond the limit are dropped.
    pub(crate) async fn say(&self, level: &str, text: String) {
        let take = |left: usize| left.checked_sub(text.len() + 1);
        if self.text_left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take).is_err() {
            return;
        }
        let Some((news, token)) = &self.told else {
            debug!("{text}");
            return;
        };
        let (at, level, text) = (self.env.clock.wall(), level.to_owned(), bounded(text));
        let event = StreamEvent { number: 0, at, kind: StreamKind::Log, level, text };
        // If the pump has ended, the line is dropped.
        let _ = news.send(News::Said { token: *token, event }).await;
    }
}
