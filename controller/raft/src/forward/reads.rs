//! Linearizable reads on a follower: one request to the leader serves all readers that arrived before it.

use atlas_types::Seq;
use tokio::sync::{mpsc, oneshot, watch};

use super::LeaderLink;
use crate::error::{Leadership, ReadError};

/// A reader that waits to learn how many entries its state must contain.
pub(crate) type Ask = oneshot::Sender<Result<Seq, ReadError>>;

/// The most readers that share one request to the leader, and the most that wait for the next one.
pub(crate) const READERS_MAX: usize = 16_384;

/// Asks the leader, one request at a time. A reader never shares a request that was sent before the reader arrived.
pub(crate) struct ReadIndexer {
    pub(crate) link: LeaderLink,
    pub(crate) leadership: watch::Receiver<Leadership>,
    pub(crate) asks: mpsc::Receiver<Ask>,
}

impl ReadIndexer {
    /// Runs until there are no callers left.
    pub(crate) async fn run(mut self) {
        let mut readers = Vec::new();
        while self.asks.recv_many(&mut readers, READERS_MAX).await > 0 {
            let answer = self.ask().await;
            // A caller that gave up waiting needs no answer.
            readers.drain(..).for_each(|reader| drop(reader.send(answer.clone())));
        }
    }

    async fn ask(&mut self) -> Result<Seq, ReadError> {
        let now = self.leadership.borrow_and_update().clone();
        let Leadership::Follower { leader: Some(leader) } = now else {
            return Err(ReadError::NotLeader { leader: None });
        };
        tokio::select! {
            biased;
            answer = self.link.read_index(&leader) => answer,
            // The old leader may never answer. A repeated question at the next leader is harmless.
            _ = self.leadership.changed() => Err(ReadError::NotLeader { leader: None }),
        }
    }
}
