//! The log lines of jobs and what models answer meanwhile: kept at the leader while an attempt runs (`streams`), stored with the job
//! (`stored`), and read on any controller (`reader`).

mod reader;
mod stored;
mod streams;

use std::sync::Arc;

use atlas_desk::Desk;

pub use reader::{LiveLines, LogLine, LogOutput, LogReader, Piece};
pub use streams::Streams;

/// The log lines of jobs. Cheap to clone.
#[derive(Clone)]
pub struct JobLogs {
    desk: Arc<Desk>,
    streams: Streams,
}

impl JobLogs {
    /// For a controller that has just started: no attempt streams to it yet.
    pub fn new(desk: Arc<Desk>) -> Self {
        Self { desk, streams: Streams::default() }
    }

    /// The lines of running attempts.
    pub fn streams(&self) -> &Streams {
        &self.streams
    }
}
