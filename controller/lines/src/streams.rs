//! Log lines and progress of running attempts. The leader keeps them until the report that ends the attempt commits them. It passes
//! pieces of models' answers on to current followers and does not keep them. `lines` reads both on any member.
//!
//! They are not part of the state. Until they are committed with the end of their attempt, the worker keeps them as
//! well, so that no line is lost with a controller. The next leader recognises repeated lines by their numbers.

mod due;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use atlas_artifacts::{Line, LineCursor, Pieces};
use atlas_desk::json;
use atlas_types::{Attempt, JobId, StreamEvent, StreamKind, Timestamp};
use tokio::sync::{broadcast, watch};

use self::due::Due;

/// The most bytes of text kept for one attempt.
const ATTEMPT_BYTES_MAX: usize = 1 << 20;
/// The most bytes of text kept for all running attempts.
const BYTES_MAX: usize = 64 << 20;

/// The prefix of a line in which a worker reports why an attempt does not run yet.
const PREPARING: &str = "preparing: ";
/// The prefix of the line that ends the preparation.
const PREPARED: &str = "prepared in ";

/// Frames of pieces that wait for one follower. A follower that is slower misses some and receives a gap.
const PIECES_WAITING_MAX: usize = 64;

/// The lines of running attempts. Cheap to clone.
#[derive(Clone, Default)]
pub struct Streams {
    inner: Arc<Mutex<Inner>>,
}

#[derive(Default)]
struct Inner {
    attempts: HashMap<JobId, Live>,
    bytes: usize,
}

struct Live {
    attempt: Attempt,
    lines: Vec<StreamEvent>,
    bytes: usize,
    /// The number of the last line received, kept or not.
    last: u64,
    /// The number of lines that were not kept, and the time of the first of them.
    dropped: u64,
    dropped_at: Timestamp,
    grown: watch::Sender<()>,
    /// When the lines are stored next.
    due: Due,
    /// Followers of the pieces; none until there is one.
    pieces: Option<broadcast::Sender<Arc<Pieces>>>,
}

impl Streams {
    /// Adds lines of an attempt. Known numbers are skipped, and lines of an older attempt are dropped.
    pub fn push(&self, job: JobId, attempt: Attempt, events: Vec<StreamEvent>) {
        let mut inner = self.lock();
        let inner = &mut *inner;
        let live = inner.attempts.entry(job).or_insert_with(|| Live::new(attempt));
        if live.attempt < attempt {
            inner.bytes -= live.bytes;
            // Readers of the older attempt continue with the new one.
            let grown = std::mem::replace(&mut live.grown, watch::Sender::new(()));
            let pieces = live.pieces.take();
            *live = Live { grown, pieces, ..Live::new(attempt) };
        }
        if live.attempt > attempt {
            return;
        }
        for event in events {
            if event.number <= live.last {
                continue;
            }
            live.last = event.number;
            let size = event.text.len() + size_of::<StreamEvent>();
            if live.bytes + size <= ATTEMPT_BYTES_MAX && inner.bytes + size <= BYTES_MAX {
                live.bytes += size;
                inner.bytes += size;
                live.lines.push(event);
            } else {
                if live.dropped == 0 {
                    live.dropped_at = event.at;
                }
                live.dropped += 1;
            }
        }
        live.grown.send_replace(());
    }

    /// The lines of an attempt as the JSON array that its end report includes, and the number of the last line. None if
    /// there are no lines.
    pub fn collect(&self, job: JobId, attempt: Attempt) -> Option<(Vec<u8>, u64)> {
        let inner = self.lock();
        let live = inner.attempts.get(&job).filter(|live| live.attempt == attempt && live.last > 0)?;
        Some((array(&live.told()), live.last))
    }

    /// The preparation that a worker still reports for an attempt. None once the agent runs.
    pub fn preparing(&self, job: JobId, attempt: Attempt) -> Option<String> {
        let inner = self.lock();
        let live = inner.attempts.get(&job).filter(|live| live.attempt == attempt)?;
        // An agent writes nothing before it runs, so the first line is the worker's, or there was nothing to prepare.
        let said = |event: &StreamEvent| event.text.strip_prefix(PREPARING).map(str::to_owned);
        said(live.lines.first()?)?;
        let mut last = live.lines.iter().rev();
        last.find(|event| event.text.starts_with(PREPARING) || event.text.starts_with(PREPARED)).and_then(said)
    }

    /// Removes all attempts of jobs for which `keep` is false.
    pub fn retain(&self, keep: impl Fn(JobId) -> bool) {
        let mut inner = self.lock();
        let gone: Vec<JobId> = inner.attempts.keys().copied().filter(|job| !keep(*job)).collect();
        for job in gone {
            if let Some(live) = inner.attempts.remove(&job) {
                inner.bytes -= live.bytes;
            }
        }
    }

    /// Removes the lines of an ended attempt. Readers continue with the job's record.
    pub fn forget(&self, job: JobId) {
        let mut inner = self.lock();
        if let Some(live) = inner.attempts.remove(&job) {
            inner.bytes -= live.bytes;
        }
    }

    /// The lines after a position: of the same attempt those with higher numbers, of another attempt all.
    pub(crate) fn after(&self, place: LineCursor) -> Vec<Line> {
        let inner = self.lock();
        match inner.attempts.get(&place.job) {
            Some(live) if live.attempt == place.attempt => live.lines(place.after),
            Some(live) if live.attempt > place.attempt => live.lines(0),
            Some(_) | None => Vec::new(),
        }
    }

    /// Whether the lines of an attempt should be stored now; without a time, whether there are new ones. The caller then stores them.
    pub fn take_due(&self, job: JobId, attempt: Attempt, now: Option<Duration>) -> bool {
        let mut inner = self.lock();
        let live = inner.attempts.get_mut(&job).filter(|live| live.attempt == attempt);
        live.is_some_and(|live| live.due.take(live.last, live.bytes, now))
    }

    /// Passes pieces on to those who follow the job now.
    pub fn pass(&self, job: JobId, pieces: Pieces) {
        let inner = self.lock();
        if let Some(followers) = inner.attempts.get(&job).and_then(|live| live.pieces.as_ref()) {
            // Nobody is there any more.
            let _ = followers.send(Arc::new(pieces));
        }
    }

    /// The pieces that a job says from now on.
    pub(crate) fn follow_pieces(&self, job: JobId) -> broadcast::Receiver<Arc<Pieces>> {
        let mut inner = self.lock();
        let live = inner.attempts.entry(job).or_insert_with(|| Live::new(Attempt(0)));
        live.pieces.get_or_insert_with(|| broadcast::Sender::new(PIECES_WAITING_MAX)).subscribe()
    }

    pub(crate) fn watch(&self, job: JobId) -> watch::Receiver<()> {
        let mut inner = self.lock();
        inner.attempts.entry(job).or_insert_with(|| Live::new(Attempt(0))).grown.subscribe()
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Live {
    fn new(attempt: Attempt) -> Self {
        Self {
            attempt,
            lines: Vec::new(),
            bytes: 0,
            last: 0,
            dropped: 0,
            dropped_at: Timestamp::NOT_YET,
            grown: watch::Sender::new(()),
            due: Due::default(),
            pieces: None,
        }
    }

    /// All lines, followed by a line with the number of dropped ones.
    fn told(&self) -> Vec<Line> {
        let mut lines = self.lines(0);
        if self.dropped > 0 {
            let event = StreamEvent {
                number: self.last,
                at: self.dropped_at,
                kind: StreamKind::Log,
                level: "warning".to_owned(),
                text: format!(
                    "{} lines were dropped: the limit for an attempt is {ATTEMPT_BYTES_MAX} bytes",
                    self.dropped
                ),
            };
            lines.push(Line { attempt: self.attempt, event });
        }
        lines
    }

    /// The lines with numbers above `after`.
    fn lines(&self, after: u64) -> Vec<Line> {
        let from = self.lines.partition_point(|event| event.number <= after);
        let lines = self.lines.get(from..).unwrap_or_default();
        lines.iter().map(|event| Line { attempt: self.attempt, event: event.clone() }).collect()
    }
}

/// Appends a line as JSON.
pub(crate) fn write_line(line: &Line, out: &mut Vec<u8>) {
    out.extend_from_slice(b"{\"attempt\":");
    json::integer(out, i128::from(line.attempt.0));
    out.extend_from_slice(b",\"number\":");
    json::integer(out, i128::from(line.event.number));
    out.extend_from_slice(b",\"at\":");
    json::time(out, line.event.at);
    out.extend_from_slice(match line.event.kind {
        StreamKind::Log => b",\"kind\":\"log\"".as_slice(),
        StreamKind::Progress => b",\"kind\":\"progress\"",
    });
    out.extend_from_slice(b",\"level\":");
    json::string(out, &line.event.level);
    out.extend_from_slice(b",\"text\":");
    json::string(out, &line.event.text);
    out.push(b'}');
}

pub(crate) fn array(lines: &[Line]) -> Vec<u8> {
    let mut out = vec![b'['];
    for (index, line) in lines.iter().enumerate() {
        if index > 0 {
            out.push(b',');
        }
        write_line(line, &mut out);
    }
    out.push(b']');
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(number: u64, text: &str) -> StreamEvent {
        StreamEvent { number, at: Timestamp(1), kind: StreamKind::Log, level: "info".to_owned(), text: text.to_owned() }
    }

    #[test]
    fn lines_that_come_again_are_known_by_their_number() {
        let streams = Streams::default();
        streams.push(JobId(1), Attempt(1), vec![line(1, "a"), line(2, "b")]);
        streams.push(JobId(1), Attempt(1), vec![line(2, "b"), line(3, "é")]);
        let (json, last) = streams.collect(JobId(1), Attempt(1)).expect("it spoke");
        expect_test::expect![[r#"[{"attempt":1,"number":1,"at":0.000001,"kind":"log","level":"info","text":"a"},{"attempt":1,"number":2,"at":0.000001,"kind":"log","level":"info","text":"b"},{"attempt":1,"number":3,"at":0.000001,"kind":"log","level":"info","text":"\u00e9"}]"#]]
        .assert_eq(&String::from_utf8(json).expect("ASCII"));
        assert_eq!(last, 3);
    }

    #[test]
    fn a_new_attempt_takes_the_place_of_the_old_one() {
        let streams = Streams::default();
        streams.push(JobId(1), Attempt(1), vec![line(1, "old")]);
        streams.push(JobId(1), Attempt(2), vec![line(1, "new")]);
        streams.push(JobId(1), Attempt(1), vec![line(2, "late")]);
        assert!(streams.collect(JobId(1), Attempt(1)).is_none());
        let (json, _) = streams.collect(JobId(1), Attempt(2)).expect("it spoke");
        assert!(String::from_utf8(json).expect("ASCII").contains("new"));
    }

    #[test]
    fn a_preparation_is_told_until_it_ends() {
        let streams = Streams::default();
        let (job, attempt) = (JobId(1), Attempt(1));
        streams.push(job, attempt, vec![line(1, "preparing: installing 3 packages"), line(2, "Collecting numpy")]);
        assert_eq!(streams.preparing(job, attempt).as_deref(), Some("installing 3 packages"));
        assert_eq!(streams.preparing(job, Attempt(2)), None);
        streams.push(job, attempt, vec![line(3, "prepared in 45.0 s")]);
        assert_eq!(streams.preparing(job, attempt), None);
        streams.push(JobId(2), attempt, vec![line(1, "hello"), line(2, "preparing: a joke")]);
        assert_eq!(streams.preparing(JobId(2), attempt), None);
    }

    #[test]
    fn a_flood_is_bounded() {
        let streams = Streams::default();
        let text = "x".repeat(1_000);
        streams.push(JobId(1), Attempt(1), (1..=5_000).map(|number| line(number, &text)).collect());
        let (json, last) = streams.collect(JobId(1), Attempt(1)).expect("it spoke");
        assert!(json.len() < 2 * ATTEMPT_BYTES_MAX);
        let text = String::from_utf8(json).expect("ASCII");
        assert!(text.contains("\"level\":\"warning\",\"text\":\"4"), "{}", &text[text.len() - 200..]);
        assert_eq!(last, 5_000);
        streams.forget(JobId(1));
        assert_eq!(streams.lock().bytes, 0);
    }
}
