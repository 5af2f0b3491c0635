//! What is written down: log entries and snapshots as atlas.state.v1.
