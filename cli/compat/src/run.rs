//! `atlas run`: one agent on one input, without a server.

use std::path::PathBuf;

use atlas_contract::python;
use serde_json::Value;

use super::answer::{Answer, Refusal};
use super::embedded::{self, Plan};
use super::{folder, render};

/// Options of `atlas run`.
#[derive(Debug, clap::Args)]
pub(super) struct Options {
    /// Name of the agent.
    agent: String,
    /// Input as JSON.
    #[arg(value_name = "JSON", required_unless_present = "input", conflicts_with = "input")]
    argument: Option<String>,
    /// Input as JSON.
    #[arg(short, long, value_name = "JSON", allow_hyphen_values = true)]
    input: Option<String>,
    /// Folder of agents.
    #[arg(long, alias = "agents", default_value = "./agents", value_name = "DIR")]
    agents_path: PathBuf,
    /// Print JSON.
    #[arg(long)]
    json: bool,
    /// Accepted for compatibility; ignored.
    #[arg(long, value_name = "FILE")]
    db: Option<PathBuf>,
}

pub(super) fn run(options: &Options) -> Answer {
    let input = options.input.as_deref().or(options.argument.as_deref()).unwrap_or_default();
    let input = input_of(input)?;
    let found = folder::agents(&options.agents_path);
    if folder::latest(&found, &options.agent).is_none() {
        return Err(Refusal::new(format!("Error: Agent not found: {}", options.agent)));
    }
    let plan = Plan {
        agents: &found,
        agent: &options.agent,
        input: &input,
        priority: 0,
        places: 4,
        warm_pool_size: 0,
        patience: None,
    };
    let job = embedded::run(&plan)?;
    if job["status"] != "completed" {
        return Err(Refusal::new(format!("Agent failed: {}", why(job["error"].as_str().unwrap_or_default()))));
    }
    let output = &job["output_data"];
    Ok(if options.json { render::json(output) } else { render::result(output) })
}

/// Reads the input of a command.
pub(super) fn input_of(text: &str) -> Result<Value, Refusal> {
    serde_json::from_str(text).map_err(|error| {
        let fault = python::json_fault(text).unwrap_or_else(|| error.to_string());
        Refusal::new(format!("Invalid JSON input: {fault}"))
    })
}

/// The error as `atlas run` of Atlas for Python prints it: a failed validation without its details.
fn why(error: &str) -> &str {
    match error.split_once(':') {
        Some(("Input validation", _)) => "Input validation failed",
        Some(("Output validation", _)) => "Output validation failed",
        // In Atlas for Python, `run` uses no pool, so the prefix is removed.
        Some(("Pool error", why)) => why.trim_start(),
        _ => error,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn validation_is_told_in_short() {
        assert_eq!(why("Input validation: 'message' is a required property"), "Input validation failed");
        assert_eq!(why("Execution timed out after 0.3s"), "Execution timed out after 0.3s");
        assert_eq!(why("Pool error: no model: x"), "no model: x");
    }

    #[test]
    fn an_input_that_is_no_json_is_refused() {
        let Refusal(text) = input_of("{bad").expect_err("no JSON");
        let fault = "Expecting property name enclosed in double quotes: line 1 column 2 (char 1)";
        assert_eq!(text, format!("Invalid JSON input: {fault}"));
    }
}
