//! Jobs: submitted one after the other to a cluster with the row's agents, and compared when all have ended.

use std::time::Duration;

use serde_json::{Map, Value, json};

use crate::agents::{self, known_example};
use crate::bench::Bench;
use crate::cluster::Cluster;
use crate::http::{Http, ended};
use crate::matcher::Captures;
use crate::result::{Judged, Stop, compare};
use crate::row::{Row, items, text, unknown};
use crate::setup::{Setup, only};
use crate::skills;
use crate::socket::{Opened, Socket};

/// Longest wait for retries and children to end, in seconds.
const OTHERS_MAX: u32 = 60;

/// Longest wait for the frames of an ended job.
const FRAMES_MAX: Duration = Duration::from_secs(10);

pub(super) fn judge(row: &Row, bench: &Bench) -> Judged {
    only(&row.input, &["agents", "jobs", "pool", "skills", "orchestrator", "server_flags", "memory", "knowledge"])?;
    if let Some(member) = unknown(&row.expect, &["jobs", "other_jobs"]) {
        return Err(Stop::skip(format!("jobs of which \"{member}\" is expected")));
    }
    for job in items(&row.input, "jobs") {
        if let Some(member) = unknown(job, &["agent", "input", "priority"]) {
            return Err(Stop::skip(format!("jobs with \"{member}\"")));
        }
        known_example(text(job, "agent"), bench.bundled()?)?;
    }
    let folder = tempfile::tempdir().map_err(|error| Stop::system("make a folder", error))?;
    let (pool, flags) = (row.input.get("pool"), row.input.get("server_flags"));
    let setup = Setup::new()
        .with_pool(pool.unwrap_or(&Value::Null))?
        .with_flags(flags.unwrap_or(&Value::Null), &folder.path().display().to_string())?;
    let orchestrator = agents::orchestrator_of_row(&row.input, &folder.path().join("agents"), bench.mocks())?;
    let own = agents::of_row(&row.input, &folder.path().join("agents"), bench.mocks())?;
    let cluster = Cluster::start(bench.programs()?, &setup, folder.path())?;
    cluster.register(bench.bundled()?.iter().chain(&own))?;
    super::llm::fill(&cluster, &row.input)?;
    skills::deploy(row, &skills::required(row), bench, &cluster)?;
    if let Some(name) = &orchestrator {
        cluster.select_orchestrator(name)?;
    }
    let mut socket = match Socket::open(cluster.address(), "/api/events")? {
        Opened::Socket(socket) => socket,
        Opened::Refused(status) => return Err(Stop::fail(format!("the events were refused with {status}"))),
    };
    let mut ids = Vec::new();
    for job in items(&row.input, "jobs") {
        let id = cluster.http.submit(job)?;
        cluster.http.wait(&id)?;
        ids.push(id);
    }
    let wanted = items(&row.expect, "other_jobs").count();
    let others = others(&cluster.http, &ids, wanted)?;
    let all = ids.len() + others.len();
    socket.collect(FRAMES_MAX, |frames| frames.iter().filter(|frame| ended(&frame["job"])).count() >= all)?;
    let names = Names { jobs: &ids, others: &others };
    let view = |expected: &Value, id: &String| view(&cluster.http, &socket.frames, &names, expected, id);
    let group = |member: &str, ids: &[String]| -> Result<Value, Stop> {
        let mut expected = items(&row.expect, member);
        ids.iter().map(|id| view(expected.next().unwrap_or(&Value::Null), id)).collect()
    };
    let mut answer = Map::new();
    answer.insert("jobs".to_owned(), group("jobs", &ids)?);
    if wanted > 0 || !others.is_empty() {
        answer.insert("other_jobs".to_owned(), group("other_jobs", &others)?);
    }
    compare(&row.expect, &Value::Object(answer), &Captures::new())
}

/// Waits until there are at least `wanted` jobs besides the submitted ones and all have ended; returns them, oldest
/// first.
fn others(http: &Http, submitted: &[String], wanted: usize) -> Result<Vec<String>, Stop> {
    let looks = OTHERS_MAX * 20;
    for _ in 0..looks {
        let jobs = http.get("/api/jobs?limit=1000")?;
        let jobs = jobs.as_array().map(Vec::as_slice).unwrap_or_default();
        let others: Vec<&Value> =
            jobs.iter().rev().filter(|job| !submitted.iter().any(|id| job["id"] == **id)).collect();
        if others.len() >= wanted && others.iter().all(|job| ended(job)) {
            return Ok(others.iter().map(|job| text(job, "id").to_owned()).collect());
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    Err(Stop::fail(format!("{wanted} other jobs did not end within {OTHERS_MAX} s")))
}

/// The names of jobs in a row, which stand for ids that are not known in advance.
struct Names<'a> {
    jobs: &'a [String],
    others: &'a [String],
}

impl Names<'_> {
    fn put(&self, value: Value) -> Value {
        match value {
            Value::String(text) => {
                let place = |ids: &[String]| ids.iter().position(|id| *id == text);
                match (place(self.jobs), place(self.others)) {
                    (Some(index), _) => json!(format!("<job {index}>")),
                    (_, Some(index)) => json!(format!("<child {index}>")),
                    _ => Value::String(text),
                }
            }
            Value::Array(items) => items.into_iter().map(|item| self.put(item)).collect(),
            Value::Object(members) => members.into_iter().map(|(name, value)| (name, self.put(value))).collect(),
            other => other,
        }
    }
}

/// A job with the members that the row compares.
fn view(http: &Http, frames: &[Value], names: &Names<'_>, expected: &Value, id: &str) -> Result<Value, Stop> {
    let job = http.get(&format!("/api/jobs/{id}?view=full"))?;
    let Some(members) = expected.as_object() else { return Ok(job) };
    let mut shown = Map::new();
    for name in members.keys() {
        let value = match name.as_str() {
            "events" => {
                let own = frames.iter().filter(|frame| frame["job_id"] == id);
                own.map(|frame| json!([frame["old_status"], frame["new_status"]])).collect()
            }
            name => match job.get(name) {
                Some(value) => value.clone(),
                None => return Err(Stop::skip(format!("jobs of which \"{name}\" is expected"))),
            },
        };
        shown.insert(name.clone(), names.put(value));
    }
    Ok(Value::Object(shown))
}
