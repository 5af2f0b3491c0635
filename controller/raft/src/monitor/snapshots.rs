//! When to take a snapshot, and which entries can be dropped after it.

use std::collections::VecDeque;
use std::time::Duration;

use atlas_env::Env;

use crate::consensus::snapshot::Snapshots;
use crate::leader::Raft;
use atlas_log::Log;

/// Entries younger than this are kept for members that were away.
const KEEP: Duration = Duration::from_secs(600);

/// After a snapshot that did not read back the next one is not tried sooner: it would most likely be the same.
const PAUSE_AFTER_REFUSED: Duration = Duration::from_secs(60);

/// Takes snapshots by the size of the log and purges what they cover.
pub(crate) struct SnapshotKeeper {
    pub(crate) raft: Raft,
    pub(crate) log: Log,
    pub(crate) snapshots: Snapshots,
    /// Least log between snapshots, and behind the purge mark.
    pub(crate) log_bytes: u64,
    /// How often the log's size is looked at.
    pub(crate) every: Duration,
    pub(crate) env: Env,
}

impl SnapshotKeeper {
    /// Looks from time to time, until Raft stops.
    pub(crate) async fn run(self) {
        // When which index was the last one, to know what is older than `KEEP`.
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
        // One that members were to be sent turned out to be damaged: the state in memory is whole.
        let damaged = current.as_ref().is_some_and(|(_, file)| file.is_damaged());
        let now = self.env.clock.monotonic();
        let refused = self.snapshots.refused().is_some_and(|at| now.saturating_sub(at) < PAUSE_AFTER_REFUSED);
        if !refused && (damaged || behind >= self.log_bytes.max(2 * bytes)) {
            self.raft.trigger().snapshot().await.map_err(|_| ())?;
        }
        // At least ten minutes or so many bytes are kept, whichever is less.
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
