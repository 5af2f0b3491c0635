//! Log lines, progress and tokens of running attempts. Kept at the leader until the report that ends the attempt
//! commits them; `lines` reads them on any member.
//!
//! They are not part of the state. Until they are committed with the end of their attempt the worker keeps them too, so
//! none are lost with a controller; its successor recognises repeated lines by their numbers.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use atlas_types::{Attempt, JobId, StreamEvent, StreamKind, Timestamp};
use tokio::sync::watch;

use crate::json;
use crate::peers::LineCursor;

/// Most bytes of text kept of one attempt.
const ATTEMPT_BYTES_MAX: usize = 1 << 20;
/// Most bytes of text kept of all attempts that run.
const BYTES_MAX: usize = 64 << 20;

/// What a line begins with by which a worker tells why an attempt does not run yet.
const PREPARING: &str = "preparing: ";
/// What the line begins with that ends it.
const PREPARED: &str = "prepared in ";

/// One line with the attempt that said it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line {
    /// Which try.
    pub attempt: Attempt,
    /// What it said.
    pub event: StreamEvent,
}

impl Line {
    /// Appends the line as JSON.
    pub fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(b"{\"attempt\":");
        json::integer(out, i128::from(self.attempt.0));
        out.extend_from_slice(b",\"number\":");
        json::integer(out, i128::from(self.event.number));
        out.extend_from_slice(b",\"at\":");
        json::time(out, self.event.at);
        out.extend_from_slice(match self.event.kind {
            StreamKind::Log => b",\"kind\":\"log\"".as_slice(),
            StreamKind::Progress => b",\"kind\":\"progress\"",
            StreamKind::Token => b",\"kind\":\"token\"",
        });
        out.extend_from_slice(b",\"level\":");
        json::string(out, &self.event.level);
        out.extend_from_slice(b",\"text\":");
        json::string(out, &self.event.text);
        out.push(b'}');
    }
}

/// The lines of the attempts that run. Cheap to clone.
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
    /// The number of the last line taken in, kept or not.
    last: u64,
    /// Lines that were not kept, and the time of the first of them.
    dropped: u64,
    dropped_at: Timestamp,
    grown: watch::Sender<()>,
}

impl Streams {
    /// Takes in lines of an attempt; those that are known by their number are skipped. Lines of an older attempt are dropped.
    pub fn push(&self, job: JobId, attempt: Attempt, events: Vec<StreamEvent>) {
        let mut inner = self.lock();
        let inner = &mut *inner;
        let live = inner.attempts.entry(job).or_insert_with(|| Live::new(attempt));
        if live.attempt < attempt {
            inner.bytes -= live.bytes;
            // Readers of the older attempt go on with the new one.
            let grown = std::mem::replace(&mut live.grown, watch::Sender::new(()));
            *live = Live { grown, ..Live::new(attempt) };
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

    /// The lines of an attempt as the JSON array that its end takes along, and the number of the last one; none if it said nothing.
    pub fn collect(&self, job: JobId, attempt: Attempt) -> Option<(Vec<u8>, u64)> {
        let inner = self.lock();
        let live = inner.attempts.get(&job).filter(|live| live.attempt == attempt && live.last > 0)?;
        Some((array(&live.told()), live.last))
    }

    /// What a worker still prepares for an attempt, in its own words; none once the agent runs.
    pub(crate) fn preparing(&self, job: JobId, attempt: Attempt) -> Option<String> {
        let inner = self.lock();
        let live = inner.attempts.get(&job).filter(|live| live.attempt == attempt)?;
        // Before it runs an agent says nothing: its worker has the first word, or there was nothing to prepare.
        let said = |event: &StreamEvent| event.text.strip_prefix(PREPARING).map(str::to_owned);
        said(live.lines.first()?)?;
        let mut last = live.lines.iter().rev();
        last.find(|event| event.text.starts_with(PREPARING) || event.text.starts_with(PREPARED)).and_then(said)
    }

    /// Forgets all attempts but those that `keep` says run.
    pub fn retain(&self, keep: impl Fn(JobId) -> bool) {
        let mut inner = self.lock();
        let gone: Vec<JobId> = inner.attempts.keys().copied().filter(|job| !keep(*job)).collect();
        for job in gone {
            if let Some(live) = inner.attempts.remove(&job) {
                inner.bytes -= live.bytes;
            }
        }
    }

    /// The attempt has ended: readers read on from the job.
    pub fn forget(&self, job: JobId) {
        let mut inner = self.lock();
        if let Some(live) = inner.attempts.remove(&job) {
            inner.bytes -= live.bytes;
        }
    }

    /// The lines behind a place: of its attempt those with higher numbers, of another one all.
    pub(crate) fn after(&self, place: LineCursor) -> Vec<Line> {
        let inner = self.lock();
        match inner.attempts.get(&place.job) {
            Some(live) if live.attempt == place.attempt => live.lines(place.after),
            Some(live) if live.attempt > place.attempt => live.lines(0),
            Some(_) | None => Vec::new(),
        }
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
        }
    }

    /// All lines, and at their end how many more there were.
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

pub(crate) fn array(lines: &[Line]) -> Vec<u8> {
    let mut out = vec![b'['];
    for (index, line) in lines.iter().enumerate() {
        if index > 0 {
            out.push(b',');
        }
        line.write(&mut out);
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
