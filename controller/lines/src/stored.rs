//! Stores the log of a running attempt, so that its lines survive the loss of its worker and of the leader (ADR 18).

use atlas_desk::{Error, json, on_behalf, requests};
use atlas_types::{Command, FencingToken, Job, JobId, NodeId, Payload, PayloadBody, StoreLog, level};
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::JobLogs;

/// Maximum bytes of the lines of earlier attempts in the log of a job.
const EARLIER_BYTES_MAX: usize = 1 << 20;

impl JobLogs {
    /// Stores the lines of a running attempt so far, after those of earlier attempts, for the holder of its lease. If those cannot be
    /// read at the moment, nothing is stored: the stored log would be replaced by one without them.
    pub async fn store_log(&self, job: JobId, node: NodeId, token: FencingToken) -> Result<(), Error> {
        let state = self.desk.handle.applied();
        let found = state.job(job).filter(|_| state.level() >= level::STORED_LOGS);
        let lease = found.and_then(|job| Some((job, job.lease.as_ref().filter(|lease| lease.token == token)?)));
        let Some((found, lease)) = lease else { return Ok(()) };
        let Some((lines, _)) = self.streams.collect(job, lease.attempt) else { return Ok(()) };
        let earlier = self.earlier_lines(found).await?;
        let bytes = self.join_lines(earlier, lines).await;
        // Never inline: the state would hold the lines of all running jobs.
        self.desk.check_room().map_err(|error| Error::storing("the log", error))?;
        let size_bytes = bytes.len() as u64;
        let stored = self.desk.artifacts.store(bytes.into()).await;
        let digest = stored.map_err(|error| Error::storing("the log", error))?;
        let stream = Payload { key_id: 0, body: PayloadBody::Artifact { digest, size_bytes } };
        let command = Command::StoreLog(StoreLog { job, node, token, stream });
        self.desk.handle.propose_here(vec![requests::of(&on_behalf::job(found), command)]).await?;
        Ok(())
    }

    /// Lines of an attempt, after the stored lines that are older. A line says so if those cannot be read.
    pub async fn whole_log(&self, job: &Job, lines: Vec<u8>) -> Vec<u8> {
        // No bytes are no array, so they become the line that says so.
        let earlier = self.earlier_lines(job).await.unwrap_or(Some(Vec::new()));
        self.join_lines(earlier, lines).await
    }

    /// The stored lines of a job; none if nothing is stored.
    async fn earlier_lines(&self, job: &Job) -> Result<Option<Vec<u8>>, Error> {
        match &job.stream {
            Some(stored) => self.desk.bytes(stored).await.map(|bytes| Some(bytes.to_vec())),
            None => Ok(None),
        }
    }

    async fn join_lines(&self, earlier: Option<Vec<u8>>, lines: Vec<u8>) -> Vec<u8> {
        let Some(earlier) = earlier else { return lines };
        let task = self.desk.env.spawn_blocking("join-log", move || joined(&earlier, &lines));
        task.join().await.unwrap_or_else(|_| b"[]".to_vec())
    }
}

/// The position of a line.
#[derive(Deserialize)]
struct Position {
    attempt: u32,
    number: u64,
    at: f64,
}

impl Position {
    fn of(line: &RawValue) -> Option<Self> {
        serde_json::from_str(line.get()).ok()
    }

    fn place(&self) -> (u32, u64) {
        (self.attempt, self.number)
    }
}

/// One JSON array of the older of the stored lines and all of `lines`. Of the former, the oldest are dropped beyond a limit. A line says
/// that lines were dropped, or that the stored ones cannot be read.
fn joined(stored: &[u8], lines: &[u8]) -> Vec<u8> {
    let lines: Vec<Box<RawValue>> = serde_json::from_slice(lines).unwrap_or_default();
    let (stored, unreadable): (Vec<Box<RawValue>>, Option<String>) = match serde_json::from_slice(stored) {
        Ok(stored) => (stored, None),
        Err(_) => (Vec::new(), Some(line_before_all("the stored lines of earlier attempts could not be read"))),
    };
    let first = lines.first().and_then(|line| Position::of(line)).map(|first| first.place());
    let is_older = |line: &&RawValue| {
        Position::of(line).is_some_and(|position| first.is_none_or(|first| position.place() < first))
    };
    let older: Vec<&RawValue> = stored.iter().map(|line| &**line).filter(is_older).collect();
    let mut bytes = 0;
    let fits = |line: &&&RawValue| {
        bytes += line.get().len();
        bytes <= EARLIER_BYTES_MAX
    };
    let dropped = older.len() - older.iter().rev().take_while(fits).count();
    let (lost, kept) = older.split_at(dropped);
    let mut out = Vec::with_capacity(bytes + 64);
    out.push(b'[');
    let mark = unreadable.or_else(|| Some(mark(&Position::of(lost.last()?)?, dropped)));
    let texts = kept.iter().map(|line| line.get()).chain(lines.iter().map(|line| line.get()));
    for (index, text) in mark.as_deref().into_iter().chain(texts).enumerate() {
        if index > 0 {
            out.push(b',');
        }
        out.extend_from_slice(text.as_bytes());
    }
    out.push(b']');
    out
}

/// The line that says how many lines were dropped, at the position of the last of them.
fn mark(last: &Position, dropped: usize) -> String {
    let words =
        format!("{dropped} lines of earlier attempts were dropped: the limit for them is {EARLIER_BYTES_MAX} bytes");
    warning(last, &words)
}

/// A line at a position that no line of an agent has: its lines are numbered from 1.
fn line_before_all(words: &str) -> String {
    warning(&Position { attempt: 1, number: 0, at: 0.0 }, words)
}

fn warning(position: &Position, words: &str) -> String {
    let Position { attempt, number, at } = position;
    let mut text = Vec::new();
    json::string(&mut text, words);
    let text = String::from_utf8_lossy(&text);
    format!(
        "{{\"attempt\":{attempt},\"number\":{number},\"at\":{at},\"kind\":\"log\",\"level\":\"warning\",\"text\":{text}}}"
    )
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;

    fn line(attempt: u32, number: u64, text: &str) -> String {
        format!(r#"{{"attempt":{attempt},"number":{number},"at":1.5,"text":"{text}"}}"#)
    }

    #[test]
    fn older_lines_come_first_and_repeated_ones_once() {
        let stored = format!("[{},{},{}]", line(1, 1, "a"), line(2, 1, "b"), line(2, 2, "c"));
        let lines = format!("[{},{}]", line(2, 2, "c"), line(2, 3, "d"));
        let both = String::from_utf8(joined(stored.as_bytes(), lines.as_bytes())).expect("ASCII");
        expect![[r#"
            [{"attempt":1,"number":1,"at":1.5,"text":"a"},
            {"attempt":2,"number":1,"at":1.5,"text":"b"},
            {"attempt":2,"number":2,"at":1.5,"text":"c"},
            {"attempt":2,"number":3,"at":1.5,"text":"d"}]"#]]
        .assert_eq(&both.replace("},", "},\n"));
        assert_eq!(joined(stored.as_bytes(), b"[]"), stored.as_bytes());
        let damaged = String::from_utf8(joined(b"damaged", lines.as_bytes())).expect("ASCII");
        assert!(damaged.contains("could not be read") && damaged.ends_with(&lines[1..]), "{damaged}");
    }

    #[test]
    fn the_oldest_lines_of_earlier_attempts_are_dropped_with_a_mark() {
        let text = "x".repeat(1_000);
        let stored: Vec<String> = (1..=2_000).map(|number| line(1, number, &text)).collect();
        let both = joined(format!("[{}]", stored.join(",")).as_bytes(), format!("[{}]", line(2, 1, "new")).as_bytes());
        assert!(both.len() < EARLIER_BYTES_MAX + 1_000);
        let text = String::from_utf8(both).expect("ASCII");
        let mark = text.split("},").next().expect("a line");
        assert!(mark.contains("lines of earlier attempts were dropped"), "{mark}");
        assert!(text.ends_with(&format!("{}]", line(2, 1, "new"))));
    }
}
