//! Members compare their states (B.40): equal chains prove that two members applied the same entries with the same
//! answers, equal digests that their whole states are equal.
//!
//! Each member computes a digest of its state after a number of entries, in the background, and reports it by a
//! command. All members see all reports in the same order; a member whose digest differs from that of a majority of the
//! voters reports this and stops ([ADR 10](../../../../docs/adr/0010-digest-exchange.md)).

use std::collections::BTreeMap;
use std::sync::Arc;

use atlas_env::Env;
use atlas_state::State;
use atlas_types::{MemberId, ReportDigest, Seq};
use openraft::async_runtime::WatchReceiver;
use tokio::sync::{mpsc, watch};

use crate::machine::Raft;

/// The most states and reports that wait for the keeper. Further ones are left out of the comparison.
const SEEN_MAX: usize = 16;
/// How many states' digests are remembered.
const REMEMBERED: usize = 8;

/// A state that a majority of the voters was found to have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Agreement {
    /// The number of entries applied to it; 0 before the first agreement.
    pub seq: Seq,
}

/// A message from the state machine to the keeper.
pub(crate) enum Seen {
    /// A state whose digest is due.
    Due(Box<State>),
    /// A member's report.
    Reported(ReportDigest),
}

/// The state machine's end of the channel to the keeper.
#[derive(Clone)]
pub(crate) struct Checks {
    every: u64,
    seen: mpsc::Sender<Seen>,
}

impl Checks {
    /// Requests a digest after every `every` entries; 0 requests none.
    pub(crate) fn new(every: u64) -> (Self, mpsc::Receiver<Seen>) {
        let (seen, keeper) = mpsc::channel(SEEN_MAX);
        (Self { every, seen }, keeper)
    }

    /// Handles an applied entry. If the keeper cannot keep up, a digest is skipped, because the next one is as good.
    pub(crate) fn applied(&self, state: &State, reports: &[ReportDigest]) {
        for report in reports {
            let _ = self.seen.try_send(Seen::Reported(*report));
        }
        let due = state.seq().0.checked_rem(self.every) == Some(0);
        if due && self.seen.capacity() > SEEN_MAX / 2 {
            let _ = self.seen.try_send(Seen::Due(Box::new(state.clone())));
        }
    }
}

/// Tells the other members a digest, without waiting for them.
pub(crate) type Report = Box<dyn Fn(ReportDigest) + Send + Sync>;

/// Computes digests, reports them and compares them.
pub(crate) struct DigestKeeper {
    pub(crate) raft: Raft,
    pub(crate) report: Report,
    pub(crate) seen: mpsc::Receiver<Seen>,
    pub(crate) agreement: watch::Sender<Agreement>,
    pub(crate) env: Env,
}

impl DigestKeeper {
    /// Runs until this member is found to differ. Returns the reason to stop.
    pub(crate) async fn run(mut self) -> Arc<str> {
        let member = MemberId(*self.raft.node_id());
        let mut digests = Digests::default();
        while let Some(seen) = self.seen.recv().await {
            let seq = match seen {
                Seen::Due(state) => {
                    if self.is_alone() {
                        continue;
                    }
                    let seq = state.seq();
                    let take = move || atlas_format::digest_state(&state.to_image());
                    let Ok(digest) = self.env.spawn_blocking("state-digest", take).join().await else { continue };
                    digests.own(seq, digest);
                    (self.report)(ReportDigest { member, seq, digest });
                    seq
                }
                Seen::Reported(report) => {
                    digests.reported(report);
                    report.seq
                }
            };
            let voters: Vec<MemberId> = self.raft.voter_ids().map(MemberId).collect();
            match digests.verdict(seq, &voters) {
                DigestComparison::Open => {}
                DigestComparison::Agrees => drop(self.agreement.send_replace(Agreement { seq })),
                DigestComparison::Differs => {
                    return format!(
                        "the state of member {member} after entry {seq} differs from the other controllers: stop it, empty its data directory and let it join again"
                    )
                    .into();
                }
            }
        }
        // The state machine is gone, so the member is already stopping.
        std::future::pending().await
    }

    /// Whether there are no other members to compare with.
    fn is_alone(&self) -> bool {
        self.raft.server_metrics().borrow_watched().membership_config.membership().nodes().count() < 2
    }
}

/// How one member's state compares with the others.
#[derive(Debug, PartialEq, Eq)]
enum DigestComparison {
    /// There are too few reports.
    Open,
    /// A majority has the same state as this member.
    Agrees,
    /// A majority has another state, or no majority is possible.
    Differs,
}

/// Digests by the number of entries.
#[derive(Debug, Default)]
struct Digests {
    own: BTreeMap<Seq, [u8; 32]>,
    reported: BTreeMap<Seq, BTreeMap<MemberId, [u8; 32]>>,
}

impl Digests {
    fn own(&mut self, seq: Seq, digest: [u8; 32]) {
        self.own.insert(seq, digest);
        if self.own.len() > REMEMBERED {
            self.own.pop_first();
        }
    }

    fn reported(&mut self, ReportDigest { member, seq, digest }: ReportDigest) {
        self.reported.entry(seq).or_default().insert(member, digest);
        if self.reported.len() > REMEMBERED {
            self.reported.pop_first();
        }
    }

    fn verdict(&self, seq: Seq, voters: &[MemberId]) -> DigestComparison {
        let (Some(own), Some(reported)) = (self.own.get(&seq), self.reported.get(&seq)) else {
            return DigestComparison::Open;
        };
        let mut counts: BTreeMap<&[u8; 32], usize> = BTreeMap::new();
        let told: Vec<_> = voters.iter().filter_map(|voter| reported.get(voter)).collect();
        told.iter().for_each(|digest| *counts.entry(digest).or_default() += 1);
        let shared = counts.into_iter().find(|(_, count)| 2 * count > voters.len());
        match shared {
            Some((digest, _)) if digest == own => DigestComparison::Agrees,
            Some(_) => DigestComparison::Differs,
            // All voters have reported and there is no majority.
            None if told.len() == voters.len() => DigestComparison::Differs,
            None => DigestComparison::Open,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const VOTERS: [MemberId; 3] = [MemberId(1), MemberId(2), MemberId(3)];

    fn verdict(own: u8, reports: &[(u64, u8)]) -> DigestComparison {
        let mut digests = Digests::default();
        digests.own(Seq(10), [own; 32]);
        for &(member, digest) in reports {
            digests.reported(ReportDigest { member: MemberId(member), seq: Seq(10), digest: [digest; 32] });
        }
        digests.verdict(Seq(10), &VOTERS)
    }

    #[test]
    fn a_majority_decides_who_differs() {
        assert_eq!(verdict(1, &[(1, 1)]), DigestComparison::Open);
        assert_eq!(verdict(1, &[(1, 1), (3, 1)]), DigestComparison::Agrees);
        assert_eq!(verdict(1, &[(1, 1), (2, 2)]), DigestComparison::Open);
        assert_eq!(verdict(2, &[(1, 1), (2, 2), (3, 1)]), DigestComparison::Differs);
        assert_eq!(verdict(1, &[(1, 1), (2, 2), (3, 1)]), DigestComparison::Agrees);
    }

    #[test]
    fn a_learner_compares_with_the_voters_and_does_not_count() {
        assert_eq!(verdict(7, &[(1, 1), (4, 7), (5, 7)]), DigestComparison::Open);
        assert_eq!(verdict(7, &[(1, 1), (2, 1), (4, 7)]), DigestComparison::Differs);
    }

    #[test]
    fn where_no_two_agree_nobody_goes_on() {
        assert_eq!(verdict(1, &[(1, 1), (2, 2), (3, 3)]), DigestComparison::Differs);
    }

    #[test]
    fn another_state_says_nothing() {
        let mut digests = Digests::default();
        digests.own(Seq(20), [1; 32]);
        VOTERS.iter().for_each(|&member| digests.reported(ReportDigest { member, seq: Seq(10), digest: [2; 32] }));
        assert_eq!(digests.verdict(Seq(20), &VOTERS), DigestComparison::Open);
        assert_eq!(digests.verdict(Seq(10), &VOTERS), DigestComparison::Open);
    }
}
