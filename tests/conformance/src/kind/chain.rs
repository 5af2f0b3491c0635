//! Chains: definitions, and executions on a cluster with the row's agents.

use atlas_runs::{Chain, result};
use serde_json::{Value, json};

use crate::agents::{self, known_example};
use crate::bench::Bench;
use crate::cluster::Cluster;
use crate::http::ended;
use crate::matcher::Captures;
use crate::result::{Judged, Stop, compare};
use crate::row::{Row, members, text};
use crate::setup::{Setup, only};

pub(super) fn definition(row: &Row) -> Judged {
    let answer = match Chain::read(&row.input["definition"]) {
        Ok(chain) => {
            let mut shown = chain.to_json();
            shown["valid"] = json!(true);
            shown["steps"] = steps(&chain, &row.expect["steps"]);
            shown
        }
        Err(error) => json!({"valid": false, "error": error.to_string()}),
    };
    compare(&row.expect, &shown(&row.expect, answer), &Captures::new())
}

/// The steps with the members that the row compares.
fn steps(chain: &Chain, expected: &Value) -> Value {
    let mut expected = expected.as_array().into_iter().flatten();
    let step = |step: &atlas_runs::Step| {
        let all = json!({
            "agent": step.agent, "agent_name": step.agent, "name": step.name, "input_map": step.input_map,
        });
        expected.next().map_or_else(|| all.clone(), |expected| shown(expected, all.clone()))
    };
    chain.steps.iter().map(step).collect()
}

/// Runs the chain of a row, and compares the execution.
pub(super) fn execution(row: &Row, bench: &Bench) -> Judged {
    only(&row.input, &["agents", "chain", "input"])?;
    let definition = &row.input["chain"];
    let chain = Chain::read(definition).map_err(|error| Stop::fail(format!("the chain is refused: {error}")))?;
    for step in &chain.steps {
        known_example(&step.agent, bench.bundled()?)?;
    }
    if chain.steps.is_empty() {
        // The door refuses it, as that of Atlas for Python does; the engine does not.
        return compare(&row.expect, &shown(&row.expect, empty(&chain, &row.input["input"])), &Captures::new());
    }
    let folder = tempfile::tempdir().map_err(|error| Stop::system("make a folder", error))?;
    let own = agents::of_row(&row.input, &folder.path().join("agents"), bench.mocks())?;
    let cluster = Cluster::start(bench.programs()?, &Setup::new(), folder.path())?;
    cluster.register(bench.bundled()?.iter().chain(&own))?;
    let body = json!({"chain": definition, "input": row.input["input"]}).to_string().into_bytes();
    let started = cluster.http.send("POST", "/api/chains", &[], Some(body))?.success("the chain")?;
    let run = cluster.http.get(&format!("/api/chains/{}?wait=60", text(&started, "id")))?;
    if !ended(&run) {
        return Err(Stop::fail(format!("the chain did not end within 60 s: {run}")));
    }
    compare(&row.expect, &shown(&row.expect, run), &Captures::new())
}

/// The run of a chain without steps.
fn empty(chain: &Chain, input: &Value) -> Value {
    json!({
        "chain_name": chain.name, "status": "completed", "input_data": input, "current_step": -1, "total_steps": 0,
        "result": result(&[], None),
    })
}

/// The members of an execution that the row compares.
fn shown(expect: &Value, run: Value) -> Value {
    let wanted = |name: &String| members(expect).any(|(member, _)| member == name);
    match run {
        Value::Object(run) => run.into_iter().filter(|(name, _)| wanted(name)).collect(),
        other => other,
    }
}
