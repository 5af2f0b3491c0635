//! The log lines of jobs.

use atlas_artifacts::{Line, LineCursor};
use atlas_lines::{LiveLines, LogReader};
use atlas_types::{Attempt, FencingToken, Job, JobId, NodeId};

use crate::{Caller, Error, LeadershipLost, Service};

impl Service {
    /// The lines of a job so far as a JSON array, also those of earlier attempts.
    pub async fn logs(&self, caller: &Caller, id: JobId) -> Result<Vec<u8>, Error> {
        self.shared.logs.logs(caller, id).await
    }

    /// Follows the lines of a job after those that the reader has, given as an attempt and a line number. With pieces, the reader
    /// also receives the answers of models as they form.
    pub async fn follow_logs(
        &self,
        caller: &Caller,
        id: JobId,
        seen: Option<(Attempt, u64)>,
        with_pieces: bool,
    ) -> Result<LogReader, Error> {
        self.shared.logs.follow_logs(caller, id, seen, with_pieces).await
    }

    /// Stores the lines of a running attempt so far, for the holder of its lease.
    pub async fn store_log(&self, job: JobId, node: NodeId, token: FencingToken) -> Result<(), Error> {
        self.shared.logs.store_log(job, node, token).await
    }

    /// Lines of an attempt, after the stored lines that are older. A line says so if those cannot be read.
    pub async fn whole_log(&self, job: &Job, lines: Vec<u8>) -> Vec<u8> {
        self.shared.logs.whole_log(job, lines).await
    }

    /// For the other members: follows the lines of a running attempt, if this member leads.
    pub fn live_lines(&self, place: LineCursor, with_pieces: bool) -> LiveLines {
        self.shared.logs.live_lines(place, with_pieces)
    }

    /// For the other members: the lines of a running attempt so far, if this member leads.
    pub fn lines_now(&self, place: LineCursor) -> Result<Vec<Line>, LeadershipLost> {
        self.shared.logs.lines_now(place)
    }
}
