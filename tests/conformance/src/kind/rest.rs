//! Requests to a running server, one after the other.

use std::path::Path;

use serde_json::{Map, Value, json};

use crate::agents::{self, known_example};
use crate::bench::Bench;
use crate::cluster::Cluster;
use crate::http::Answer;
use crate::matcher::{Captures, fill, fill_all};
use crate::result::{Judged, Stop, compare};
use crate::row::{Row, items, members, text, unknown};
use crate::setup::{Setup, only};
use crate::skills;

/// Paths of features that Atlas does not have yet.
const LATER: [&str; 0] = [];

const STEP: [&str; 8] = ["method", "path", "json", "body", "text", "headers", "capture", "wait_job"];

pub(super) fn judge(row: &Row, bench: &Bench) -> Judged {
    only(&row.input, &["server_flags", "steps", "agents", "pool"])?;
    covered(row, bench)?;
    let folder = tempfile::tempdir().map_err(|error| Stop::system("make a folder", error))?;
    let cluster = start(row, bench, folder.path())?;
    let dir = folder.path().display().to_string();
    let mut captures: Captures = [("dir".to_owned(), Value::String(dir))].into();
    let nothing = Value::Null;
    for (index, step) in items(&row.input, "steps").enumerate() {
        let expected = row.expect.get(index).unwrap_or(&nothing);
        let at = |stop| match stop {
            Stop::Fail(difference) => Stop::Fail(format!("step {index}: {difference}")),
            skip @ Stop::Skip(_) => skip,
        };
        take(step, expected, &cluster, &mut captures).map_err(at)?;
    }
    Ok(())
}

/// The server of a row, with the row's agents and the bundled ones.
pub(super) fn start(row: &Row, bench: &Bench, folder: &Path) -> Result<Cluster, Stop> {
    let member = |name: &str| row.input.get(name).unwrap_or(&Value::Null);
    let dir = folder.display().to_string();
    let setup = Setup::new().with_pool(member("pool"))?.with_flags(member("server_flags"), &dir)?;
    let own = agents::of_row(&row.input, &folder.join("agents"), bench.mocks())?;
    let cluster = Cluster::start(bench.programs()?, &setup, folder)?;
    match &setup.agents {
        None => cluster.register(bench.bundled()?.iter().chain(&own))?,
        Some(path) => cluster.register(&agents::found_in(Path::new(path))?)?,
    }
    if let Some(name) = &setup.orchestrator {
        cluster.select_orchestrator(name)?;
    }
    if let Some(path) = &setup.skills {
        skills::deploy_found(path, bench, &cluster)?;
    }
    Ok(cluster)
}

fn covered(row: &Row, bench: &Bench) -> Judged {
    for step in items(&row.input, "steps") {
        if let Some(member) = unknown(step, &STEP) {
            return Err(Stop::skip(format!("steps with \"{member}\"")));
        }
        let path = text(step, "path");
        if let Some(later) = LATER.iter().find(|later| path.starts_with(*later)) {
            return Err(Stop::skip(format!("the paths below {later}")));
        }
        known_example(step.get("json").map_or("", |json| text(json, "agent")), bench.bundled()?)?;
    }
    Ok(())
}

fn take(step: &Value, expected: &Value, cluster: &Cluster, captures: &mut Captures) -> Judged {
    if let Some(name) = step.get("wait_job").and_then(Value::as_str) {
        let job = captures.get(name).and_then(Value::as_str).unwrap_or(name);
        return cluster.http.wait(job).map(drop);
    }
    let filled = |value: &Value| value.as_str().map(|text| fill(text, captures).into_bytes());
    let body = match (step.get("json"), step.get("body").or_else(|| step.get("text"))) {
        (Some(json), _) => Some(fill_all(json, captures).to_string().into_bytes()),
        (None, Some(body)) => Some(filled(body).unwrap_or_else(|| body.to_string().into_bytes())),
        (None, None) => None,
    };
    let header = |(name, value): (&String, &Value)| (name.clone(), value.as_str().unwrap_or_default().to_owned());
    let headers: Vec<_> = step.get("headers").into_iter().flat_map(members).map(header).collect();
    let answer = cluster.http.send(text(step, "method"), &fill(text(step, "path"), captures), &headers, body)?;
    let json = answer.json();
    for (name, path) in step.get("capture").into_iter().flat_map(members) {
        let pointer = format!("/{}", path.as_str().unwrap_or_default().replace('.', "/"));
        let found = json.as_ref().and_then(|json| json.pointer(&pointer));
        captures.insert(name.clone(), found.cloned().unwrap_or(Value::Null));
    }
    if expected.is_null() {
        return Ok(());
    }
    let (expected, shown) = shown(expected, &answer, json.as_ref())?;
    compare(&expected, &shown, captures)
}

/// The pattern, and the members of the answer that it compares.
fn shown(expected: &Value, answer: &Answer, json: Option<&Value>) -> Result<(Value, Value), Stop> {
    let mut expected = expected.clone();
    let mut shown = Map::new();
    for (name, pattern) in expected.as_object_mut().into_iter().flatten() {
        let value = match name.as_str() {
            "status" => json!(answer.status),
            "content_type" => json!(media_type(&answer.content_type)),
            "json" => json.cloned().unwrap_or_else(|| json!(String::from_utf8_lossy(&answer.body))),
            "text" => {
                // Text that contains JSON is compared as JSON.
                let holds = pattern.as_str().and_then(|text| serde_json::from_str::<Value>(text).ok());
                match (holds, json) {
                    (Some(pattern_json), Some(json)) => {
                        *pattern = pattern_json;
                        json.clone()
                    }
                    _ => json!(String::from_utf8_lossy(&answer.body)),
                }
            }
            other => return Err(Stop::skip(format!("answers of which \"{other}\" is expected"))),
        };
        shown.insert(name.clone(), value);
    }
    Ok((expected, Value::Object(shown)))
}

fn media_type(content_type: &str) -> &str {
    content_type.split(';').next().unwrap_or_default().trim()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_that_holds_json_is_compared_as_json() {
        let answer = Answer {
            status: 200,
            content_type: "text/plain; charset=x".to_owned(),
            session: None,
            body: b"{\"a\": 1.0}".to_vec(),
        };
        let expected = json!({"status": 200, "content_type": "text/plain", "text": "{ \"a\" : 1 }"});
        let (expected, shown) = shown(&expected, &answer, answer.json().as_ref()).expect("known members");
        assert_eq!(compare(&expected, &shown, &Captures::new()), Ok(()));
    }
}
