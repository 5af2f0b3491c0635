//! `atlasctl job cancel`.

use serde_json::json;

use crate::command::chain_run;
use crate::context::Context;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::names;
use crate::output::Shown;

/// Options of `atlasctl job cancel`.
#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// Ids of jobs or of runs of chains, or unique prefixes of them, also as printed by -o name.
    #[arg(required = true, value_name = "ID", value_parser = names::ran)]
    ids: Vec<String>,
}

pub(crate) async fn run(context: &Context, options: &Options) -> Result<Exit, Failure> {
    names::each(context, &options.ids, async |id| cancel(context, id).await).await
}

/// Cancels a job, or a run of a chain.
pub(crate) async fn cancel(context: &Context, id: &str) -> Result<Exit, Failure> {
    if chain_run::is_one(id) {
        return chain_run::cancel(context, id).await;
    }
    let value = context.client()?.post(&["api", "jobs", id, "cancel"], &[], &json!({})).await?;
    if value["cancelled"] != json!(true) {
        let failure = Failure::new("E3005", Exit::Conflict, format!("{id} has already ended"));
        return Err(failure.with_next(format!("see its result: atlasctl job show {id}")));
    }
    context.note(&format!("{id} is being cancelled"));
    context.next(&format!("next: atlasctl job wait {id}"));
    context.show(&Shown { value, text: String::new(), names: vec![format!("job/{id}")] })?;
    Ok(Exit::Done)
}
