//! A leader with a history, without a cluster around it.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use atlas_env::Env;
use atlas_history::{History, SqliteHistory};
use atlas_postgres::Postgres;
use atlas_raft::Leadership;
use atlas_telemetry::Metrics;
use atlas_types::{
    AgentPin, Attempt, ClusterTime, Digest, Door, Event, EventRecord, EventSeq, Failure, FailureKind, Job, JobChange,
    JobId, JobStatus, Journal, Micros, Namespace, Payload, Reason, Seq, Step, StepKey, StepKind, StepUsage, Timestamp,
    Version,
};
use tempfile::TempDir;
use tokio::sync::watch;

use crate::{Export, ExportParts, ExportTarget};

/// 2026-11-25, and one job a second from then on.
const BEGIN: i64 = 1_795_564_800_000_000;

pub(super) struct Node {
    pub(super) history: Arc<dyn History>,
    pub(super) metrics: Metrics,
    cluster: u128,
    leads: watch::Sender<Leadership>,
    last: Arc<AtomicU64>,
    _dir: TempDir,
}

impl Node {
    /// A leader with a history of its own.
    pub(super) fn start(cluster: u128) -> Self {
        Self::in_dir(tempfile::tempdir().expect("a temporary folder"), cluster, 0)
    }

    fn in_dir(dir: TempDir, cluster: u128, last: u64) -> Self {
        let options = atlas_history::Options {
            sync_interval: Duration::from_millis(5),
            gather_interval: Duration::from_millis(1),
            ..atlas_history::Options::new(dir.path().join("history.sqlite"))
        };
        let history = Arc::new(SqliteHistory::open(options, Env::system(), |_| ()).expect("opens"));
        let leads = watch::Sender::new(Leadership::Leader { term: 1 });
        Self { history, metrics: Metrics::new(), cluster, leads, last: Arc::new(AtomicU64::new(last)), _dir: dir }
    }

    /// A cluster that was restored from a copy of this history as it was at event `through`.
    pub(super) async fn restored(&self, cluster: u128, through: u64) -> Self {
        let dir = tempfile::tempdir().expect("a temporary folder");
        let copied = self.history.copy(dir.path().join("history.sqlite"), EventSeq(through)).await;
        copied.expect("copied");
        Self::in_dir(dir, cluster, through)
    }

    /// Another member with this one's history.
    pub(super) async fn other(&self) -> Self {
        self.restored(self.cluster, self.last()).await
    }

    pub(super) fn last(&self) -> u64 {
        self.last.load(Ordering::SeqCst)
    }

    /// Records jobs that are submitted and end, with two events each. Their ids begin at `id`.
    pub(super) async fn jobs(&self, id: u64, count: u64) {
        for id in id..id + count {
            self.add(|seq| {
                let (pending, done) = (job(id, JobStatus::Pending), job(id, status(id)));
                vec![event(seq, JobChange::Submitted, pending), event(seq + 1, JobChange::Ended, done)]
            })
            .await;
        }
    }

    /// Records one job that ended, as `change` makes it.
    pub(super) async fn ended(&self, id: u64, change: impl Fn(&mut Job)) {
        self.add(|seq| {
            let mut job = job(id, JobStatus::Failed);
            change(&mut job);
            vec![event(seq, JobChange::Ended, job)]
        })
        .await;
    }

    /// Erases a job, or the namespace.
    pub(super) async fn erase(&self, job: Option<u64>) {
        let event = Event::Erased { namespace: Namespace::default_namespace(), job: job.map(JobId) };
        self.add(|seq| vec![EventRecord { seq: EventSeq(seq), at: Timestamp(BEGIN), event }]).await;
    }

    async fn add(&self, events: impl FnOnce(u64) -> Vec<EventRecord>) {
        let events = events(self.last() + 1);
        self.last.fetch_add(events.len() as u64, Ordering::SeqCst);
        self.history.append(events.into()).await.expect("queued");
    }

    /// Starts the export, as a controller does.
    pub(super) fn export(&self, postgres: &Postgres) -> Export {
        self.export_to(&postgres.url(), None)
    }

    pub(super) fn export_to(&self, url: &str, keep: Option<Duration>) -> Export {
        let last = self.last.clone();
        Export::start(ExportParts {
            target: ExportTarget::parse(url).expect("an address"),
            keep,
            history: self.history.clone(),
            leadership: self.leads.subscribe(),
            committed: Arc::new(move || {
                let last = EventSeq(last.load(Ordering::SeqCst));
                Box::pin(async move { Some(last) })
            }),
            cluster: self.cluster,
            metrics: self.metrics.clone(),
            env: Env::system(),
        })
    }

    pub(super) fn loses_leadership(&self) {
        self.leads.send_replace(Leadership::Follower { leader: None });
    }

    /// Waits until everything is in the database.
    pub(super) async fn exported(&self, postgres: &Postgres) {
        let last = self.last().to_string();
        wait_for(|| postgres.try_sql("SELECT watermark FROM atlas.progress").is_ok_and(|found| found == last)).await;
    }

    /// Waits until the export fails.
    pub(super) async fn failing(&self) {
        wait_for(|| self.metrics.history_export_failing.get() == 1).await;
    }

    pub(super) async fn synced(&self) {
        let last = EventSeq(self.last());
        let mut synced = self.history.synced();
        drop(synced.wait_for(|synced| *synced >= last).await.expect("the history runs"));
    }
}

/// The machine's time in microseconds.
pub(super) fn now() -> i64 {
    Env::system().clock.wall().0
}

/// Waits for a condition that nothing announces.
pub(super) async fn wait_for(holds: impl Fn() -> bool) {
    let waited = async {
        let clock = Env::system().clock;
        while !holds() {
            clock.sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(120), waited).await.expect("the condition holds in time");
}

fn status(id: u64) -> JobStatus {
    if id.is_multiple_of(5) { JobStatus::Failed } else { JobStatus::Completed }
}

fn event(seq: u64, change: JobChange, job: Job) -> EventRecord {
    let event = Event::Job { change, old_status: JobStatus::Running, job: Arc::new(job) };
    EventRecord { seq: EventSeq(seq), at: Timestamp(BEGIN), event }
}

fn job(id: u64, status: JobStatus) -> Job {
    let ended = status.is_terminal();
    let at = |seconds: i64| Timestamp(BEGIN + (id as i64 + seconds) * 1_000_000);
    let usage =
        StepUsage { duration: Micros(250_000), tokens_input: 100, tokens_output: 20, cost_nanodollars: 3_000_000 };
    let outcome = Payload::inline(br#"{"parts":[],"model":"m-1"}"#);
    let step = Step { kind: StepKind::Model, key: StepKey([1; 16]), outcome, usage };
    Job {
        pin: Some(AgentPin { version: Version { major: 1, minor: 2, patch: 3 }, digest: Digest([7; 32]) }),
        spec: None,
        status,
        reason: Reason::Running,
        priority: 3,
        submitted_seq: Seq(5),
        failure: (status == JobStatus::Failed)
            .then(|| Failure { kind: FailureKind::Timeout, error: "too slow".into() }),
        created_at: at(0),
        started_at: at(1),
        completed_at: if ended { at(3) } else { Timestamp::NOT_YET },
        queued_at: ClusterTime(4),
        warmup: Micros(5),
        execution: Micros(1_500_000),
        warm: true,
        attempt: Attempt(1),
        node: Some("n1".parse().expect("a name")),
        metadata: br#"{"_trace_model":"m-1","ticket":7}"#.as_slice().into(),
        labels: Arc::new(BTreeMap::from([("team".to_owned(), "blue".to_owned())])),
        door: Door::Http,
        journal: ended.then(|| Arc::new(Journal { steps: vec![Arc::new(step)], ..Journal::default() })),
        ..atlas_kit::job(id).of(if id.is_multiple_of(2) { "echo" } else { "count" }).pending()
    }
}
