//! `atlasctl job result`.

use atlas_api::types::Job;

use crate::answers;
use crate::command::chain_run;
use crate::context::Context;
use crate::display::JobDisplay as _;
use crate::ending;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::names;
use crate::output::Shown;

/// Options of `atlasctl job result`.
#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// Ids of jobs or of runs of chains, or unique prefixes of them, also as printed by -o name.
    #[arg(required = true, value_name = "ID", value_parser = names::ran)]
    ids: Vec<String>,
}

pub(crate) async fn run(context: &Context, options: &Options) -> Result<Exit, Failure> {
    names::each(context, &options.ids, async |id| result(context, id).await).await
}

async fn result(context: &Context, id: &str) -> Result<Exit, Failure> {
    if chain_run::is_one(id) {
        return chain_run::result(context, id).await;
    }
    let value = context.client()?.get(&["api", "jobs", id], &[("view", "full")]).await?;
    let job: Job = answers::read(&value)?;
    if !job.is_terminal() && job.reason != "in_doubt" {
        let message = format!("{} has not ended ({})", job.id, ending::waits(&job));
        let next = format!("wait for it: atlasctl job wait {}", job.id);
        return Err(Failure::new("E3104", Exit::WaitTimedOut, message).with_next(next));
    }
    if context.form.is_text() {
        return ending::conclude(context, &context.client()?, &job).await;
    }
    let output = value.get("output_data").cloned().unwrap_or_default();
    context.show(&Shown { value: output, text: String::new(), names: vec![format!("job/{}", job.id)] })?;
    Ok(ending::exit(&job))
}
