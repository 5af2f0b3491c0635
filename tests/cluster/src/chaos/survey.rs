//! Everything that one controller reports at the end.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::Duration;

use atlas_env::Env;
use serde_json::Value;

use super::call::Http;
use super::journal::Outcome;

/// Jobs a page of the list.
const PAGE: usize = 500;

/// How often a page is asked for.
const TRIES: usize = 3;

/// How long an event stream is silent when everything was told.
const SILENCE: Duration = Duration::from_millis(1500);

/// How long one is waited for that has not told what is known.
const SILENCE_MAX: Duration = Duration::from_secs(30);

/// What a controller tells.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Survey {
    pub(crate) name: String,
    /// All jobs in their full view, by id.
    pub(crate) jobs: BTreeMap<String, Value>,
    /// All changes of jobs in the order of their numbers.
    pub(crate) events: Vec<Change>,
}

/// A change of a job, as an event told it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Change {
    pub(crate) seq: u64,
    pub(crate) job: String,
    pub(crate) change: String,
    pub(crate) old: String,
    pub(crate) new: String,
    pub(crate) attempt: u64,
}

/// All jobs of a controller; an error says why it did not tell.
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

/// Asks again if a connection that was idle was closed meanwhile: reading twice changes nothing.
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

/// All events of a controller from the first one. A stream has no end: it is over when it is silent and tells what is `known`, or when
/// it is silent for so long that what is missing will not come.
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
        // Whole frames only: a piece may end in the middle of one.
        let Some(whole) = text.windows(2).rposition(|pair| pair == b"\n\n") else { continue };
        let rest = text.split_off(whole + 2);
        let frames = String::from_utf8(std::mem::replace(&mut text, rest)).map_err(|error| error.to_string())?;
        let frames = frames.split("\n\n").filter(|frame| frame.lines().any(|line| line.starts_with("data:")));
        changes.extend(frames.map(change).collect::<Result<Vec<_>, _>>()?);
    }
}

/// What a stream of events must have told before its silence means that it is over. A busy machine is silent for seconds.
#[derive(Debug)]
pub(crate) struct Known<'a> {
    /// The last status of these jobs.
    pub(crate) jobs: &'a BTreeMap<String, Value>,
    /// The event of this number.
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
