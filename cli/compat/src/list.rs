//! `atlas list` and its alias `atlas discover`.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::answer::Answer;
use super::{folder, render};

/// Options of `atlas list`.
#[derive(Debug, clap::Args)]
pub(super) struct Options {
    /// Folder of agents.
    #[arg(long, alias = "agents", default_value = "./agents", value_name = "DIR")]
    agents_path: PathBuf,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

/// Options of `atlas discover`: those of `list`, with the folder as an argument.
#[derive(Debug, clap::Args)]
pub(super) struct Discover {
    /// Folder of agents.
    #[arg(value_name = "DIR", conflicts_with = "agents_path")]
    directory: Option<PathBuf>,
    #[command(flatten)]
    list: Options,
}

pub(super) fn run(options: &Options) -> Answer {
    Ok(list(&options.agents_path, options.json))
}

pub(super) fn discover(options: &Discover) -> Answer {
    Ok(list(options.directory.as_deref().unwrap_or(&options.list.agents_path), options.list.json))
}

fn list(path: &Path, as_json: bool) -> String {
    let found = folder::agents(path);
    if as_json {
        let agents = found.iter().map(|agent| {
            let contract = &agent.contract;
            json!({
                "name": contract.name.as_str(),
                "version": contract.version.to_string(),
                "description": contract.description,
                "capabilities": contract.capabilities,
            })
        });
        return render::json(&Value::Array(agents.collect()));
    }
    if found.is_empty() {
        return "No agents found.\n".to_owned();
    }
    let lines = found.iter().map(|agent| folder::line(&agent.contract) + "\n");
    format!("Found {} agent(s):\n\n{}", found.len(), lines.collect::<String>())
}
