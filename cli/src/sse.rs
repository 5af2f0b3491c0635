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
    /// Adds a piece of the stream and returns the events that it completes. One whose data is empty says nothing, and is dropped.
    pub(crate) fn push(&mut self, piece: &[u8]) -> Result<Vec<ServerEvent>, Failure> {
        let mut events = Vec::new();
        let pushed = self.0.push(piece, &mut events);
        pushed.map_err(|error| Failure::answer(format!("an event is longer than {} bytes", error.max)))?;
        events.retain(|event| !event.data.is_empty());
        Ok(events)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_with_empty_data_is_dropped() {
        let mut reader = Reader::default();
        let events = reader.push(b"id: 1\ndata:\n\ndata\n\nid: 2\ndata: x\n\n").expect("short events");
        let events: Vec<_> = events.iter().map(|event| (event.id.as_str(), event.data.as_str())).collect();
        assert_eq!(events, [("2", "x")]);
    }

    #[test]
    fn an_event_has_at_most_16_mib() {
        let data = |bytes: usize| [b"data:", "x".repeat(bytes).as_bytes(), b"\n\n"].concat();
        let longest = EVENT_BYTES_MAX - "data:".len();
        let events = Reader::default().push(&data(longest)).expect("as long as it may be");
        assert_eq!(events.len(), 1);
        let failure = Reader::default().push(&data(longest + 1)).expect_err("refused");
        assert!(failure.to_string().contains("an event is longer than 16777216 bytes"), "{failure}");
    }
}
