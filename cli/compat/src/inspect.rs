//! `atlas inspect`: an agent's contract.

use std::path::PathBuf;

use serde_json::json;

use super::answer::{Answer, Refusal};
use super::{folder, render};

/// The default execution timeout, which is not shown.
const TIMEOUT_DEFAULT: f64 = 60.0;

/// Options of `atlas inspect`.
#[derive(Debug, clap::Args)]
pub(super) struct Options {
    /// Name of the agent.
    agent: String,
    /// Folder of agents.
    #[arg(long, alias = "agents", default_value = "./agents", value_name = "DIR")]
    agents_path: PathBuf,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

pub(super) fn run(options: &Options) -> Answer {
    let found = folder::agents(&options.agents_path);
    let agent = folder::latest(&found, &options.agent);
    let contract = &agent.ok_or_else(|| Refusal::new(format!("Agent not found: {}", options.agent)))?.contract;
    if options.json {
        return Ok(render::json(&json!({
            "name": contract.name.as_str(),
            "version": contract.version.to_string(),
            "description": contract.description,
            "input_schema": contract.input_schema,
            "output_schema": contract.output_schema,
            "capabilities": contract.capabilities,
            "execution_timeout": contract.execution_timeout,
        })));
    }
    let mut text = format!(
        "Agent: {}\nVersion: {}\nDescription: {}\n\nInput Schema:\n{}\nOutput Schema:\n{}",
        contract.name,
        contract.version,
        contract.description,
        render::json(&contract.input_schema),
        render::json(&contract.output_schema),
    );
    if !contract.capabilities.is_empty() {
        text += &format!("Capabilities: {}\n", contract.capabilities.join(", "));
    }
    // An exact comparison is right, because no arithmetic is done on the value.
    if contract.execution_timeout.total_cmp(&TIMEOUT_DEFAULT).is_ne() {
        text += &format!("Execution Timeout: {}s\n", render::float(contract.execution_timeout));
    }
    Ok(text)
}
