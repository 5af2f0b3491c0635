//! `atlasctl graph history` and `atlasctl graph resume`: the recorded work of a run.

use atlas_api::types::JobStep;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::answers;
use crate::client::Client;
use crate::context::Context;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::names;
use crate::output::{Shown, Table};

/// Characters of a result in the table.
const RESULT_CHARS: usize = 60;
/// Steps that are asked for at once.
const PAGE: u64 = 1_000;

/// Which run.
#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// Job id, or a unique prefix of it, also as printed by -o name.
    #[arg(value_name = "ID", value_parser = names::job)]
    id: String,
}

/// Which run goes on.
#[derive(Debug, clap::Args)]
pub(crate) struct ResumeOptions {
    /// Job id of the failed run, or a unique prefix of it, also as printed by -o name.
    #[arg(value_name = "ID", value_parser = names::job)]
    id: String,
    /// The version of the graph that goes on, or a requirement; without it, that of the failed run.
    #[arg(long, value_name = "REQUIREMENT")]
    version: Option<String>,
}

/// Where a run begins.
#[derive(Debug, clap::Args)]
pub(crate) struct ForkOptions {
    /// Job id, or a unique prefix of it, also as printed by -o name.
    #[arg(value_name = "ID", value_parser = names::job)]
    id: String,
    /// The first step that is not copied, as atlasctl graph history numbers them.
    #[arg(long, value_name = "STEP")]
    from_step: u64,
    /// The version of the graph that goes on, or a requirement; without it, that of the run.
    #[arg(long, value_name = "REQUIREMENT")]
    version: Option<String>,
    /// A value of the state that the first node that is done again sees: JSON, or a text. Can be repeated.
    #[arg(long, value_name = "KEY=VALUE", value_parser = assignment)]
    set: Vec<(String, Value)>,
}

/// `key=value`; a value that is no JSON is a text.
fn assignment(text: &str) -> Result<(String, Value), String> {
    let (key, value) = text.split_once('=').ok_or("a value is set with key=value")?;
    if key.is_empty() {
        return Err("the key is empty".to_owned());
    }
    Ok((key.to_owned(), serde_json::from_str(value).unwrap_or_else(|_| value.into())))
}

/// The outcome of a step that has the result of a node.
#[derive(Debug, Deserialize)]
struct Work {
    node: String,
    step: u64,
    item: Option<u64>,
    result: Option<Value>,
    fault: Option<Fault>,
}

#[derive(Debug, Deserialize)]
struct Fault {
    text: String,
}

pub(crate) async fn run(context: &Context, options: &Options) -> Result<Exit, Failure> {
    let value = steps(&context.client()?, &options.id).await?;
    let all: Vec<JobStep> = answers::read(&value)?;
    let names = all.iter().map(|step| step.step.to_string()).collect();
    context.show(&Shown { value, text: table(&all), names })?;
    Ok(Exit::Done)
}

pub(crate) async fn resume(context: &Context, options: &ResumeOptions) -> Result<Exit, Failure> {
    let client = context.client()?;
    let all: Vec<JobStep> = answers::read(&steps(&client, &options.id).await?)?;
    begin(context, &client, (&options.id, copied(&all)), options.version.as_deref(), None).await
}

pub(crate) async fn fork(context: &Context, options: &ForkOptions) -> Result<Exit, Failure> {
    let (client, version) = (context.client()?, options.version.as_deref());
    let from = (options.id.as_str(), options.from_step);
    if options.set.is_empty() {
        return begin(context, &client, from, version, None).await;
    }
    let all: Vec<JobStep> = answers::read(&steps(&client, &options.id).await?)?;
    let before = super_step(&all, options.from_step).ok_or_else(|| {
        let text = format!("no node ended at step {} or later, so there is none to see the values", options.from_step);
        Failure::usage(text).with_next(format!("list the steps: atlasctl graph history {}", options.id))
    })?;
    let values: Map<String, Value> = options.set.iter().cloned().collect();
    begin(context, &client, from, version, Some(json!({ "before": before, "values": values }))).await
}

/// The super-step of the first node that is done again.
fn super_step(all: &[JobStep], from: u64) -> Option<u64> {
    all.iter().filter(|step| step.step >= from).find_map(work).map(|work| work.step)
}

/// Begins a run with the first `steps` of another one.
async fn begin(
    context: &Context,
    client: &Client,
    (id, steps): (&str, u64),
    version: Option<&str>,
    set: Option<Value>,
) -> Result<Exit, Failure> {
    let mut body = json!({"steps": steps, "version": version});
    if let Some(set) = set {
        body["set"] = set;
    }
    let value = client.post(&["api", "jobs", id, "fork"], &[], &body).await?;
    let new = value["id"].as_str().ok_or_else(|| Failure::answer("a fork is answered with an id"))?.to_owned();
    context.next(&format!("next: atlasctl job wait {new}"));
    context.show(&Shown { value, text: format!("{new}\n"), names: vec![format!("job/{new}")] })?;
    Ok(Exit::Done)
}

/// All recorded steps.
async fn steps(client: &Client, id: &str) -> Result<Value, Failure> {
    let (limit, mut all) = (PAGE.to_string(), Vec::new());
    loop {
        let after = all.last().and_then(|step: &Value| step["step"].as_u64()).map(|step| step.to_string());
        let mut query = vec![("limit", limit.as_str())];
        query.extend(after.as_deref().map(|after| ("after", after)));
        let page = client.get(&["api", "jobs", id, "steps"], &query).await?;
        let page = page.as_array().cloned().unwrap_or_default();
        let is_last = (page.len() as u64) < PAGE;
        all.extend(page);
        if is_last {
            return Ok(Value::Array(all));
        }
    }
}

fn work(step: &JobStep) -> Option<Work> {
    (step.kind == "effect").then(|| Work::deserialize(&step.outcome).ok()).flatten()
}

/// Values that a person set, as a row of the table.
fn set(step: &JobStep) -> Option<Work> {
    let set = step.outcome.get("set").filter(|_| step.kind == "effect")?;
    let before = step.outcome.get("step")?.as_u64()?;
    Some(Work { node: "(set)".to_owned(), step: before, item: None, result: Some(set.clone()), fault: None })
}

/// How many steps a new run copies: those before the first failure of the last super-step.
fn copied(all: &[JobStep]) -> u64 {
    let works: Vec<(u64, Work)> = all.iter().filter_map(|step| Some((step.step, work(step)?))).collect();
    let last = works.iter().map(|(_, work)| work.step).max();
    let failed = works.iter().find(|(_, work)| Some(work.step) == last && work.fault.is_some());
    failed.map_or(all.len() as u64, |(step, _)| *step)
}

fn table(all: &[JobStep]) -> String {
    let mut table = Table::new(&["STEP", "SUPER-STEP", "NODE", "RESULT"]);
    let works = all.iter().filter_map(|step| Some((step.step, work(step).or_else(|| set(step))?)));
    for (step, work) in works {
        let item = work.item.map(|item| format!("[{item}]")).unwrap_or_default();
        let result = match (work.fault, work.result) {
            (Some(fault), _) => format!("failed: {}", fault.text),
            (None, Some(Value::String(text))) => text,
            (None, result) => result.unwrap_or_default().to_string(),
        };
        let result = result.replace('\n', " ");
        let mut shown: String = result.chars().take(RESULT_CHARS).collect();
        if shown.len() < result.len() {
            shown.push('…');
        }
        table.row([step.to_string(), work.step.to_string(), work.node + &item, shown]);
    }
    table.text()
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::*;

    fn check(steps: Value, expected: &Expect) {
        let all: Vec<JobStep> = serde_json::from_value(steps).expect("steps");
        expected.assert_eq(&format!("{}{} copied\n", table(&all), copied(&all)));
    }

    #[test]
    fn failed_work_is_done_again() {
        check(
            json!([
                {"step": 0, "kind": "start", "outcome": {}},
                {"step": 1, "kind": "effect", "outcome": {"graph": "g", "node": "a", "step": 0, "fault": {"kind": "llm", "text": "no"}}},
                {"step": 2, "kind": "model", "outcome": {}},
                {"step": 3, "kind": "effect", "outcome": {"graph": "g", "node": "m", "step": 1, "item": 0, "result": "x\ny"}},
                {"step": 4, "kind": "effect", "outcome": {"graph": "g", "node": "m", "step": 1, "item": 1, "fault": {"kind": "script-exit", "text": "exit 3"}}},
                {"step": 5, "kind": "effect", "outcome": {"graph": "g", "node": "m", "step": 1, "item": 2, "result": {"long": "0123456789012345678901234567890123456789012345678901234567890"}}},
            ]),
            &expect![[r#"
                STEP  SUPER-STEP  NODE  RESULT
                1     0           a     failed: no
                3     1           m[0]  x y
                4     1           m[1]  failed: exit 3
                5     1           m[2]  {"long":"012345678901234567890123456789012345678901234567890…
                4 copied
            "#]],
        );
    }

    #[test]
    fn values_that_were_set_are_shown() {
        check(
            json!([
                {"step": 0, "kind": "start", "outcome": {}},
                {"step": 1, "kind": "effect", "outcome": {"graph": "g", "node": "a", "step": 0, "result": {}}},
                {"step": 2, "kind": "effect", "outcome": {"step": 1, "set": {"limit": 5}}},
                {"step": 3, "kind": "effect", "outcome": {"graph": "g", "node": "b", "step": 1, "result": {}}},
            ]),
            &expect![[r#"
                STEP  SUPER-STEP  NODE   RESULT
                1     0           a      {}
                2     1           (set)  {"limit":5}
                3     1           b      {}
                4 copied
            "#]],
        );
    }

    #[test]
    fn values_count_from_the_first_node_that_is_done_again() {
        let steps = json!([
            {"step": 0, "kind": "start", "outcome": {}},
            {"step": 1, "kind": "effect", "outcome": {"graph": "g", "node": "a", "step": 0, "result": {}}},
            {"step": 2, "kind": "model", "outcome": {}},
            {"step": 3, "kind": "effect", "outcome": {"graph": "g", "node": "b", "step": 1, "result": {}}},
        ]);
        let all: Vec<JobStep> = serde_json::from_value(steps).expect("steps");
        assert_eq!([1, 2, 3, 4].map(|from| super_step(&all, from)), [Some(0), Some(1), Some(1), None]);
        assert_eq!(assignment("a=1=2"), Ok(("a".to_owned(), json!("1=2"))));
        assert_eq!(assignment("a={\"b\": [1]}"), Ok(("a".to_owned(), json!({"b": [1]}))));
        assert_eq!(assignment("a="), Ok(("a".to_owned(), json!(""))));
        assert!(assignment("a").is_err() && assignment("=a").is_err());
    }

    #[test]
    fn a_run_without_failure_keeps_everything() {
        check(
            json!([{"step": 0, "kind": "start", "outcome": {}}, {"step": 1, "kind": "effect", "outcome": null}]),
            &expect![[r#"
                STEP  SUPER-STEP  NODE  RESULT
                2 copied
            "#]],
        );
    }
}
