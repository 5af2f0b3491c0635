//! Runs of chains: the same verbs as for jobs, because an id is all that a person has.

mod alone;
mod logs;
mod verbs;

use std::time::Duration;

use serde_json::{Value, json};

use crate::client::Client;
use crate::command::chain::{conclude, wait as wait_for};
use crate::command::job::tree;
use crate::context::Context;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::{Shown, Table};

pub(crate) use crate::names::is_execution as is_one;
pub(crate) use alone::{is_several, jobs, only_job, retry};
pub(crate) use logs::{Wanted, logs};
pub(crate) use verbs::{each_job, exit, explain, follow_jobs};

/// The run with this id, or with this beginning of one.
pub(crate) async fn get(client: &Client, id: &str) -> Result<Value, Failure> {
    client.get(&["api", "chains", id], &[("view", "full")]).await
}

/// Shows a run of a chain: its steps with their jobs, and its output or what went wrong.
pub(super) async fn show(context: &Context, id: &str) -> Result<Exit, Failure> {
    let (family, run) = tree::read(&context.client()?, id).await?;
    let id = run["id"].as_str().unwrap_or(id).to_owned();
    let (mut table, mut names) = (Table::new(&tree::HEADS), vec![id.clone()]);
    tree::rows(&family, &mut table, &mut names);
    let mut text = table.text();
    if let Some(failure) = failure(&run) {
        text += &format!("  error      {}\n", failure.message);
        text.extend(failure.places.iter().map(|(at, rule)| format!("  at         {at}: {rule}\n")));
        text += &returned(&run).map(|output| format!("  returned   {output}\n")).unwrap_or_default();
    }
    if run["status"] == "completed" {
        text += &format!("  output     {}\n", run["result"]["output"]);
    }
    let next = match run["status"].as_str().unwrap_or_default() {
        "completed" => format!("next: atlasctl job trace {id}   or: atlasctl job cost {id}"),
        "failed" | "cancelled" => format!("next: atlasctl job logs {id}   or: atlasctl job trace {id}"),
        _ => format!("next: atlasctl job wait {id}   or: atlasctl job cancel {id}"),
    };
    context.show(&Shown { value: run, text, names })?;
    context.next(&next);
    Ok(Exit::Done)
}

/// Waits until a run has ended, and prints its output.
pub(super) async fn wait(context: &Context, id: &str, timeout: Option<Duration>) -> Result<Exit, Failure> {
    let run = wait_for(&context.client()?, id, timeout).await?;
    conclude(context, run)
}

/// Prints the output of a run that has ended.
pub(super) async fn result(context: &Context, id: &str) -> Result<Exit, Failure> {
    let run = get(&context.client()?, id).await?;
    if !run["result"].is_object() {
        let id = run["id"].as_str().unwrap_or(id);
        let message = format!("{id} has not ended ({})", run["status"].as_str().unwrap_or_default());
        let next = format!("wait for it: atlasctl job wait {id}");
        return Err(Failure::new("E3104", Exit::WaitTimedOut, message).with_next(next));
    }
    conclude(context, run)
}

/// Cancels a run with the jobs of its current steps.
pub(super) async fn cancel(context: &Context, id: &str) -> Result<Exit, Failure> {
    let value = context.client()?.post(&["api", "chains", id, "cancel"], &[], &json!({})).await?;
    if value["cancelled"] != json!(true) {
        let failure = Failure::new("E3005", Exit::Conflict, format!("{id} has already ended"));
        return Err(failure.with_next(format!("see its result: atlasctl job show {id}")));
    }
    context.note(&format!("{id} was cancelled"));
    context.next(&format!("next: atlasctl job show {id}"));
    context.show(&Shown { value, text: String::new(), names: vec![id.to_owned()] })?;
    Ok(Exit::Done)
}

/// The step that failed, and why; steps count from 1. None for a run that did not fail.
pub(crate) fn failure(run: &Value) -> Option<Failure> {
    if run["status"] != "failed" {
        return None;
    }
    let text = |value: &Value| value.as_str().map(str::to_owned);
    let told = &run["failure"];
    let reason = text(&told["reason"]).or_else(|| text(&run["result"]["error"]));
    let reason = reason.unwrap_or_else(|| "the chain failed".to_owned());
    let message = match told["step"].as_u64() {
        Some(step) => {
            let agent = text(&told["agent"]).map(|agent| format!(" ({agent})")).unwrap_or_default();
            format!("step {} of {}{agent} failed: {reason}", step + 1, run["total_steps"])
        }
        None => reason,
    };
    let at = told["at"].as_str().unwrap_or_default().split("; ").filter_map(|place| place.split_once(": "));
    let places = at.map(|(at, rule)| (at.to_owned(), rule.to_owned())).collect();
    let failure = Failure { places, ..Failure::new("E3101", Exit::JobFailed, message) };
    let id = run["id"].as_str().unwrap_or_default();
    Some(match text(&told["job_id"]) {
        Some(job) => failure.with_next(format!(
            "what its agent logged: atlasctl job logs {job}   or all steps: atlasctl job show {id}"
        )),
        None => failure.with_next(format!("all steps: atlasctl job show {id}")),
    })
}

/// What the agent of the failed step returned, in one line; none if it returned nothing.
pub(crate) fn returned(run: &Value) -> Option<String> {
    let output = &run["failure"]["output"];
    (!output.is_null()).then(|| output.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_tell_what_they_are_of() {
        assert!(is_one("chain-4f3a") && is_one("run-51c80e7a93d24b16"));
        assert!(!is_one("job-4f3a") && !is_one("4f3a") && !is_one("chainsaw"));
    }

    #[test]
    fn a_failure_names_step_agent_place_and_reason() {
        let run = json!({
            "id": "chain-1", "status": "failed", "total_steps": 3,
            "result": {"error": "Agent failed at step 1 (sum): Output validation failed"},
            "failure": {
                "step": 1, "name": "add", "agent": "sum", "job_id": "job-2", "at": "/n: type; /m: minimum",
                "reason": "Output validation: 'x' is not of type 'integer'", "output": {"n": "x"},
            },
        });
        expect_test::expect![[r#"
            error[E3101]: step 2 of 3 (sum) failed: Output validation: 'x' is not of type 'integer'
              at /n    type
              at /m    minimum
            what its agent logged: atlasctl job logs job-2   or all steps: atlasctl job show chain-1"#]]
        .assert_eq(&failure(&run).expect("failed").to_string());
        assert_eq!(returned(&run).as_deref(), Some(r#"{"n":"x"}"#));
        let older = json!({"id": "chain-1", "status": "failed", "result": {"error": "boom"}});
        assert_eq!(failure(&older).expect("failed").message, "boom");
        assert_eq!((failure(&json!({"status": "completed"})), returned(&older)), (None, None));
    }
}
