//! The embedded SQL projection of events.
