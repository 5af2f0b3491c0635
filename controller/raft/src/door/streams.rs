//! Notices at once that the leader's process has ended, because its connections end with it. The pre-vote then begins when
//! the leader's lease ends, and not an election timeout later.
//!
//! The lease is not shortened: until it ends no member asks for a vote or gives one, whatever happens to connections. A
//! leader that lives opens its streams again meanwhile. Connections to a leader that is paused or cut off do not end, so it
//! is left to the election timeout.

use std::collections::BTreeMap;
use std::time::Duration;

use atlas_env::Env;
use atlas_types::MemberId;
use openraft::async_runtime::WatchReceiver;
use tokio::sync::watch;

use crate::consensus::{ELECTION_MAX, LeaderId};
use crate::machine::Raft;
use crate::monitor::space::{Disk, Room};

/// How much later each further voter begins. A pre-vote and a vote take less, so that voters do not compete.
const TURN: Duration = Duration::from_millis(20);

/// How much later than this member another one may have heard from the leader for the last time.
const SLACK: Duration = Duration::from_millis(5);

/// The append streams that leaders have open here. Cheap to clone.
///
/// They are counted for each leader: those of an earlier one that is paused or cut off may stay open long after it.
#[derive(Clone, Default)]
pub(crate) struct Streams(watch::Sender<Counts>);

#[derive(Default)]
struct Counts {
    opened: u64,
    leaders: BTreeMap<LeaderId, Count>,
}

#[derive(Default)]
struct Count {
    open: usize,
    /// The number of the stream that was opened last.
    last: u64,
}

impl Counts {
    /// The number of the last stream of a leader that had streams and has none. None for any other leader.
    fn ended(&self, leader: &LeaderId) -> Option<u64> {
        self.leaders.get(leader).filter(|count| count.open == 0).map(|count| count.last)
    }
}

impl Streams {
    /// Counts a stream of a leader until the result is dropped.
    pub(super) fn open(&self, leader: LeaderId) -> OpenStream {
        // Nobody waits for a stream to be opened.
        self.0.send_if_modified(|counts| {
            counts.leaders.retain(|&other, count| other == leader || count.open > 0);
            counts.opened += 1;
            let count = counts.leaders.entry(leader).or_default();
            (count.open, count.last) = (count.open + 1, counts.opened);
            false
        });
        OpenStream { streams: self.clone(), leader }
    }
}

/// An append stream that is open.
pub(super) struct OpenStream {
    streams: Streams,
    leader: LeaderId,
}

impl Drop for OpenStream {
    fn drop(&mut self) {
        // A heartbeat has a stream of its own, which ends, but beside it the leader keeps one for its log.
        self.streams.0.send_if_modified(|counts| {
            let Some(count) = counts.leaders.get_mut(&self.leader) else { return false };
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
    pub(crate) disk: watch::Receiver<Disk>,
    pub(crate) env: Env,
}

/// A leader whose streams have ended.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Gone {
    leader: LeaderId,
    /// The number of its last stream.
    last: u64,
    /// The number of voters that begin before this one.
    turn: u32,
}

impl Succession {
    /// Runs until it is aborted.
    pub(crate) async fn run(self) {
        let mut seen = self.streams.0.subscribe();
        while seen.changed().await.is_ok() {
            let Some(gone) = self.gone() else { continue };
            self.env.clock.sleep(ELECTION_MAX + SLACK + TURN * gone.turn).await;
            if self.gone() != Some(gone) {
                // The leader lives, or another one does.
                continue;
            }
            // A member that cannot append must not be elected.
            if self.disk.borrow().room == Room::None {
                continue;
            }
            tracing::info!("the leader's connection has ended, and so has its lease");
            // A pre-vote asks the others whether the lease has ended for them too.
            if let Err(error) = self.raft.trigger().elect(true).await {
                tracing::debug!(%error, "raft has stopped");
            }
        }
    }

    /// The leader, if its streams have ended. None for a member that has no leader to succeed.
    fn gone(&self) -> Option<Gone> {
        let metrics = self.raft.server_metrics();
        let metrics = metrics.borrow_watched();
        metrics.current_leader.filter(|&leader| leader != self.member.0)?;
        let leader = metrics.vote.leader_id;
        let last = self.streams.0.borrow().ended(&leader)?;
        let voters = metrics.membership_config.membership().voter_ids();
        Some(Gone { leader, last, turn: turn(voters, leader.node_id, self.member.0)? })
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

    fn leader(term: u64) -> LeaderId {
        LeaderId { term, node_id: term }
    }

    #[test]
    fn only_the_end_of_the_last_stream_is_told() {
        let streams = Streams::default();
        let seen = streams.0.subscribe();
        let (log, heartbeat) = (streams.open(leader(1)), streams.open(leader(1)));
        drop(heartbeat);
        assert!(!seen.has_changed().expect("open"), "the leader's log has a stream");
        drop(log);
        assert!(seen.has_changed().expect("open"));
    }

    #[test]
    fn a_stream_of_an_earlier_leader_hides_no_end() {
        let streams = Streams::default();
        let seen = streams.0.subscribe();
        let ended = |term| streams.0.borrow().ended(&leader(term));
        let stale = streams.open(leader(1));
        let log = streams.open(leader(2));
        assert_eq!(ended(2), None, "it is open");
        drop(log);
        assert!(seen.has_changed().expect("open"));
        assert_eq!((ended(1), ended(2)), (None, Some(2)));
        drop(streams.open(leader(2)));
        assert_eq!(ended(2), Some(3), "another stream was open meanwhile");
        let next = streams.open(leader(3));
        assert_eq!((ended(2), ended(3)), (None, None), "another one leads");
        drop((stale, next));
        assert_eq!((ended(1), ended(3)), (Some(1), Some(4)));
    }

    #[test]
    fn voters_take_turns() {
        let turns = |member| turn([3, 1, 2, 5].into_iter(), 2, member);
        assert_eq!([1, 3, 5].map(turns), [Some(0), Some(1), Some(2)]);
        assert_eq!(turns(4), None, "a learner begins nothing");
    }
}
