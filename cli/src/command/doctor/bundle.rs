//! `atlasctl doctor --bundle`: diagnostic data in one file that can be shared.
//!
//! A job in the file has only the members listed here, so the file contains no input, output, error, label or key.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::{Map, Value};
use tar::{Builder, Header};

use crate::client::Client;
use crate::context::Context;
use crate::failure::Failure;
use crate::words::{self, could_not};

/// The folder in the archive.
const FOLDER: &str = "atlas-bundle";

/// Exported members of a job.
const OF_JOBS: [&str; 27] = [
    "id",
    "agent_name",
    "agent_version",
    "digest",
    "status",
    "reason",
    "waiting_for",
    "failure_kind",
    "priority",
    "created_at",
    "started_at",
    "completed_at",
    "queue_ms",
    "warmup_ms",
    "execution_ms",
    "total_ms",
    "retry_count",
    "original_job_id",
    "retried_by",
    "parent",
    "attempt",
    "max_attempts",
    "node",
    "epoch",
    "fencing_token",
    "run",
    "warm",
];

/// One request to the API, and the file for its answer.
struct Part {
    file: &'static str,
    path: &'static [&'static str],
    query: &'static [(&'static str, &'static str)],
}

const PARTS: [Part; 7] = [
    Part { file: "version.json", path: &["api", "version"], query: &[] },
    Part { file: "cluster.json", path: &["api", "cluster"], query: &[] },
    Part { file: "health.json", path: &["api", "health"], query: &[] },
    Part { file: "figures.json", path: &["api", "metrics"], query: &[] },
    Part { file: "nodes.json", path: &["api", "nodes"], query: &[] },
    Part { file: "agents.json", path: &["api", "agents"], query: &[("all", "true"), ("view", "full")] },
    Part { file: JOBS, path: &["api", "jobs"], query: &[("limit", "1000"), ("view", "full")] },
];
const JOBS: &str = "jobs.json";

/// Collects all parts and writes the file, which only its owner can read.
pub(super) async fn write(context: &Context, client: &Client, findings: &Value, path: &Path) -> Result<(), Failure> {
    let mut files = vec![("doctor.json".to_owned(), text(findings))];
    for Part { file, path, query } in PARTS {
        files.push(match client.get(path, query).await {
            Ok(jobs) if file == JOBS => (file.to_owned(), text(&without_contents(jobs))),
            Ok(value) => (file.to_owned(), text(&value)),
            // The failure of a request is stored in place of its answer, because it helps the diagnosis.
            Err(failure) => (format!("{file}.error"), format!("{failure}\n").into_bytes()),
        });
    }
    let mut page = Vec::new();
    let metrics = client.download(&["metrics"], |piece| {
        page.extend_from_slice(piece);
        Ok(())
    });
    files.push(match metrics.await {
        Ok(()) => ("metrics.txt".to_owned(), page),
        Err(failure) => ("metrics.txt.error".to_owned(), format!("{failure}\n").into_bytes()),
    });
    let failed = |error: io::Error| could_not("write", path, &error);
    let opened = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path);
    let size = archive(opened.map_err(failed)?, &files, context.look.now as u64).map_err(failed)?;
    let count = words::count(files.len() as u64, "file");
    let path = path.display();
    context
        .note(&format!("{path}   {count}, {}; without inputs, outputs, errors and labels of jobs", words::bytes(size)));
    Ok(())
}

fn text(value: &Value) -> Vec<u8> {
    format!("{value:#}\n").into_bytes()
}

/// Removes every member of the jobs that is not in [`OF_JOBS`].
fn without_contents(jobs: Value) -> Value {
    let Value::Array(jobs) = jobs else { return Value::Null };
    let short = |job: Value| match job {
        Value::Object(members) => {
            let kept = members.into_iter().filter(|(name, _)| OF_JOBS.contains(&name.as_str()));
            Value::Object(kept.collect::<Map<_, _>>())
        }
        _ => Value::Null,
    };
    jobs.into_iter().map(short).collect()
}

/// Writes a compressed archive; returns its size.
fn archive(file: File, files: &[(String, Vec<u8>)], now: u64) -> io::Result<u64> {
    let mut archive = Builder::new(GzEncoder::new(file, Compression::default()));
    for (name, bytes) in files {
        let mut header = Header::new_gnu();
        header.set_size(bytes.len() as u64);
        header.set_mode(0o600);
        header.set_mtime(now);
        archive.append_data(&mut header, format!("{FOLDER}/{name}"), &bytes[..])?;
    }
    let mut file = archive.into_inner()?.finish()?;
    file.flush()?;
    Ok(file.metadata()?.len())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn of_a_job_only_what_is_known_is_told() {
        let job = json!({"id": "job-1", "status": "failed", "input_data": {"key": "canary"}, "output_data": "canary",
            "error": "canary", "labels": {"a": "canary"}, "metadata": {}, "request_id": "canary", "new": "canary"});
        assert_eq!(without_contents(json!([job])), json!([{"id": "job-1", "status": "failed"}]));
    }
}
