//! Reads streams of events from controllers.

use atlas_http::sse::{Parser, ServerEvent};

use crate::failure::Failure;

/// Maximum size of an event.
const EVENT_BYTES_MAX: usize = 16 << 20;

/// Assembles events from the received pieces.
#[derive(Debug)]
pub(crate) struct Reader(Parser);

impl Default for Reader {
    fn default() -> Self {
        Self(Parser::new(EVENT_BYTES_MAX))
    }
}

impl Reader {
    /// Adds a piece of the stream and returns the events that it completes.
    pub(crate) fn push(&mut self, piece: &[u8]) -> Result<Vec<ServerEvent>, Failure> {
        let mut events = Vec::new();
        let pushed = self.0.push(piece, &mut events);
        pushed.map_err(|error| Failure::answer(format!("an event is longer than {} bytes", error.max)))?;
        Ok(events)
    }
}
