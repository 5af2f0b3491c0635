//! The example agents of Atlas for Python that call a model, run with a provider that answers what the row says.

use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

use atlas_contract::ProviderKind;
use serde_json::{Map, Value, json};

use crate::agents::known_example;
use crate::bench::Bench;
use crate::matcher::Captures;
use crate::result::{Judged, Stop, compare};
use crate::row::Row;
use crate::setup::only;

/// Runs one agent with the Python package of Atlas.
const HARNESS: &str = include_str!("example.py");

const MEMBERS: [&str; 6] = ["agent", "input", "provider_text", "provider_model", "provider_tokens", "injected_as"];

pub(in crate::kind) fn judge(row: &Row, bench: &Bench) -> Judged {
    only(&row.input, &MEMBERS)?;
    if row.text("injected_as") != "llm_provider" {
        return Err(Stop::skip(format!("providers injected as \"{}\"", row.text("injected_as"))));
    }
    let name = row.text("agent");
    known_example(name, bench.bundled()?)?;
    let folder = tempfile::tempdir().map_err(|error| Stop::system("make a folder", error))?;
    let contract = unpack(name, bench, folder.path())?;
    let tokens = row.input.get("provider_tokens").cloned().unwrap_or_else(|| json!([0, 0]));
    let case = json!({
        "directory": folder.path().join("agent"),
        "contract": contract,
        "input": row.input["input"],
        "text": row.text("provider_text"),
        "model": row.text("provider_model"),
        "tokens": tokens,
        "injected_as": row.text("injected_as"),
    });
    let ended = run(&case)?;
    let members = row.expect.as_object().into_iter().flatten();
    let answer: Map<String, Value> =
        members.map(|(member, _)| (member.clone(), ended.get(member).cloned().unwrap_or(Value::Null))).collect();
    compare(&row.expect, &Value::Object(answer), &Captures::new())
}

/// Unpacks a bundled agent into a folder, and returns its contract.
fn unpack(name: &str, bench: &Bench, folder: &Path) -> Result<Value, Stop> {
    let agent = bench.bundled()?.iter().find(|agent| agent.name == name);
    let agent = agent.ok_or_else(|| Stop::fail(format!("there is no agent \"{name}\"")))?;
    let limits = atlas_package::Limits::default();
    let package = atlas_package::unpack(&agent.archive, &folder.join("agent"), &limits);
    let failed = |error: &dyn std::error::Error| Stop::system("unpack an agent", error);
    package.map_err(|error| failed(&error))?;
    let text = std::fs::read(folder.join("agent/agent.yaml")).map_err(|error| failed(&error))?;
    let contract = atlas_contract::parse(&text).map_err(|error| failed(&error))?;
    if contract.provider.kind != ProviderKind::Python {
        return Err(Stop::skip(format!("\"{name}\", which is no program")));
    }
    Ok(contract.to_json())
}

fn run(case: &Value) -> Result<Value, Stop> {
    let failed = |error: std::io::Error| Stop::system("run python3", error);
    let sdk = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../agents/sdk/python");
    let mut command = Command::new("python3");
    command.args(["-B", "-c", HARNESS]).env("PYTHONPATH", sdk);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().map_err(failed)?;
    if let Some(mut stdin) = child.stdin.take() {
        stdin.write_all(case.to_string().as_bytes()).map_err(failed)?;
    }
    let output = child.wait_with_output().map_err(failed)?;
    let stderr = String::from_utf8_lossy(&output.stderr);
    serde_json::from_slice(&output.stdout).map_err(|_| Stop::fail(format!("the agent printed {}", stderr.trim())))
}
