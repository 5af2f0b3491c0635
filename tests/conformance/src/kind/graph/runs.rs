//! Rows of the kinds `graph-run` and `graph-llm`: whole runs, with real scripts and a model that answers what the row says.

use std::collections::BTreeMap;
use std::time::Duration;

use atlas_env::Env;
use atlas_graph::run::{BranchEnd, Effect};
use atlas_graph_run::{Ran, Runner};
use atlas_package::GraphError;
use serde_json::{Value, json};
use tokio::sync::watch;

use super::folder::{Config, is_start_error, write};
use super::host::{RowHost, Seen};
use super::spelling;
use crate::matcher::Captures;
use crate::result::{Judged, Stop, compare};
use crate::row::{Row, items, members, text};

/// How often a question is asked again after an answer that its rule refuses.
const ASKS_AGAIN: u32 = 2;

pub(crate) fn judge(row: &Row) -> Judged {
    let config = write(row, "scripts")?;
    if members(&row.input["agents"]).any(|(path, _)| path.ends_with("/config.yaml")) && row.kind == "graph-llm" {
        return Err(Stop::skip("agents with a config.yaml that a graph calls"));
    }
    let loaded = match config.graph.read() {
        Ok(loaded) => loaded,
        Err(error) if is_start_error(&error) => return start_error(row, &error),
        Err(error) => return Err(Stop::fail(error.to_string())),
    };
    if loaded.graph.nodes.iter().any(|node| matches!(&node.kind, atlas_graph::Kind::Llm(llm) if llm.tools.as_ref().is_some_and(|tools| !tools.is_empty()))) {
        return Err(Stop::skip("model nodes with tools"));
    }
    if loaded.graph.nodes.iter().any(|node| matches!(node.kind, atlas_graph::Kind::Rag(_))) {
        return Err(Stop::skip("rag nodes"));
    }
    let host = RowHost::new(row);
    let prepared = run(row, &config, &loaded, &host)?;
    let ran = match prepared {
        Ok(ran) => ran,
        Err(error) if is_start_error(&error) => return start_error(row, &error),
        Err(error) => return invalid(row, &error.to_string()),
    };
    if row.expect.get("start_error").is_some() {
        return Err(Stop::fail("the agent starts"));
    }
    ended(row, &host, &ran)?;
    files(row, &config)
}

/// Runs the graph of a row. The error is that it is not run.
fn run(
    row: &Row,
    config: &Config,
    loaded: &atlas_graph::LoadedGraph,
    host: &RowHost,
) -> Result<Result<Ran, GraphError>, Stop> {
    let env = Env::system();
    let workspace = config.root.path().join("workspace");
    std::fs::create_dir_all(&workspace).map_err(|error| Stop::system("make a folder", error))?;
    let variables = members(&row.input["env"]);
    let variables = variables.map(|(name, value)| (name.clone(), value.as_str().unwrap_or_default().to_owned()));
    let runner = Runner {
        env: &env,
        host,
        workspace,
        variables: variables.collect(),
        inherits: true,
        asks_again: ASKS_AGAIN,
        special: Default::default(),
        set: Default::default(),
    };
    let prompt = text(&row.input["state_in"], "initial_prompt");
    let run = match runner.prepare(&config.graph, loaded, prompt) {
        Ok(run) => run,
        Err(error) => return Ok(Err(error)),
    };
    let (stopper, stop) = watch::channel(false);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| Stop::system("start a runtime", error))?;
    let abort = row.input["abort_after_ms"].as_u64().map(Duration::from_millis);
    let ran = runtime.block_on(async {
        let aborted = async {
            if let Some(pause) = abort {
                env.clock.sleep(pause).await;
                // The run may have ended.
                let _ = stopper.send(true);
            }
            std::future::pending::<()>().await;
        };
        tokio::select! {
            ran = runner.run(&config.graph, run, stop) => ran,
            () = aborted => Ran { result: Ok(String::new()), state: serde_json::Map::new() },
        }
    });
    Ok(Ok(ran))
}

fn start_error(row: &Row, error: &GraphError) -> Judged {
    match row.expect.get("start_error") {
        Some(_) => Ok(()),
        None => Err(Stop::fail(format!("the agent does not start: {error}"))),
    }
}

/// A graph that the validation refuses. Some of these Loki starts, and fails later.
fn invalid(row: &Row, error: &str) -> Judged {
    let refused = text(&row.expect["error"], "kind") == "validation";
    let stricter = ["REQ-31", "REQ-32", "REQ-33", "REQ-37", "REQ-57", "REQ-63"];
    if refused || stricter.iter().any(|requirement| row.differs_in(requirement)) {
        return Ok(());
    }
    Err(Stop::fail(error.to_owned()))
}

fn ended(row: &Row, host: &RowHost, ran: &Ran) -> Judged {
    let seen = host.seen();
    if let Some(judged) = otherwise(row, &seen, ran) {
        return judged;
    }
    match (&ran.result, row.expect["error"].is_null()) {
        (Ok(output), true) => output_is(&row.expect["output"], output)?,
        (Err(error), false) => {
            let (kind, expected) = (error.kind.code(), text(&row.expect["error"], "kind"));
            if !spelling::same(kind, expected) {
                return Err(Stop::fail(format!("expected the error \"{expected}\", got \"{kind}\": {error}")));
            }
        }
        (Ok(output), false) => return Err(Stop::fail(format!("the run succeeds with {output:?}"))),
        (Err(error), true) => return Err(Stop::fail(error.to_string())),
    }
    let cut = ["REQ-30", "REQ-36"].iter().any(|requirement| row.differs_in(requirement));
    if !cut {
        trace(&row.expect["trace"], &seen.trace)?;
    }
    state(row, ran)?;
    if let Some(expected) = row.expect.get("questions") {
        compare(expected, &Value::Array(seen.questions), &Captures::new())?;
    }
    if let Some(expected) = row.expect.get("nested") {
        nested(expected, &seen.nested)?;
    }
    match row.expect.get("requests") {
        Some(expected) => super::requests::same(row, expected, &seen.requests),
        None => Ok(()),
    }
}

/// Judges a row in which Atlas does something else on purpose. None if the difference shows only in what is ignored.
fn otherwise(row: &Row, seen: &Seen, ran: &Ran) -> Option<Judged> {
    let differs = |requirements: &[&str]| requirements.iter().any(|requirement| row.differs_in(requirement));
    let expected = |member: &str| items(&row.expect, member).count();
    if differs(&["REQ-40", "REQ-44", "REQ-46", "REQ-51", "REQ-53", "REQ-67"]) {
        // Atlas succeeds, with another output or state than Loki.
        let same_output = ran.result.as_ref().ok().map(String::as_str) == row.expect["output"].as_str();
        let same = same_output && row.expect["state_out"] == Value::Object(ran.state.clone());
        return Some(match &ran.result {
            Ok(_) if same => Err(Stop::fail("the run ends as that of Loki does")),
            Ok(_) => Ok(()),
            Err(error) => Err(Stop::fail(error.to_string())),
        });
    }
    if differs(&["REQ-45"]) {
        let asked = seen.requests.len() > expected("requests");
        return Some(if asked { Ok(()) } else { Err(Stop::fail("the model is not asked to repair its answer")) });
    }
    if differs(&["REQ-37"]) {
        let asked = seen.questions.len() >= expected("questions");
        return Some(if asked { Ok(()) } else { Err(Stop::fail("the question is not asked again")) });
    }
    None
}

/// Texts of errors are ours: what begins like one is compared up to there.
fn output_is(expected: &Value, output: &str) -> Judged {
    if spelling::same_text(expected.as_str().unwrap_or_default(), output) {
        return Ok(());
    }
    compare(expected, &json!(output), &Captures::new())
}

fn trace(expected: &Value, trace: &[Vec<(String, BranchEnd)>]) -> Judged {
    let steps = expected.as_array().map(Vec::as_slice).unwrap_or_default();
    let shown = |(node, end): &(String, BranchEnd)| match end {
        BranchEnd::To(to) => json!({"node": node, "to": to}),
        BranchEnd::End => json!({"node": node, "end": true}),
        BranchEnd::Failed(fault) => json!({"node": node, "failed": fault.kind.code()}),
    };
    let mut actual: Vec<Vec<Value>> = trace.iter().map(|step| step.iter().map(shown).collect()).collect();
    for (step, expected) in actual.iter_mut().zip(steps) {
        for (one, expected) in step.iter_mut().zip(expected.as_array().into_iter().flatten()) {
            if spelling::same(text(one, "failed"), text(expected, "failed")) {
                one["failed"] = expected["failed"].clone();
            }
        }
    }
    for one in actual.iter_mut().flatten().filter_map(Value::as_object_mut) {
        one.retain(|_, value| !value.is_null());
    }
    compare(expected, &json!(actual), &Captures::new())
}

/// Compares the last state. A name of a result that is null was left by Loki's evaluation of updates.
fn state(row: &Row, ran: &Ran) -> Judged {
    let mut expected = row.expect["state_out"].clone();
    if let Some(members) = expected.as_object_mut() {
        let is_left = |name: &str, value: &Value| {
            value.is_null() && ["output", "choice", "input"].contains(&name) && !ran.state.contains_key(name)
        };
        members.retain(|name, value| !is_left(name, value));
    }
    let mut actual = ran.state.clone();
    for (name, value) in &mut actual {
        let other = &expected[name.as_str()];
        if let (Some(own), Some(expected)) = (value.as_str(), other.as_str())
            && spelling::same_text(expected, own)
        {
            *value = other.clone();
        }
        if let (Value::Array(own), Value::Array(others)) = (&mut *value, other) {
            for (own, other) in own.iter_mut().zip(others) {
                if let (Some(text), Some(expected)) = (own.as_str(), other.as_str())
                    && spelling::same_text(expected, text)
                {
                    *own = other.clone();
                }
            }
        }
    }
    compare(&expected, &Value::Object(actual), &Captures::new())
}

/// Graphs inside the graph: their super-steps, which can be in any order where several run at the same time.
fn nested(expected: &Value, seen: &BTreeMap<(u32, String), Vec<Vec<String>>>) -> Judged {
    let sorted = |steps: &Value| {
        let mut steps = steps.as_array().cloned().unwrap_or_default();
        steps.sort_by_key(Value::to_string);
        Value::Array(steps)
    };
    let mut wanted: Vec<Value> = expected.as_array().cloned().unwrap_or_default();
    for one in &mut wanted {
        one["steps"] = sorted(&one["steps"]);
    }
    wanted.sort_by_key(Value::to_string);
    let one = |((depth, graph), steps): (&(u32, String), &Vec<Vec<String>>)| json!({"depth": depth, "graph": graph, "steps": sorted(&json!(steps))});
    let mut actual: Vec<Value> = seen.iter().map(one).collect();
    actual.sort_by_key(Value::to_string);
    let plain = |value: &Value| json!([value["depth"], value["graph"], value["steps"]]);
    let [wanted, actual] = [wanted, actual].map(|list| list.iter().map(plain).collect::<Value>());
    compare(&wanted, &actual, &Captures::new())
}

/// The files that scripts left in the folder in which they ran.
fn files(row: &Row, config: &Config) -> Judged {
    let Some(expected) = row.expect.get("files") else { return Ok(()) };
    let workspace = config.root.path().join("workspace");
    let read = |name: &str| std::fs::read_to_string(workspace.join(name)).ok();
    for (name, content) in members(expected) {
        match (read(name), content.as_str()) {
            (Some(found), Some(content)) => compare(&json!(content), &json!(found), &Captures::new())?,
            (found, _) if found.is_some() == (content.as_bool() == Some(true)) => {}
            (found, _) => return Err(Stop::fail(format!("the file \"{name}\" is {found:?}"))),
        }
    }
    for name in items(&row.expect, "files").filter_map(Value::as_str) {
        read(name).ok_or_else(|| Stop::fail(format!("the file \"{name}\" is missing")))?;
    }
    Ok(())
}

/// What an effect adds to the trace of its run.
pub(super) fn stepped(effect: &Effect) -> Option<&Vec<(String, BranchEnd)>> {
    match effect {
        Effect::Stepped(record) => Some(&record.branches),
        _ => None,
    }
}
