//! The agent loop: `step(state, event) -> effects`. Pure: it knows no clock and does no I/O.

use atlas_model::Request;

/// What the loop asks its driver to do.
#[derive(Debug, Clone, PartialEq)]
pub enum Effect {
    /// Call the model, and report the answer.
    Call(Box<Request>),
}
