//! What a running attempt says: lines, and pieces of models' answers.

use std::sync::Arc;

use atlas_types::{Attempt, Delta, StreamEvent};

/// One line with its attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line {
    /// The attempt.
    pub attempt: Attempt,
    /// The content of the line.
    pub event: StreamEvent,
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
