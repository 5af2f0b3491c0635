//! Reads all jobs and events of one controller at the end of a run.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::Duration;

use atlas_env::Env;
use serde_json::Value;

use super::call::Http;
use super::journal::Outcome;

/// Number of jobs per page of the list.
const PAGE: usize = 500;

/// Maximum number of requests for one page.
const TRIES: usize = 3;

/// An event stream that has reached the known end is complete after this silence.
const SILENCE: Duration = Duration::from_millis(1500);

/// An event stream that has not reached the known end is given up after this silence.
const SILENCE_MAX: Duration = Duration::from_secs(30);

/// The jobs and events of a controller.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Survey {
    pub(crate) name: String,
    /// All jobs in their full view, by id.
    pub(crate) jobs: BTreeMap<String, Value>,
    /// All changes of jobs, in the order of the stream.
    pub(crate) events: Vec<Change>,
}

/// A change of a job, from an event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Change {
    pub(crate) seq: u64,
    pub(crate) job: String,
    pub(crate) change: String,
    pub(crate) old: String,
    pub(crate) new: String,
    pub(crate) attempt: u64,
}

/// All jobs of a controller.
pub(crate) async fn jobs(http: &Http, at: SocketAddr) -> Result<BTreeMap<String, Value>, String> {
    let mut jobs = BTreeMap::new();
    loop {
        let path = format!("/api/jobs?view=full&limit={PAGE}&offset={}", jobs.len());
        let page = page(http, at, &path).await?;
        let page = page.as_array().ok_or("the list is no array")?;
        for job in page {
            let id = job["id"].as_str().ok_or("a job without an id")?;
            if jobs.insert(id.to_owned(), job.clone()).is_some() {
                return Err(format!("{id} is twice in the list"));
            }
        }
        if page.len() < PAGE {
            return Ok(jobs);
        }
    }
}

/// Reads a page. The request is repeated, because the controller may have closed the idle connection; repeating a read
/// is safe.
async fn page(http: &Http, at: SocketAddr, path: &str) -> Result<Value, String> {
    let mut last = String::new();
    for _ in 0..TRIES {
        match http.get(at, path).await {
            Outcome::Done(answer) => return Ok(answer.body),
            other => last = format!("{path}: {other:?}"),
        }
    }
    Err(last)
}

/// All events of a controller from the first one. The stream has no end, so reading stops after a silence: a short one
/// if all events in `known` were received, otherwise a long one.
pub(crate) async fn events(env: &Env, http: &Http, at: SocketAddr, known: &Known<'_>) -> Result<Vec<Change>, String> {
    let mut answer = http.stream(at, "/api/events?view=full", 0).await?;
    let (mut text, mut changes) = (Vec::new(), Vec::new());
    loop {
        let patience = if known.is_told(&changes) { SILENCE } else { SILENCE_MAX };
        let piece = tokio::select! {
            piece = answer.chunk() => piece.map_err(|error| error.to_string())?,
            () = env.clock.sleep(patience) => None,
        };
        let Some(piece) = piece else { return Ok(changes) };
        text.extend_from_slice(&piece);
        // Parse only complete frames; a piece may end inside a frame.
        let Some(whole) = text.windows(2).rposition(|pair| pair == b"\n\n") else { continue };
        let rest = text.split_off(whole + 2);
        let frames = String::from_utf8(std::mem::replace(&mut text, rest)).map_err(|error| error.to_string())?;
        let frames = frames.split("\n\n").filter(|frame| frame.lines().any(|line| line.starts_with("data:")));
        changes.extend(frames.map(change).collect::<Result<Vec<_>, _>>()?);
    }
}

/// What a stream must contain before a short silence counts as its end. On a busy machine a stream can be silent for
/// seconds.
#[derive(Debug)]
pub(crate) struct Known<'a> {
    /// Jobs, whose current status the stream must contain.
    pub(crate) jobs: &'a BTreeMap<String, Value>,
    /// The number of an event that the stream must reach.
    pub(crate) seq: u64,
}

impl Known<'_> {
    fn is_told(&self, changes: &[Change]) -> bool {
        let reached = changes.last().map_or(0, |change| change.seq) >= self.seq;
        let last: BTreeMap<&str, &str> = changes.iter().map(|change| (&*change.job, &*change.new)).collect();
        let is_told = |(id, job): (&String, &Value)| last.get(id.as_str()).copied() == job["status"].as_str();
        reached && self.jobs.iter().all(is_told)
    }
}

fn change(frame: &str) -> Result<Change, String> {
    let field = |name: &str| frame.lines().find_map(|line| line.strip_prefix(name)).map(str::trim);
    let broken = || format!("a frame that is no change: {frame}");
    let seq = field("id:").and_then(|text| text.parse().ok()).ok_or_else(broken)?;
    let data: Value = serde_json::from_str(field("data:").ok_or_else(broken)?).map_err(|_| broken())?;
    let text = |value: &Value| value.as_str().map(str::to_owned).ok_or_else(broken);
    Ok(Change {
        seq,
        job: text(&data["job_id"])?,
        change: text(&data["change"])?,
        old: text(&data["old_status"])?,
        new: text(&data["new_status"])?,
        attempt: data["job"]["attempt"].as_u64().ok_or_else(broken)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn silence_means_nothing_before_what_is_known_was_told() {
        let change = |seq, new: &str| Change {
            seq,
            job: "j".to_owned(),
            change: "ended".to_owned(),
            old: "running".to_owned(),
            new: new.to_owned(),
            attempt: 1,
        };
        let jobs = BTreeMap::from([("j".to_owned(), serde_json::json!({"status": "completed"}))]);
        let known = |seq| Known { jobs: &jobs, seq };
        assert!(!known(0).is_told(&[]));
        assert!(!known(0).is_told(&[change(6, "running")]));
        assert!(known(7).is_told(&[change(6, "running"), change(7, "completed")]));
        assert!(!known(8).is_told(&[change(7, "completed")]));
    }

    #[test]
    fn a_frame_is_read() {
        let frame = "id: 7\nevent: job\ndata: {\"job_id\":\"j\",\"old_status\":\"pending\",\"new_status\":\"running\",\"change\":\"granted\",\"job\":{\"attempt\":1}}";
        let change = change(frame).expect("a change");
        assert_eq!((change.seq, change.new.as_str(), change.attempt), (7, "running", 1));
        assert!(super::change("id: 7\ndata: {}").is_err());
    }
}
