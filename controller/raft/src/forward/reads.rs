//! Linearizable reads on a follower: one question to the leader serves all readers that arrived before it.

use atlas_types::Seq;
use tokio::sync::{mpsc, oneshot, watch};

use super::LeaderLink;
use crate::error::{Leadership, ReadError};

/// A reader that wants to know how far a state must be.
pub(crate) type Ask = oneshot::Sender<Result<Seq, ReadError>>;

/// Readers that share a question, and that may wait for the next one.
pub(crate) const READERS_MAX: usize = 16_384;

/// Puts the questions, one after the other. A reader never shares one that was put before it came.
pub(crate) struct ReadIndexer {
    pub(crate) link: LeaderLink,
    pub(crate) leadership: watch::Receiver<Leadership>,
    pub(crate) asks: mpsc::Receiver<Ask>,
}

impl ReadIndexer {
    /// Runs until no caller is left.
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
            // The old leader's answer may never come; nothing is lost by asking the next one.
            _ = self.leadership.changed() => Err(ReadError::NotLeader { leader: None }),
        }
    }
}
