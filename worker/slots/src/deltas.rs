//! Pieces of models' answers that wait for the next frame to the leader. Adjacent pieces are joined, their bytes are limited, and
//! nothing is sent twice. A follower detects missing pieces by their offsets.

use std::collections::BTreeMap;

use atlas_types::{Attempt, Delta, FencingToken, JobId};

/// The pieces of all attempts that wait for the next frame.
#[derive(Debug)]
pub struct Deltas {
    bytes_max: usize,
    attempts: BTreeMap<FencingToken, Waiting>,
}

/// What one attempt has said since the last frame.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeltaBatch {
    pub job: JobId,
    /// Which try.
    pub attempt: Attempt,
    pub deltas: Vec<Delta>,
}

#[derive(Debug)]
struct Waiting {
    job: JobId,
    attempt: Attempt,
    /// The step and try of the last piece, and the bytes of its answer so far.
    call: (u32, u32),
    said: u64,
    deltas: Vec<Delta>,
    bytes: usize,
}

impl Deltas {
    /// Pieces of one attempt in one frame, at most. Pieces of one call are joined, so there are more only where calls alternate.
    const PIECES_MAX: usize = 64;

    /// Keeps at most so many bytes of each attempt until they are taken.
    pub fn new(bytes_max: usize) -> Self {
        Self { bytes_max, attempts: BTreeMap::new() }
    }

    /// Begins an attempt, unless it has begun.
    pub fn open(&mut self, job: JobId, attempt: Attempt, token: FencingToken) {
        let begun = || Waiting { job, attempt, call: (0, 0), said: 0, deltas: Vec::new(), bytes: 0 };
        self.attempts.entry(token).or_insert_with(begun);
    }

    /// Adds a piece of a call, which is given by its step and try. Text beyond the limit is dropped; the offset of the next piece shows
    /// how much. True if something waits to be sent.
    pub fn push(&mut self, token: FencingToken, call: (u32, u32), text: &str) -> bool {
        let Some(waiting) = self.attempts.get_mut(&token) else { return false };
        // A piece without text says that another try of the step begins, and that what the one before said is void.
        let is_mark = text.is_empty() && waiting.call.0 == call.0 && waiting.call != call && waiting.said > 0;
        if waiting.call != call {
            (waiting.call, waiting.said) = (call, 0);
        }
        let offset = waiting.said;
        waiting.said += text.len() as u64;
        let text = prefix(text, self.bytes_max - waiting.bytes);
        if text.is_empty() && !is_mark {
            return !waiting.deltas.is_empty();
        }
        let (step, try_number) = call;
        let joins = waiting
            .deltas
            .last()
            .is_some_and(|last| (last.step, last.try_number) == call && last.offset + last.text.len() as u64 == offset);
        if let Some(last) = waiting.deltas.last_mut().filter(|_| joins) {
            last.text.push_str(text);
        } else if waiting.deltas.len() == Self::PIECES_MAX {
            return true;
        } else {
            waiting.deltas.push(Delta { step, try_number, offset, text: text.to_owned() });
        }
        waiting.bytes += text.len();
        true
    }

    /// What waits to be sent.
    pub fn take(&mut self) -> Vec<DeltaBatch> {
        let some = self.attempts.values_mut().filter(|waiting| !waiting.deltas.is_empty());
        let batch = |waiting: &mut Waiting| {
            waiting.bytes = 0;
            DeltaBatch { job: waiting.job, attempt: waiting.attempt, deltas: std::mem::take(&mut waiting.deltas) }
        };
        some.map(batch).collect()
    }

    /// Forgets an attempt that has ended.
    pub fn close(&mut self, token: FencingToken) {
        self.attempts.remove(&token);
    }
}

/// The longest prefix of whole characters within a limit.
fn prefix(text: &str, bytes_max: usize) -> &str {
    &text[..text.floor_char_boundary(bytes_max)]
}

#[cfg(test)]
mod tests {
    use super::*;

    const TOKEN: FencingToken = FencingToken(7);

    fn deltas(bytes_max: usize) -> Deltas {
        let mut deltas = Deltas::new(bytes_max);
        deltas.open(JobId(1), Attempt(1), TOKEN);
        deltas
    }

    fn taken(deltas: &mut Deltas) -> Vec<(u32, u32, u64, String)> {
        let all = deltas.take().into_iter().flat_map(|batch| batch.deltas);
        all.map(|delta| (delta.step, delta.try_number, delta.offset, delta.text)).collect()
    }

    #[test]
    fn pieces_of_one_call_are_joined() {
        let mut deltas = deltas(100);
        assert!(deltas.push(TOKEN, (1, 1), "Hel") && deltas.push(TOKEN, (1, 1), "lo"));
        assert_eq!(taken(&mut deltas), [(1, 1, 0, "Hello".to_owned())]);
        assert!(deltas.push(TOKEN, (1, 1), "!") && deltas.push(TOKEN, (1, 2), "H") && deltas.push(TOKEN, (2, 1), "x"));
        let said = [(1, 1, 5, "!"), (1, 2, 0, "H"), (2, 1, 0, "x")];
        assert_eq!(taken(&mut deltas), said.map(|(step, tries, offset, text)| (step, tries, offset, text.to_owned())));
        assert!(taken(&mut deltas).is_empty());
    }

    #[test]
    fn a_try_without_text_is_told_if_the_one_before_had_some() {
        let mut deltas = deltas(100);
        assert!(!deltas.push(TOKEN, (1, 1), "") && !deltas.push(TOKEN, (1, 2), ""));
        assert!(deltas.push(TOKEN, (1, 2), "Hal") && deltas.push(TOKEN, (1, 3), "") && deltas.push(TOKEN, (1, 4), ""));
        assert_eq!(taken(&mut deltas), [(1, 2, 0, "Hal".to_owned()), (1, 3, 0, String::new())]);
        assert!(deltas.push(TOKEN, (1, 4), "x") && deltas.push(TOKEN, (1, 5), "") && deltas.push(TOKEN, (1, 5), "y"));
        assert_eq!(taken(&mut deltas), [(1, 4, 0, "x".to_owned()), (1, 5, 0, "y".to_owned())]);
    }

    #[test]
    fn a_flood_is_dropped_and_the_offset_shows_it() {
        let mut deltas = deltas(4);
        assert!(deltas.push(TOKEN, (1, 1), "abé!") && deltas.push(TOKEN, (1, 1), "lost"));
        assert_eq!(taken(&mut deltas), [(1, 1, 0, "abé".to_owned())]);
        assert!(deltas.push(TOKEN, (1, 1), "x"));
        assert_eq!(taken(&mut deltas), [(1, 1, 9, "x".to_owned())]);
        for step in 0..1_000 {
            deltas.push(TOKEN, (step, 1), "");
        }
        assert!(taken(&mut deltas).is_empty());
    }

    #[test]
    fn an_attempt_that_is_over_says_nothing() {
        let mut deltas = deltas(4);
        deltas.push(TOKEN, (1, 1), "a");
        deltas.close(TOKEN);
        assert!(!deltas.push(TOKEN, (1, 1), "b") && taken(&mut deltas).is_empty());
    }
}
