//! `atlas run-chain`: the agents of a chain one after the other, without a server.

use std::io::Write;
use std::path::PathBuf;

use atlas_cli::{Client, Failure};
use atlas_contract::yaml;
use atlas_turn::python::dumps;
use serde_json::{Value, json};

use super::answer::{Answer, Refusal};
use super::embedded::{self, Places};
use super::run::input_of;
use super::{folder, render};

/// Options of `atlas run-chain`.
#[derive(Debug, clap::Args)]
pub(super) struct Options {
    /// Definition of the chain, a YAML file.
    file: PathBuf,
    /// Input as JSON.
    #[arg(short, long, value_name = "JSON", allow_hyphen_values = true)]
    input: String,
    /// Folder of agents.
    #[arg(long, alias = "agents", default_value = "./agents", value_name = "DIR")]
    agents_path: PathBuf,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

pub(super) fn run(options: &Options) -> Answer {
    let Ok(text) = std::fs::read(&options.file) else {
        return Err(Refusal::new(format!("Chain file not found: {}", options.file.display())));
    };
    let input = input_of(&options.input)?;
    let chain =
        yaml::load_strictly(&text, yaml::Budget::default()).map_err(|error| Refusal::new(format!("Error: {error}")))?;
    let result = match is_empty(&chain) {
        // It succeeds without any agent.
        true => json!({"success": true, "output": {}}),
        false => {
            let found = folder::agents(&options.agents_path);
            let places = Places { places: 4, warm_pool_size: 0 };
            embedded::within(&found, places, async |client| execute(client, &chain, &input).await)?
        }
    };
    if result["success"] == true {
        let output = &result["output"];
        return Ok(if options.json { render::json(output) } else { render::result(output) });
    }
    let partial = &result["output"]["partial_outputs"];
    if partial.as_array().is_some_and(|outputs| !outputs.is_empty()) {
        // The exit code must be right even if the terminal was closed.
        let _ = writeln!(std::io::stdout(), "Partial outputs: {}", dumps(partial));
    }
    let error = result["error"].as_str().unwrap_or_default();
    Err(Refusal::new(format!("Chain failed at step {}: {error}", result["failed_at"])))
}

fn is_empty(chain: &Value) -> bool {
    let chain = chain.get("chain").unwrap_or(chain);
    chain.get("name").is_some_and(Value::is_string)
        && chain.get("steps").and_then(Value::as_array).is_none_or(Vec::is_empty)
}

/// Runs a chain and returns its result.
async fn execute(client: &Client, chain: &Value, input: &Value) -> Result<Value, Failure> {
    let started = client.post(&["api", "chains"], &[], &json!({"chain": chain, "input": input})).await?;
    let id = started["id"].as_str().ok_or_else(|| Failure::answer("a run is answered with an id"))?;
    loop {
        let run = client.get(&["api", "chains", id], &[("wait", "30")]).await?;
        if run["result"].is_object() {
            return Ok(run["result"].clone());
        }
    }
}
