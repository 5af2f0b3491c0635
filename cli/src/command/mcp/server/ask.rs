//! A call of an MCP server, made by a job: its secrets and its program are with the workers, not here.

use std::time::Duration;

// The agent that makes the call. It is registered with the first one.
use atlas_api::types::Job;
use atlas_mcp_spec::{CHECK_AGENT as AGENT, CHECK_CONTRACT as CONTRACT};
use atlas_package::PackFile;
use serde_json::{Value, json};

use crate::answers;
use crate::client::Client;
use crate::context::Context;
use crate::display::JobDisplay as _;
use crate::ending;
use crate::exit::Exit;
use crate::failure::Failure;

/// Registers an agent that is a contract alone.
pub(crate) async fn register(client: &Client, contract: &str) -> Result<String, Failure> {
    let file = PackFile { path: "agent.yaml".to_owned(), bytes: contract.as_bytes().to_vec(), executable: false };
    let package = atlas_package::pack_files(vec![file])
        .map_err(|error| Failure::new("E9001", Exit::Short, format!("the agent could not be packed: {error}")))?;
    client.register(package.bytes, true).await?;
    Ok(package.contract.version.to_string())
}

/// What a server is asked.
pub(crate) enum Question<'a> {
    /// Whether it answers.
    Probe,
    /// Its tools.
    Tools,
    /// A call of one of them.
    Call(&'a str, Value),
}

/// Asks a server, and returns the answer. A `context` shows people that something is waited for.
pub(crate) async fn ask(
    client: &Client,
    server: &str,
    question: Question<'_>,
    timeout: Duration,
    context: Option<&Context>,
) -> Result<Value, Failure> {
    let version = register(client, CONTRACT).await?;
    let mut input = json!({"server": server});
    match question {
        Question::Tools => {}
        Question::Probe => input["probe"] = true.into(),
        Question::Call(tool, arguments) => {
            input["tool"] = tool.into();
            input["arguments"] = arguments;
        }
    }
    let body = json!({"agent": AGENT, "version": version, "input": input});
    let submitted = client.post(&["api", "jobs"], &[("validate", "refuse")], &body).await?;
    let id = submitted["id"].as_str().ok_or_else(|| Failure::answer("a submission is answered with an id"))?;
    let value = ending::wait(client, id, Some(timeout), context).await?;
    let job: Job = answers::read(&value)?;
    match ending::exit(&job) {
        Exit::Done => Ok(value["output_data"].clone()),
        Exit::JobFailed => {
            let code = job.metadata.get("_error_code").and_then(Value::as_str).unwrap_or("E3208");
            Err(Failure::new(code, Exit::JobFailed, job.error.clone()).with_next(format!("atlasctl mcp show {server}")))
        }
        exit => {
            let text = format!("the MCP server \"{server}\" has not answered: the job {id} is {}", job.standing());
            Err(Failure::new("E4004", exit, text).with_next(format!("atlasctl job explain {id}")))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_contract_takes_the_server_from_its_input() {
        let contract = atlas_contract::parse(CONTRACT.as_bytes()).expect("a contract");
        assert_eq!(contract.name.as_str(), AGENT);
        assert_eq!(contract.run_spec().servers, ["{input.server}"]);
        assert!(contract.warnings.is_empty());
    }
}
