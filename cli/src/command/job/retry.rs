//! `atlasctl job retry`.

use serde_json::json;

use crate::command::chain_run;
use crate::context::Context;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::names;
use crate::output::Shown;

/// Options of `atlasctl job retry`.
#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// Ids of jobs or of runs of chains, or unique prefixes of them, also as printed by -o name.
    #[arg(required = true, value_name = "ID", value_parser = names::ran)]
    ids: Vec<String>,
    /// Continue after the recorded steps of the ended job instead of repeating them.
    #[arg(long)]
    resume: bool,
}

pub(crate) async fn run(context: &Context, options: &Options) -> Result<Exit, Failure> {
    names::each(context, &options.ids, async |id| retry(context, id, options.resume).await).await
}

async fn retry(context: &Context, id: &str, resume: bool) -> Result<Exit, Failure> {
    if chain_run::is_one(id) {
        return chain_run::retry(context, id, resume, async |job| of_job(context, job, resume).await).await;
    }
    of_job(context, id, resume).await
}

async fn of_job(context: &Context, id: &str, resume: bool) -> Result<Exit, Failure> {
    let query: &[_] = if resume { &[("resume", "true")] } else { &[] };
    let value = context.client()?.post(&["api", "jobs", id, "retry"], query, &json!({})).await?;
    let id = value["id"].as_str().ok_or_else(|| Failure::answer("a retry is answered with an id"))?.to_owned();
    context.next(&format!("next: atlasctl job wait {id}"));
    context.show(&Shown { value, text: format!("{id}\n"), names: vec![format!("job/{id}")] })?;
    Ok(Exit::Done)
}
