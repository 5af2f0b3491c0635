//! Reads the log lines of attempts and what models answer meanwhile, on any member and across changes of leadership.
//!
//! Workers send lines only to the leader. A follower requests them from it; when leadership changes, the reader
//! continues at the next leader after its last line. The worker keeps all lines until the attempt's end is committed
//! and sends them again to the next leader. Lines missed at the end of the attempt are read from the job.

mod pieces;

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use atlas_artifacts::{ArrivingLines, AttemptOutput, Following, Line, LineCursor, Pieces};
use atlas_desk::{Caller, Consistency, Desk, Error, LeadershipLost, json};
use atlas_raft::Leadership;
use atlas_types::{Attempt, ErrorKind, Job, JobId, MemberId};
use futures::StreamExt;
use serde::Deserialize;
use serde_json::value::RawValue;
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::{broadcast, watch};

use self::pieces::Answer;
pub use self::pieces::Piece;
use crate::JobLogs;
use crate::streams::{array, write_line};

/// The pause before a leader that did not answer is asked again.
const PAUSE: Duration = Duration::from_millis(100);
/// How often a leader is asked for the current lines before the client gets an error.
const TRIES_MAX: u32 = 50;

/// A line as it is delivered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogLine {
    /// The attempt that produced it.
    pub attempt: Attempt,
    /// Its number within the attempt.
    pub number: u64,
    /// The line, a JSON object.
    pub json: Vec<u8>,
}

impl From<Line> for LogLine {
    fn from(line: Line) -> Self {
        let mut json = Vec::with_capacity(128);
        write_line(&line, &mut json);
        Self { attempt: line.attempt, number: line.event.number, json }
    }
}

/// The lines of a running attempt, at the leader.
pub struct LiveLines {
    logs: JobLogs,
    place: LineCursor,
    grown: watch::Receiver<()>,
    /// Pieces of models' answers, if they are wanted.
    pieces: Option<broadcast::Receiver<Arc<Pieces>>>,
    leadership: watch::Receiver<Leadership>,
}

impl LiveLines {
    fn open(logs: &JobLogs, place: LineCursor, with_pieces: bool) -> Self {
        let pieces = with_pieces.then(|| logs.streams.follow_pieces(place.job));
        let (grown, leadership) = (logs.streams.watch(place.job), logs.desk.handle.leadership());
        // The job may have ended before `watch`, and its entry would then never be removed.
        if logs.desk.handle.applied().job(place.job).is_none_or(|job| job.status.is_terminal()) {
            logs.streams.forget(place.job);
        }
        Self { logs: logs.clone(), place, grown, pieces, leadership }
    }

    /// Waits for the next lines or pieces. None once the attempt has ended.
    pub async fn next(&mut self) -> Result<Option<AttemptOutput>, LeadershipLost> {
        loop {
            if !matches!(*self.leadership.borrow_and_update(), Leadership::Leader { .. }) {
                return Err(LeadershipLost);
            }
            let lines = self.logs.streams.after(self.place);
            if let Some(last) = lines.last() {
                (self.place.attempt, self.place.after) = (last.attempt, last.event.number);
                return Ok(Some(AttemptOutput::Lines(lines)));
            }
            tokio::select! {
                biased;
                _ = self.leadership.changed() => {}
                pieces = next_pieces(&mut self.pieces) => return Ok(Some(AttemptOutput::Pieces(pieces))),
                grown = self.grown.changed() => if grown.is_err() {
                    return Ok(None);
                },
            }
        }
    }
}

/// Waits for the next pieces. A slow reader misses some; the offsets show which.
async fn next_pieces(from: &mut Option<broadcast::Receiver<Arc<Pieces>>>) -> Arc<Pieces> {
    while let Some(pieces) = from {
        match pieces.recv().await {
            Ok(pieces) => return pieces,
            Err(RecvError::Lagged(_)) => {}
            // The attempt has ended, as the lines tell.
            Err(RecvError::Closed) => *from = None,
        }
    }
    std::future::pending().await
}

/// What a reader of a job's log receives.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LogOutput {
    /// Lines, by rising number.
    Lines(Vec<LogLine>),
    /// Pieces of models' answers, and what is missing between them.
    Pieces(Vec<Piece>),
}

/// The source of a reader's lines.
enum Source {
    /// No source yet.
    None,
    /// The lines of this member, which leads.
    Here(LiveLines),
    /// The lines of another member, which leads.
    There(ArrivingLines),
}

/// Reads the lines of one job as they arrive, until the job ends.
pub struct LogReader {
    logs: JobLogs,
    caller: Caller,
    place: LineCursor,
    source: Source,
    /// What was heard of the answer that forms, if pieces are wanted.
    answer: Option<Answer>,
    /// Lines of earlier attempts, which come first.
    earlier: Vec<LogLine>,
    over: bool,
}

impl LogReader {
    /// Waits for the next lines or pieces. None once the job has ended and all lines were delivered.
    pub async fn next(&mut self) -> Option<LogOutput> {
        if let Some(last) = self.earlier.last() {
            (self.place.attempt, self.place.after) = (last.attempt, last.number);
            return Some(LogOutput::Lines(std::mem::take(&mut self.earlier)));
        }
        while !self.over {
            let lines = match self.step().await {
                Step::Output(AttemptOutput::Lines(lines)) => lines.into_iter().map(LogLine::from).collect(),
                Step::Output(AttemptOutput::Pieces(pieces)) => {
                    let told = self.answer.as_mut().map_or_else(Vec::new, |answer| answer.hear(&pieces));
                    if told.is_empty() {
                        continue;
                    }
                    return Some(LogOutput::Pieces(told));
                }
                Step::Ended => match self.rest().await {
                    Some(rest) => rest,
                    None => continue,
                },
                Step::Lost => {
                    self.source = Source::None;
                    self.wait().await;
                    continue;
                }
            };
            let news = |line: &LogLine| (line.attempt, line.number) > (self.place.attempt, self.place.after);
            let lines: Vec<LogLine> = lines.into_iter().filter(news).collect();
            if let Some(last) = lines.last() {
                (self.place.attempt, self.place.after) = (last.attempt, last.number);
                return Some(LogOutput::Lines(lines));
            }
        }
        None
    }

    async fn step(&mut self) -> Step {
        let JobLogs { desk, .. } = &self.logs;
        match &mut self.source {
            Source::Here(live) => match live.next().await {
                Ok(Some(heard)) => Step::Output(heard),
                Ok(None) => Step::Ended,
                Err(LeadershipLost) => Step::Lost,
            },
            Source::There(arriving) => match arriving.next().await {
                Some(Ok(heard)) => Step::Output(heard),
                Some(Err(_)) => Step::Lost,
                None => Step::Ended,
            },
            Source::None => {
                let with_pieces = self.answer.is_some();
                let following = if with_pieces { Following::Pieces } else { Following::Lines };
                self.source = match leader(desk) {
                    Some(member) if member == desk.handle.member() => {
                        Source::Here(LiveLines::open(&self.logs, self.place, with_pieces))
                    }
                    Some(member) => match desk.peers.lines(member, self.place, following).await {
                        Ok(arriving) => Source::There(arriving),
                        Err(_) => return Step::Lost,
                    },
                    None => return Step::Lost,
                };
                Step::Output(AttemptOutput::Lines(Vec::new()))
            }
        }
    }

    /// The remaining lines of an ended job, which were not read while it ran. None if the job continues with another
    /// attempt.
    async fn rest(&mut self) -> Option<Vec<LogLine>> {
        self.source = Source::None;
        let job = match self.logs.log_owner(&self.caller, self.place.job).await {
            Ok(job) if job.status.is_terminal() => job,
            Ok(_) => return self.later().await,
            Err(error) => return self.unless_gone(&error).await,
        };
        match self.logs.told(&job).await {
            Ok(rest) => {
                self.over = true;
                Some(rest)
            }
            Err(error) => self.unless_gone(&error).await,
        }
    }

    /// Ends the reader if the job is gone. After other errors the lines are requested again, because a stream that ends
    /// must be complete.
    async fn unless_gone(&mut self, error: &Error) -> Option<Vec<LogLine>> {
        if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::Gone) {
            self.over = true;
            return None;
        }
        self.later().await
    }

    async fn later(&self) -> Option<Vec<LogLine>> {
        self.wait().await;
        None
    }

    /// Waits a moment, or until leadership changes.
    async fn wait(&self) {
        let JobLogs { desk, .. } = &self.logs;
        let mut leadership = desk.handle.leadership();
        tokio::select! {
            biased;
            _ = leadership.changed() => {}
            () = desk.env.clock.sleep(PAUSE) => {}
        }
    }
}

/// The result of one read.
enum Step {
    /// Some lines, possibly none, or pieces.
    Output(AttemptOutput),
    /// The attempt has ended.
    Ended,
    /// The queried member does not lead, or does not answer.
    Lost,
}

/// The leader: this member or another.
fn leader(desk: &Desk) -> Option<MemberId> {
    match &*desk.handle.leadership().borrow() {
        Leadership::Leader { .. } => Some(desk.handle.member()),
        Leadership::Follower { leader } => leader.as_ref().map(|leader| leader.member),
        Leadership::Stopped { .. } => None,
    }
}

impl JobLogs {
    /// The lines of a job so far as a JSON array, also those of earlier attempts.
    pub async fn logs(&self, caller: &Caller, id: JobId) -> Result<Vec<u8>, Error> {
        let job = self.log_owner(caller, id).await?;
        match &job.stream {
            Some(stream) if job.status.is_terminal() => {
                let mut out = Vec::new();
                json::raw(&mut out, &self.desk.bytes(stream).await?);
                Ok(out)
            }
            None if job.status.is_terminal() => Ok(array(&[])),
            _ => {
                let lines = self.lines_so_far(&job).await?;
                Ok(self.whole_log(&job, lines).await)
            }
        }
    }

    async fn lines_so_far(&self, job: &Job) -> Result<Vec<u8>, Error> {
        let place = LineCursor { job: job.id, attempt: job.attempt, after: 0 };
        for _ in 0..TRIES_MAX {
            let told = match leader(&self.desk) {
                Some(member) if member == self.desk.handle.member() => Some(self.streams.after(place)),
                Some(member) => self.lines_there(member, place).await,
                None => None,
            };
            if let Some(lines) = told {
                return Ok(array(&lines));
            }
            self.desk.env.clock.sleep(PAUSE).await;
        }
        Err(Error::NoLeader)
    }

    async fn lines_there(&self, member: MemberId, place: LineCursor) -> Option<Vec<Line>> {
        let mut arriving = self.desk.peers.lines(member, place, Following::Once).await.ok()?;
        let mut lines = Vec::new();
        while let Some(some) = arriving.next().await {
            if let AttemptOutput::Lines(some) = some.ok()? {
                lines.extend(some);
            }
        }
        Some(lines)
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
        let job = self.log_owner(caller, id).await?;
        let ended = job.status.is_terminal();
        let start = (Attempt(0), 0);
        // The stored lines of an ended job are read at its end. Those of a running job are read now, except the lines of the
        // current attempt, which come from the leader.
        let (attempt, after) = seen.unwrap_or(if ended { start } else { (job.attempt, 0) });
        let mut earlier = if ended { Vec::new() } else { self.told(&job).await? };
        earlier.retain(|line| {
            let over = line.attempt < job.attempt || job.lease.is_none();
            over && (line.attempt, line.number) > seen.unwrap_or(start)
        });
        let place = LineCursor { job: id, attempt, after };
        let answer = with_pieces.then(Answer::default);
        Ok(LogReader {
            logs: self.clone(),
            caller: caller.clone(),
            place,
            source: Source::None,
            answer,
            earlier,
            over: false,
        })
    }

    /// For the other members: follows the lines of a running attempt, if this member leads.
    pub fn live_lines(&self, place: LineCursor, with_pieces: bool) -> LiveLines {
        LiveLines::open(self, place, with_pieces)
    }

    /// For the other members: the lines of a running attempt so far, if this member leads.
    pub fn lines_now(&self, place: LineCursor) -> Result<Vec<Line>, LeadershipLost> {
        if leader(&self.desk) != Some(self.desk.handle.member()) {
            return Err(LeadershipLost);
        }
        Ok(self.streams.after(place))
    }

    async fn log_owner(&self, caller: &Caller, id: JobId) -> Result<Arc<Job>, Error> {
        let state = self.desk.state(Consistency::Linearizable).await?;
        self.desk.job_in(caller, &state, id).await
    }

    /// The stored lines of a job, in the same form as while they were live.
    async fn told(&self, job: &Job) -> Result<Vec<LogLine>, Error> {
        #[derive(Deserialize)]
        struct Numbered {
            attempt: u32,
            number: u64,
        }
        let Some(stream) = &job.stream else { return Ok(Vec::new()) };
        let bytes = self.desk.bytes(stream).await?;
        let lines: VecDeque<Box<RawValue>> = serde_json::from_slice(&bytes).unwrap_or_default();
        let told = lines.into_iter().filter_map(|line| {
            let Numbered { attempt, number } = serde_json::from_str(line.get()).ok()?;
            Some(LogLine { attempt: Attempt(attempt), number, json: line.get().as_bytes().to_vec() })
        });
        Ok(told.collect())
    }
}
