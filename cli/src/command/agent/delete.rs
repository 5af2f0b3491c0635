//! `atlasctl agent delete`: deletes retired versions.

use serde_json::json;

use super::named;
use crate::context::Context;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::Shown;
use crate::words;

/// Options of `atlasctl agent delete`.
#[derive(Debug, clap::Args)]
#[group(skip)]
pub(crate) struct Options {
    /// Agent and version: NAME@VERSION; with --all-retired only the name.
    #[arg(value_parser = clap::builder::NonEmptyStringValueParser::new())]
    name: String,
    /// Delete all retired versions of the agent.
    #[arg(long)]
    all_retired: bool,
}

pub(super) async fn run(context: &Context, options: &Options) -> Result<Exit, Failure> {
    let (name, version) = named(&options.name);
    let versions = match (version, options.all_retired) {
        (Some(version), false) => vec![version.to_owned()],
        (None, true) => retired(context, name).await?,
        (Some(_), true) => return Err(Failure::usage("--all-retired requires a name without a version".to_owned())),
        (None, false) => {
            let shell = words::shell(name);
            return Err(Failure::usage(format!("which version of \"{name}\"?")).with_next(format!(
                "write: atlasctl agent delete {shell}@VERSION   or: atlasctl agent delete {shell} --all-retired"
            )));
        }
    };
    let mut deleted = Vec::new();
    for version in versions {
        let path = ["api", "agents", name, "versions", &version, "delete"];
        context.client()?.post(&path, &[], &json!({})).await?;
        context.note(&format!("{name} {version} is deleted"));
        deleted.push(format!("agent/{name}@{version}"));
    }
    let value = json!({"deleted": deleted});
    context.show(&Shown { value, text: String::new(), names: deleted })?;
    Ok(Exit::Done)
}

async fn retired(context: &Context, name: &str) -> Result<Vec<String>, Failure> {
    let query = [("all", "true"), ("name", name), ("view", "full")];
    let value = context.client()?.get(&["api", "agents"], &query).await?;
    let agents = value.as_array().into_iter().flatten();
    let retired = agents.filter(|agent| agent["name"] == name && agent["retired"] == true);
    Ok(retired.filter_map(|agent| agent["version"].as_str().map(str::to_owned)).collect())
}
