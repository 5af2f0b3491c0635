//! Limits on what a provider may send.

/// Maximum size of an answer: of the body if it arrives whole, of its texts and arguments if it arrives in pieces.
pub const ANSWER_BYTES_MAX: usize = 8 << 20;

/// Maximum number of tool calls in an answer.
pub const CALLS_MAX: usize = 128;

/// Maximum number of parts of an answer. Providers that interleave texts and reasoning send a few dozen.
pub const PARTS_MAX: usize = 1024;

/// Maximum size of one event or line of a stream. A stream of the responses API repeats the whole answer in its last event.
pub const EVENT_BYTES_MAX: usize = ANSWER_BYTES_MAX;

/// Maximum number of values in one JSON document. A value takes up to 100 bytes of memory.
pub const JSON_VALUES_MAX: usize = 200_000;

/// Bytes that are read of an answer that reports an error.
pub const ERROR_BODY_BYTES_MAX: usize = 64 << 10;

/// Maximum size of the message of a [`CallError`](atlas_model::CallError).
pub const MESSAGE_BYTES_MAX: usize = 2 << 10;
