//! Notices at once that the leader's process has ended, because its connections end with it. The pre-vote then begins when
//! the leader's lease ends, and not an election timeout later.
//!
//! The lease is not shortened: until it ends no member asks for a vote or gives one, whatever happens to connections. A
//! leader that lives opens its streams again meanwhile. Connections to a leader that is paused or cut off do not end, so it
//! is left to the election timeout.

use std::time::Duration;

use atlas_env::Env;
use atlas_types::MemberId;
use openraft::async_runtime::WatchReceiver;
use tokio::sync::watch;

use crate::consensus::ELECTION_MAX;
use crate::machine::Raft;

/// How much later each further voter begins. A pre-vote and a vote take less, so that voters do not compete.
const TURN: Duration = Duration::from_millis(20);

/// How much later than this member another one may have heard from the leader for the last time.
const SLACK: Duration = Duration::from_millis(5);

/// The append streams that leaders have open here. Cheap to clone.
#[derive(Clone, Default)]
pub(crate) struct Streams(watch::Sender<Count>);

#[derive(Clone, Copy, Default, PartialEq, Eq)]
struct Count {
    open: usize,
    opened: u64,
}

impl Streams {
    /// Counts a stream until the result is dropped.
    pub(super) fn open(&self) -> OpenStream {
        // Nobody waits for a stream to be opened.
        self.0.send_if_modified(|count| {
            (count.open, count.opened) = (count.open + 1, count.opened + 1);
            false
        });
        OpenStream(self.clone())
    }
}

/// An append stream that is open.
pub(super) struct OpenStream(Streams);

impl Drop for OpenStream {
    fn drop(&mut self) {
        let Self(Streams(count)) = self;
        // A heartbeat has a stream of its own, which ends, but beside it the leader keeps one for its log.
        count.send_if_modified(|count| {
            count.open -= 1;
            count.open == 0
        });
    }
}

/// Begins the election of a leader's successor when the leader's streams are broken.
pub(crate) struct Succession {
    pub(crate) raft: Raft,
    pub(crate) streams: Streams,
    pub(crate) member: MemberId,
    pub(crate) env: Env,
}

impl Succession {
    /// Runs until it is aborted.
    pub(crate) async fn run(self) {
        let mut seen = self.streams.0.subscribe();
        while seen.changed().await.is_ok() {
            let left = *seen.borrow_and_update();
            let Some(turn) = self.turn() else { continue };
            self.env.clock.sleep(ELECTION_MAX + SLACK + TURN * turn).await;
            if *seen.borrow() != left {
                // The leader lives, or another one does.
                continue;
            }
            tracing::info!("the leader's connection has ended, and so has its lease");
            // A pre-vote asks the others whether the lease has ended for them too.
            if let Err(error) = self.raft.trigger().elect(true).await {
                tracing::debug!(%error, "raft has stopped");
            }
        }
    }

    /// The number of voters that begin before this one. None for a member that has no leader to succeed.
    fn turn(&self) -> Option<u32> {
        let metrics = self.raft.server_metrics();
        let metrics = metrics.borrow_watched();
        let leader = metrics.current_leader.filter(|&leader| leader != self.member.0)?;
        let voters = metrics.membership_config.membership().voter_ids();
        turn(voters, leader, self.member.0)
    }
}

fn turn(voters: impl Iterator<Item = u64>, leader: u64, member: u64) -> Option<u32> {
    let mut others: Vec<u64> = voters.filter(|&voter| voter != leader).collect();
    others.sort_unstable();
    others.dedup();
    others.iter().position(|&voter| voter == member).and_then(|turn| u32::try_from(turn).ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_end_of_the_last_stream_is_told() {
        let streams = Streams::default();
        let seen = streams.0.subscribe();
        let (log, heartbeat) = (streams.open(), streams.open());
        drop(heartbeat);
        assert!(!seen.has_changed().expect("open"), "the leader's log has a stream");
        drop(log);
        assert!(seen.has_changed().expect("open"));
    }

    #[test]
    fn voters_take_turns() {
        let turns = |member| turn([3, 1, 2, 5].into_iter(), 2, member);
        assert_eq!([1, 3, 5].map(turns), [Some(0), Some(1), Some(2)]);
        assert_eq!(turns(4), None, "a learner begins nothing");
    }
}
