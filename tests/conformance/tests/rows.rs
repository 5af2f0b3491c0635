//! Runs the sample rows, none of which may fail.

#![cfg(test)]

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Mutex;

use atlas_conformance::{Bench, Row, RowResult, Tally, run};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).to_owned()
}

fn rows<S: AsRef<str>>(files: &[S]) -> Vec<Row> {
    let read = |file: &S| {
        let text = std::fs::read_to_string(folder().join("rows").join(file.as_ref())).expect("a sample file");
        Row::read_all(&text).expect("rows")
    };
    files.iter().flat_map(read).collect()
}

fn check(rows: &[Row], at_once: usize) -> Tally {
    let failed = Mutex::new(Vec::new());
    let bench = Bench::new(folder().join("mocks"));
    let tally = run(&bench, rows, at_once, &|row, verdict| {
        if matches!(verdict, RowResult::Fail(_)) {
            failed.lock().expect("no panic").push(verdict.line(&row.id));
        }
    });
    let failed = failed.into_inner().expect("no panic");
    assert!(failed.is_empty(), "{}", failed.join("\n"));
    tally
}

#[test]
fn pure_rules() {
    let files = [
        "acl",
        "bridge",
        "contracts",
        "cron",
        "eval",
        "hardware",
        "hmac",
        "knowledge",
        "mediation",
        "memory",
        "metrics",
        "misc",
        "packages",
        "policy",
        "retry",
        "schema",
        "semver",
        "similarity",
        "skills",
        "triggers",
    ];
    let rows = rows(&files.map(|file| format!("{file}.jsonl")));
    assert_eq!(check(&rows, 1), Tally { passed: rows.len(), ..Tally::default() });
}

/// Rows of Loki for rules that need no process.
#[test]
fn pure_rules_of_loki() {
    let rows = rows(&[
        "loki/graphs.jsonl",
        "loki/input-validation.jsonl",
        "loki/reducers.jsonl",
        "loki/supervisor.jsonl",
        "loki/templates.jsonl",
        "loki/todo.jsonl",
        "loki/tools.jsonl",
    ]);
    assert_eq!(check(&rows, 1), Tally { passed: rows.len(), ..Tally::default() });
}

/// Runs of graphs, whose scripts are programs of Bash and Python.
#[test]
fn runs_of_graphs() {
    let mut rows = rows(&["loki/graph-runs.jsonl", "loki/graph-llm.jsonl"]);
    // It calls an agent that is no graph.
    rows.retain(|row| row.id != "llm-child-spawn-instructions-lost");
    let python = Command::new("python3").arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status();
    if !python.is_ok_and(|status| status.success()) {
        atlas_notice::skip("the runs of graphs need python3, which is not here");
        return;
    }
    assert_eq!(check(&rows, 4), Tally { passed: rows.len(), ..Tally::default() });
}

/// Rows for behaviour that is specified but missing in the samples.
#[test]
fn rows_of_our_own() {
    let rows = rows(&["own.jsonl"]);
    assert_eq!(check(&rows, 1), Tally { passed: rows.len(), ..Tally::default() });
}

/// The mediation of the Python SDK, which has an implementation of its own, decides like the platform.
#[test]
fn mediation_of_the_python_sdk() {
    let recent = "import sys; sys.exit(sys.version_info < (3, 11))";
    if !Command::new("python3").args(["-c", recent]).status().is_ok_and(|status| status.success()) {
        atlas_notice::skip("no python3 of version 3.11 or later here");
        return;
    }
    let files = ["mediation.jsonl", "similarity.jsonl", "own.jsonl"];
    let rows = rows(&files);
    let checked = rows.iter().filter(|row| ["mediate", "similarity", "tokenize"].contains(&row.kind.as_str()));
    let output = Command::new("python3")
        .arg("-B")
        .arg(folder().join("python/mediation.py"))
        .args(files.map(|file| folder().join("rows").join(file)))
        .env("PYTHONPATH", folder().join("../../agents/sdk/python"))
        .output()
        .expect("python3 starts");
    let (lines, errors) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{lines}{errors}");
    assert_eq!(lines.trim_end(), format!("{} passed", checked.count()));
}

#[test]
fn processes() {
    let python = Command::new("python3").arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status();
    if !python.is_ok_and(|status| status.success()) {
        atlas_notice::skip("the rows of jobs, rest and ws need python3, which is not here");
        return;
    }
    let tools = rows(&["loki/tool-exec.jsonl"]);
    assert_eq!(check(&tools, 4), Tally { passed: tools.len(), ..Tally::default() });
    // A selection of rows with different needs; the program `atlas-conformance` runs all rows.
    let wanted = [
        "jobs-001",
        "jobs-008",
        "jobs-012",
        "jobs-038",
        "rest-005",
        "rest-046",
        "ws-002",
        "cli-001",
        "cli-005",
        "llm-001",
        "llm-028",
        "llm-037",
        "mcp-001",
        "mcp-009",
        "mcp-013",
        "mcp-016",
        "mcp-034",
        "mcp-038",
        "mcp-043",
        "chains-001",
        "chains-013",
        "chains-017",
        "chains-036",
        "chains-039",
    ];
    let mut all =
        rows(&["jobs.jsonl", "rest.jsonl", "ws.jsonl", "cli.jsonl", "llm.jsonl", "mcp.jsonl", "chains.jsonl"]);
    all.retain(|row| wanted.contains(&row.id.as_str()));
    let own = rows(&["own-processes.jsonl"]);
    let passed = wanted.len() + own.len();
    all.extend(own);
    assert_eq!(check(&all, 4), Tally { passed, ..Tally::default() });
}
