//! The task of the leader: exports what the history has and the database does not.

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use atlas_env::{Env, Task};
use atlas_history::{Gap, History};
use atlas_raft::Leadership;
use atlas_telemetry::Metrics;
use atlas_types::EventSeq;
use deadpool_postgres::{Object, Pool};
use tokio::sync::watch;

use crate::lineage::Lineage;
use crate::rows::Rows;
use crate::write::Written;
use crate::{ExportError, ExportTarget, connect, migrate, partition, statement, write};

/// The bytes of history in one batch. This bounds memory, and the time of a transaction.
const PART_BYTES: usize = 2 << 20;
/// The pause in which more events gather for a batch, because a transaction costs as much as many rows.
const GATHER: Duration = Duration::from_millis(200);
/// How often an idle exporter looks at the database, so that a restored one is noticed.
const LOOK_EVERY: Duration = Duration::from_secs(10);
/// How often old partitions are dropped.
const DROP_EVERY: Duration = Duration::from_secs(3_600);
/// The pause after the first failure; it doubles with each further one.
const PAUSE_MIN: Duration = Duration::from_millis(250);
const PAUSE_MAX: Duration = Duration::from_secs(30);
/// The time limit of a batch: above those of its statements, for a database that answers nothing.
const WRITE_MAX: Duration = Duration::from_secs(90);
/// The time limit for preparing the tables and comparing them with the history.
const SETTLE_MAX: Duration = Duration::from_secs(900);

/// The last event that this controller knows to be committed; none while it cannot tell.
pub type CommittedEvent = Arc<dyn Fn() -> Pin<Box<dyn Future<Output = Option<EventSeq>> + Send>> + Send + Sync>;

/// What the export needs.
#[derive(Clone)]
pub struct ExportParts {
    /// Where the rows go.
    pub target: ExportTarget,
    /// How long the database keeps rows, by whole months; none for ever.
    pub keep: Option<Duration>,
    /// Where they come from.
    pub history: Arc<dyn History>,
    /// Whether this controller leads. Only the leader exports.
    pub leadership: watch::Receiver<Leadership>,
    /// See [`CommittedEvent`].
    pub committed: CommittedEvent,
    /// The id of the cluster.
    pub cluster: u128,
    /// Instruments.
    pub metrics: Metrics,
    /// The machine.
    pub env: Env,
}

/// The task that exports while this controller leads.
pub struct Export {
    /// None once it has ended.
    task: Mutex<Option<Task<()>>>,
}

impl Export {
    /// Starts it. Nothing waits for it: the database may be down.
    pub fn start(parts: ExportParts) -> Self {
        let env = parts.env.clone();
        let task = env.spawn_restarting("export", move || run(parts.clone()));
        Self { task: Mutex::new(Some(task)) }
    }

    /// Stops it. A batch that is being written is written entirely or not at all.
    pub async fn stop(&self) {
        let task = self.task.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(task) = task {
            task.abort();
            // A panic was reported already.
            let _ = task.join().await;
        }
    }
}

async fn run(parts: ExportParts) {
    let pool = match connect::pool(&parts.target) {
        Ok(pool) => pool,
        Err(error) => {
            tracing::error!(%error, "the history is not exported");
            return;
        }
    };
    let mut leadership = parts.leadership.clone();
    while leadership.wait_for(leads).await.is_ok() {
        let mut exporter = Exporter { parts: &parts, pool: &pool, watermark: None, dropped_at: None, failing: false };
        tokio::select! {
            biased;
            lost = leadership.wait_for(|leadership| !leads(leadership)) => if lost.is_err() { return },
            () = exporter.lead() => {}
        }
        parts.metrics.history_export_failing.set(0);
        parts.metrics.history_export_lag.set(0);
    }
}

fn leads(leadership: &Leadership) -> bool {
    matches!(leadership, Leadership::Leader { .. })
}

/// The export of one leader.
struct Exporter<'a> {
    parts: &'a ExportParts,
    pool: &'a Pool,
    /// The watermark of the database when it was last seen.
    watermark: Option<EventSeq>,
    /// When old partitions were last dropped.
    dropped_at: Option<Duration>,
    failing: bool,
}

impl Exporter<'_> {
    /// Exports until it is dropped. After a failure it connects again.
    async fn lead(&mut self) {
        let mut pause = PAUSE_MIN;
        loop {
            let before = self.watermark;
            let Err(error) = self.session().await;
            if self.watermark > before {
                pause = PAUSE_MIN;
            }
            if !self.failing {
                let error: &dyn std::error::Error = &error;
                tracing::warn!(error, target = %self.parts.target, "the history is not exported at the moment, trying again");
            }
            self.failing = true;
            self.parts.metrics.history_export_failing.set(1);
            self.measure();
            self.parts.env.clock.sleep(pause).await;
            pause = (2 * pause).min(PAUSE_MAX);
        }
    }

    /// Exports by one connection.
    async fn session(&mut self) -> Result<std::convert::Infallible, ExportError> {
        let mut client = connect::connect(self.pool).await?;
        let answer = self.work(&mut client).await;
        // The connection may be in the middle of something: the next session begins with another one.
        drop(Object::take(client));
        answer
    }

    async fn work(&mut self, client: &mut Object) -> Result<std::convert::Infallible, ExportError> {
        let settled = async {
            migrate::migrate(client).await?;
            self.settle(client).await
        };
        let mut watermark = in_time(SETTLE_MAX, settled).await?;
        loop {
            self.watermark = Some(watermark);
            if self.failing {
                tracing::info!(%watermark, "the history is exported again");
                self.failing = false;
            }
            self.parts.metrics.history_export_failing.set(0);
            self.measure();
            let rows = self.read(watermark).await?;
            if rows.through > watermark {
                let count = rows.len() as u64;
                match in_time(WRITE_MAX, write::write(client, watermark, &rows)).await? {
                    Written::Done => {
                        watermark = rows.through;
                        self.parts.metrics.history_exported.inc_by(count);
                    }
                    Written::Elsewhere => watermark = in_time(SETTLE_MAX, self.settle(client)).await?,
                }
                continue;
            }
            in_time(WRITE_MAX, self.drop_old(client)).await?;
            if !self.wait(watermark).await? {
                let found = in_time(WRITE_MAX, write::watermark(client)).await?;
                if found != watermark {
                    watermark = in_time(SETTLE_MAX, self.settle(client)).await?;
                }
            }
        }
    }

    async fn settle(&self, client: &mut Object) -> Result<EventSeq, ExportError> {
        let committed = loop {
            match (self.parts.committed)().await {
                Some(committed) => break committed,
                // Leadership is being lost, or a majority is away. Nothing new is committed meanwhile.
                None => self.parts.env.clock.sleep(PAUSE_MIN).await,
            }
        };
        let ExportParts { history, env, cluster, .. } = self.parts;
        Lineage { history: &**history, env, cluster: *cluster, committed }.settle(client).await
    }

    /// The rows after `watermark`; none if the history has nothing, or a gap there that is being filled.
    async fn read(&self, watermark: EventSeq) -> Result<Rows, ExportError> {
        let gap = Gap { after: watermark, through: EventSeq(u64::MAX) };
        let part = self.parts.history.part(gap, PART_BYTES).await.map_err(ExportError::History)?;
        let task = self.parts.env.spawn_blocking("export-rows", move || Rows::of(&part));
        task.join().await.map_err(|_| ExportError::Stopped)?.map_err(ExportError::History)
    }

    /// Waits for events; false if there were none for a while.
    async fn wait(&self, watermark: EventSeq) -> Result<bool, ExportError> {
        let clock = &self.parts.env.clock;
        let (mut synced, mut gaps) = (self.parts.history.synced(), self.parts.history.gaps());
        // Events in a gap cannot be read yet.
        let waits = gaps.borrow().iter().any(|gap| gap.after <= watermark);
        tokio::select! {
            biased;
            reached = synced.wait_for(|synced| *synced > watermark), if !waits => drop(reached.map_err(|_| ExportError::Stopped)?),
            changed = gaps.changed(), if waits => changed.map_err(|_| ExportError::Stopped)?,
            () = clock.sleep(LOOK_EVERY) => return Ok(false),
        }
        clock.sleep(GATHER).await;
        Ok(true)
    }

    async fn drop_old(&mut self, client: &mut Object) -> Result<(), ExportError> {
        let Some(keep) = self.parts.keep else { return Ok(()) };
        let now = self.parts.env.clock.monotonic();
        if self.dropped_at.is_some_and(|at| now.saturating_sub(at) < DROP_EVERY) {
            return Ok(());
        }
        let wall = u64::try_from(self.parts.env.clock.wall().0).unwrap_or_default();
        let failed = ExportError::doing("drop a partition");
        let transaction = statement::begin(client).await.map_err(&failed)?;
        let wall = SystemTime::UNIX_EPOCH + Duration::from_micros(wall);
        let dropped = partition::drop_old(&transaction, wall, keep).await?;
        transaction.commit().await.map_err(&failed)?;
        if !dropped.is_empty() {
            tracing::info!(partitions = dropped.join(" "), "old partitions of the history database were dropped");
        }
        self.dropped_at = Some(now);
        Ok(())
    }

    /// Sets the metric of what is not exported yet.
    fn measure(&self) {
        let synced = *self.parts.history.synced().borrow();
        let lag = synced.0.saturating_sub(self.watermark.unwrap_or_default().0);
        self.parts.metrics.history_export_lag.set(i64::try_from(lag).unwrap_or(i64::MAX));
    }
}

async fn in_time<T>(max: Duration, work: impl Future<Output = Result<T, ExportError>>) -> Result<T, ExportError> {
    tokio::time::timeout(max, work).await.map_err(|_| ExportError::Late(max))?
}
