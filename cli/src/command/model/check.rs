//! `atlasctl model check`: one real model call, made by a job, so that the key goes the same way as for every other call.

use std::time::Duration;

use atlas_api::types::Job;
use atlas_package::PackFile;
use serde_json::{Value, json};

use super::KIND;
use super::add::price;
use crate::answers;
use crate::client::Client;
use crate::context::Context;
use crate::display::JobDisplay as _;
use crate::ending;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::names;
use crate::output::Shown;
use crate::words;

/// The contract of the agent that makes the call. It is registered with the first check.
const CONTRACT: &str = include_str!("check.yaml");
const AGENT: &str = "model-check";

/// Options of `atlasctl model check`.
#[derive(Debug, clap::Args)]
#[group(skip)]
pub(crate) struct Options {
    /// The model's name.
    #[arg(value_parser = names::model)]
    name: String,
    /// Longest wait for the answer.
    #[arg(long, value_name = "DURATION", default_value = "90s", value_parser = words::parse_duration)]
    timeout: Duration,
}

pub(super) async fn run(context: &Context, options: &Options) -> Result<Exit, Failure> {
    let name = &options.name;
    let client = context.client()?;
    let object = client.get(&["api", "objects", KIND, name], &[]).await?;
    let value = job(&client, AGENT, CONTRACT, json!({"model": name}), options.timeout, Some(context)).await?;
    let job: Job = answers::read(&value)?;
    let id = job.id.as_str();
    match ending::exit(&job) {
        Exit::Done => {}
        Exit::JobFailed => return Err(failed(name, &job)),
        exit => {
            let text = format!("the model \"{name}\" has not answered: the job {id} is {}", job.standing());
            let code = if exit == Exit::WaitTimedOut { "E4004" } else { "E3201" };
            return Err(Failure::new(code, exit, text).with_next(format!("atlasctl job explain {id}")));
        }
    }
    let steps = client.get(&["api", "jobs", id, "steps"], &[]).await?;
    let step = steps.as_array().into_iter().flatten().find(|step| step["kind"] == "model");
    let latency_ms = step.and_then(|step| step["duration_ms"].as_f64()).unwrap_or_default();
    let answered_as = job.model().unwrap_or_default();
    let (input, output, cost) = (job.tokens_input, job.tokens_output, job.cost());
    let mut text = reachable(name, latency_ms, &object["spec"]);
    text += &format!("   answered as {answered_as}, {input} in, {output} out");
    if !cost.is_empty() {
        text += &format!(", {cost}");
    }
    let value = json!({
        "model": name, "ok": true, "latency_ms": latency_ms, "answered_as": answered_as, "tokens_input": input,
        "tokens_output": output, "cost_usd": job.cost_usd, "job": id,
    });
    context.show(&Shown { value, text: format!("{text}\n"), names: vec![format!("{KIND}/{name}")] })?;
    Ok(Exit::Done)
}

/// `model fast   reachable in 212 ms   $0.40 / $1.60 per million tokens`
pub(super) fn reachable(name: &str, latency_ms: f64, spec: &Value) -> String {
    format!("model {name}   reachable in {}   {}", words::milliseconds(latency_ms), price(spec))
}

/// Runs a job of an agent of this program, whose input names a model, and waits for its end. The agent is registered first.
pub(crate) async fn job(
    client: &Client,
    agent: &str,
    contract: &str,
    input: Value,
    timeout: Duration,
    tell: Option<&Context>,
) -> Result<Value, Failure> {
    let file = PackFile { path: "agent.yaml".to_owned(), bytes: contract.as_bytes().to_vec(), executable: false };
    let package = atlas_package::pack_files(vec![file]).map_err(|error| {
        Failure::new("E9001", Exit::Short, format!("the agent {agent} could not be packed: {error}"))
    })?;
    let version = package.contract.version.to_string();
    client.register(package.bytes, true).await?;
    let body = json!({"agent": agent, "version": version, "input": input});
    let submitted = client.post(&["api", "jobs"], &[("validate", "refuse")], &body).await?;
    let id = submitted["id"].as_str().ok_or_else(|| Failure::answer("a submission is answered with an id"))?;
    ending::wait(client, id, Some(timeout), tell).await
}

/// Why the model did not answer, and what to do.
pub(crate) fn failed(name: &str, job: &Job) -> Failure {
    let added = |member: &str| job.metadata.get(member).and_then(Value::as_str).unwrap_or_default();
    let code = Some(added("_error_code")).filter(|code| !code.is_empty()).unwrap_or("E3201");
    let message = format!("the model \"{name}\" does not answer: {}", job.error);
    Failure::new(code, Exit::JobFailed, message).with_next(advice(name, added("_error_kind")))
}

/// What to do about a kind of failure.
fn advice(name: &str, kind: &str) -> String {
    match kind {
        "credentials" => {
            format!("the provider refuses the key: set the secret that `atlasctl model show {name}` names")
        }
        "unknown_model" => "compare the model's id with those that the provider lists".to_owned(),
        "rate_limited" => "the provider limits the calls: try again later, or give the model a fallback".to_owned(),
        "quota" => "the account has no money left: look at the provider's billing page".to_owned(),
        "connection" | "timeout" => {
            format!("the worker must reach the address: compare it with `atlasctl model show {name}`")
        }
        "provider" => "the provider has a fault: try again later, or give the model a fallback".to_owned(),
        "answer" => "the address does not speak this protocol: compare the provider and the base URL".to_owned(),
        _ => format!("compare its settings: atlasctl model show {name}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_contract_takes_the_model_from_its_input() {
        let contract = atlas_contract::parse(CONTRACT.as_bytes()).expect("a contract");
        assert_eq!((contract.name.as_str(), contract.model.name.as_deref()), (AGENT, Some("{input.model}")));
        assert!(contract.warnings.is_empty());
    }

    #[test]
    fn failures_say_what_to_do() {
        let job = Job {
            error: "invalid key".to_owned(),
            metadata: [("_error_code", "E3201"), ("_error_kind", "credentials")]
                .map(|(name, value)| (name.to_owned(), value.into()))
                .into_iter()
                .collect(),
            ..Job::default()
        };
        expect_test::expect![[r#"
            error[E3201]: the model "small" does not answer: invalid key
            the provider refuses the key: set the secret that `atlasctl model show small` names"#]]
        .assert_eq(&failed("small", &job).to_string());
    }
}
