//! Empty appends, which only announce commits to a follower, are sent with the next entry if one comes soon.
//!
//! openraft sends such an append as soon as an entry is committed: before the proposer is answered, and before the next
//! entry, which announces the same commit, is planned. Each would cost the leader and the followers as much as another
//! entry. Only members whose clients read their own proposals, or read through them, wait for commits. These members
//! report it.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use atlas_env::Clock;
use futures::{Stream, StreamExt, stream};
use openraft::raft::AppendEntriesRequest;
use tokio::sync::Notify;

use super::Types;

type Append = AppendEntriesRequest<Types>;

/// How long a commit announcement waits for the next entry.
const HELD: Duration = Duration::from_millis(1);

/// The members that must learn about commits at once.
#[derive(Clone, Default)]
pub(crate) struct Hurry(Arc<Mutex<BTreeMap<u64, Arc<Notify>>>>);

impl Hurry {
    /// Notes that a member waits for entries committed so far.
    pub(crate) fn tell(&self, member: u64) {
        if let Some(told) = self.0.lock().unwrap_or_else(PoisonError::into_inner).get(&member) {
            told.notify_waiters();
        }
    }

    /// Notified when `member` waits.
    pub(super) fn of(&self, member: u64) -> Arc<Notify> {
        Arc::clone(self.0.lock().unwrap_or_else(PoisonError::into_inner).entry(member).or_default())
    }
}

/// Passes on `appends`. An append without entries is dropped if the next append comes within [`HELD`] and before
/// `hurry`.
pub(super) fn unhurried(
    appends: impl Stream<Item = Append> + Unpin + Send,
    clock: Arc<dyn Clock>,
    hurry: Arc<Notify>,
) -> impl Stream<Item = Append> + Send {
    // `fuse` is needed because the stream is polled once more after its end.
    stream::unfold((appends.fuse(), clock, hurry), |(mut appends, clock, hurry)| async move {
        let mut next = appends.next().await?;
        while next.entries.is_empty() {
            tokio::select! {
                biased;
                later = appends.next() => match later {
                    Some(later) => next = later,
                    None => break,
                },
                () = hurry.notified() => break,
                () = clock.sleep(HELD) => break,
            }
        }
        Some((next, (appends, clock, hurry)))
    })
}

#[cfg(test)]
mod tests {
    use std::pin::Pin;

    use atlas_env::Env;
    use openraft::vote::RaftLeaderId;
    use tokio::sync::mpsc;
    use tokio::time::Instant;

    use super::*;
    use crate::consensus::{Proposal, RaftEntry, RaftLogId, RaftVote};

    fn id(index: u64) -> RaftLogId {
        RaftLogId { leader_id: RaftLeaderId::new(1, 1), index }
    }

    fn append(entry: Option<u64>, committed: u64) -> Append {
        let payload = || openraft::EntryPayload::Normal(Proposal::new(Vec::new()));
        let entries = entry.map(|index| RaftEntry { log_id: id(index), payload: payload() });
        AppendEntriesRequest {
            vote: RaftVote { leader_id: RaftLeaderId::new(1, 1), committed: true },
            prev_log_id: None,
            entries: entries.into_iter().collect(),
            leader_commit: Some(id(committed)),
        }
    }

    /// The last index of an append, and the index that it commits.
    fn told(append: &Append) -> (Option<u64>, Option<u64>) {
        (append.entries.last().map(|entry| entry.log_id.index), append.leader_commit.map(|id| id.index))
    }

    type Sent = Pin<Box<dyn Stream<Item = (Option<u64>, Option<u64>)>>>;

    fn channel() -> (mpsc::UnboundedSender<Append>, Sent, Arc<Notify>) {
        let (sender, receiver) = mpsc::unbounded_channel();
        let received = stream::unfold(receiver, |mut receiver| async move { Some((receiver.recv().await?, receiver)) });
        let hurry = Hurry::default().of(2);
        let sent = unhurried(Box::pin(received), Env::system().clock, Arc::clone(&hurry)).map(|append| told(&append));
        (sender, Box::pin(sent), hurry)
    }

    #[tokio::test(start_paused = true)]
    async fn a_commit_goes_with_the_entry_that_comes_next() {
        let (sender, mut sent, _) = channel();
        sender.send(append(Some(1), 0)).expect("open");
        sender.send(append(None, 1)).expect("open");
        assert_eq!(sent.next().await, Some((Some(1), Some(0))));
        let later = async {
            tokio::time::timeout(HELD / 2, std::future::pending::<()>()).await.expect_err("only the time passes");
            sender.send(append(Some(2), 1)).expect("open");
        };
        let (with, ()) = tokio::join!(sent.next(), later);
        assert_eq!(with, Some((Some(2), Some(1))));
    }

    #[tokio::test(start_paused = true)]
    async fn a_commit_alone_is_sent_when_nothing_comes() {
        let (sender, mut sent, _) = channel();
        let begun = Instant::now();
        sender.send(append(None, 1)).expect("open");
        assert_eq!(sent.next().await, Some((None, Some(1))));
        assert!(begun.elapsed() >= HELD);
        sender.send(append(None, 2)).expect("open");
        sender.send(append(None, 3)).expect("open");
        drop(sender);
        assert_eq!(sent.next().await, Some((None, Some(3))));
        assert_eq!(sent.next().await, None);
    }

    #[tokio::test(start_paused = true)]
    async fn a_member_that_waits_is_told_at_once() {
        let (sender, mut sent, hurry) = channel();
        let begun = Instant::now();
        sender.send(append(None, 1)).expect("open");
        let (alone, ()) = tokio::join!(biased; sent.next(), async { hurry.notify_waiters() });
        assert_eq!((alone, begun.elapsed()), (Some((None, Some(1))), Duration::ZERO));
    }
}
