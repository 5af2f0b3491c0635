//! What a running attempt says: lines, and pieces of models' answers.

use std::sync::Arc;

use atlas_types::{Attempt, Delta, StreamEvent, StreamKind};

use crate::json;

/// One line with its attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line {
    /// The attempt.
    pub attempt: Attempt,
    /// The content of the line.
    pub event: StreamEvent,
}

impl Line {
    /// Appends the line as JSON.
    pub fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(b"{\"attempt\":");
        json::integer(out, i128::from(self.attempt.0));
        out.extend_from_slice(b",\"number\":");
        json::integer(out, i128::from(self.event.number));
        out.extend_from_slice(b",\"at\":");
        json::time(out, self.event.at);
        out.extend_from_slice(match self.event.kind {
            StreamKind::Log => b",\"kind\":\"log\"".as_slice(),
            StreamKind::Progress => b",\"kind\":\"progress\"",
        });
        out.extend_from_slice(b",\"level\":");
        json::string(out, &self.event.level);
        out.extend_from_slice(b",\"text\":");
        json::string(out, &self.event.text);
        out.push(b'}');
    }
}

/// Pieces of models' answers from one frame of a worker.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pieces {
    /// Which try.
    pub attempt: Attempt,
    /// What it said.
    pub deltas: Vec<Delta>,
}

/// The output of a running attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AttemptOutput {
    /// Lines, by rising number.
    Lines(Vec<Line>),
    /// Pieces of models' answers.
    Pieces(Arc<Pieces>),
}
