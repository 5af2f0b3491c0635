//! `atlasctl job erase`.

use serde_json::json;

use crate::command::chain_run;
use crate::confirm;
use crate::context::Context;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::names;
use crate::output::Shown;
use crate::words;

/// Options of `atlasctl job erase`.
#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// Job ids, or unique prefixes of them, also as printed by -o name.
    #[arg(required_unless_present = "all", value_name = "ID", value_parser = names::ran)]
    ids: Vec<String>,
    /// Erase all jobs of the namespace, and its ended runs. They are no longer listed.
    #[arg(long, conflicts_with = "ids")]
    all: bool,
    /// Skip the confirmation.
    #[arg(short, long)]
    yes: bool,
}

pub(crate) async fn run(context: &Context, options: &Options) -> Result<Exit, Failure> {
    let what = if options.all {
        format!("all jobs of the namespace {}", context.namespace())
    } else {
        words::count(options.ids.len() as u64, "job")
    };
    if !options.yes && !confirm::agreed(&format!("erase {what}, for ever? [y/N] "))? {
        let failure = Failure::new("E0113", Exit::Usage, format!("nothing was changed: {what} to erase"));
        return Err(failure.with_next("confirm: --yes"));
    }
    if options.all {
        let value = context.client()?.post(&["api", "jobs:erase"], &[], &json!({})).await?;
        context.note(&format!("{what} are erased"));
        context.show(&Shown { value, text: String::new(), names: Vec::new() })?;
        return Ok(Exit::Done);
    }
    names::each(context, &options.ids, async |id| erase(context, id).await).await
}

async fn erase(context: &Context, id: &str) -> Result<Exit, Failure> {
    if chain_run::is_one(id) {
        let jobs = chain_run::jobs(&context.client()?, id).await?.join(" ");
        let failure = Failure::usage(format!("{id} is a run of a chain, which is erased with all of its namespace"));
        return Err(failure.with_next(match jobs.is_empty() {
            true => "all of it: atlasctl job erase --all".to_owned(),
            false => format!("all of it: atlasctl job erase --all   or its jobs alone: atlasctl job erase {jobs}"),
        }));
    }
    let value = context.client()?.post(&["api", "jobs", id, "erase"], &[], &json!({})).await?;
    context.note(&format!("{id} is erased"));
    context.show(&Shown { value, text: String::new(), names: vec![format!("job/{id}")] })?;
    Ok(Exit::Done)
}
