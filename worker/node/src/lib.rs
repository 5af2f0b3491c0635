//! The worker program: runs agents.
