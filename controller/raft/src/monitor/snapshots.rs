//! When to take a snapshot, and which entries can be dropped after it.

use std::collections::VecDeque;
use std::time::Duration;

use atlas_env::Env;

use crate::consensus::snapshot::Snapshots;
use crate::machine::Raft;
use atlas_log::Log;

/// Entries younger than this are kept for members that were offline.
const KEEP: Duration = Duration::from_secs(600);

/// The pause after a snapshot that did not read back. An immediate second attempt would most likely give the same
/// snapshot.
const PAUSE_AFTER_REFUSED: Duration = Duration::from_secs(60);

/// Takes snapshots based on the size of the log, and purges entries that they cover.
pub(crate) struct SnapshotKeeper {
    pub(crate) raft: Raft,
    pub(crate) log: Log,
    pub(crate) snapshots: Snapshots,
    /// The least size of the log between two snapshots, and of the log that a purge keeps.
    pub(crate) log_bytes: u64,
    /// The interval at which the log's size is checked.
    pub(crate) every: Duration,
    pub(crate) env: Env,
}

impl SnapshotKeeper {
    /// Checks periodically until Raft stops.
    pub(crate) async fn run(self) {
        // The last index at earlier times, to find the entries that are older than `KEEP`.
        let mut seen: VecDeque<(Duration, u64)> = VecDeque::new();
        loop {
            let damaged = async {
                match self.snapshots.current() {
                    Some((_, file)) if !file.is_damaged() => file.damaged().await,
                    _ => std::future::pending().await,
                }
            };
            tokio::select! {
                biased;
                () = damaged => {}
                () = self.env.clock.sleep(self.every) => {}
            }
            let now = self.env.clock.monotonic();
            let (_, last) = self.log.bounds();
            seen.extend(last.map(|last| (now, last.index)));
            let mut old = None;
            while let Some(&(at, index)) = seen.front()
                && now.saturating_sub(at) >= KEEP
            {
                old = Some(index);
                seen.pop_front();
            }
            if self.look(old).await.is_err() {
                return;
            }
        }
    }

    /// Takes a snapshot if one is due, and purges unneeded entries that the current one covers.
    pub(crate) async fn look(&self, old: Option<u64>) -> Result<(), ()> {
        let current = self.snapshots.current();
        let (covered, bytes) = match &current {
            Some((meta, file)) => (meta.last_log_id.map(|id| id.index), file.bytes),
            None => (None, 0),
        };
        let behind = self.log.bytes_from(covered.map_or(0, |index| index + 1));
        // A snapshot that was being sent turned out to be damaged. The state in memory is good, so a new snapshot
        // replaces it.
        let damaged = current.as_ref().is_some_and(|(_, file)| file.is_damaged());
        let now = self.env.clock.monotonic();
        let refused = self.snapshots.refused().is_some_and(|at| now.saturating_sub(at) < PAUSE_AFTER_REFUSED);
        if !refused && (damaged || behind >= self.log_bytes.max(2 * bytes)) {
            self.raft.trigger().snapshot().await.map_err(|_| ())?;
        }
        // Keeps the last ten minutes or the last `log_bytes` of the log, whichever is less.
        let enough = self.log.index_before_last(self.log_bytes).max(old);
        if let (Some(covered), Some(enough)) = (covered, enough) {
            let upto = covered.min(enough);
            let (purged, _) = self.log.bounds();
            if purged.is_none_or(|purged| purged.index < upto) {
                self.raft.trigger().purge_log(upto).await.map_err(|_| ())?;
            }
        }
        Ok(())
    }
}
