//! `atlasctl job wait`.

use std::time::Duration;

use crate::api::{self, Job};
use crate::context::Context;
use crate::ending;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::names;
use crate::output::Shown;
use crate::questions;
use crate::words;

/// Options of `atlasctl job wait`.
#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// Job ids, or unique prefixes of them, also as printed by -o name.
    #[arg(required = true, value_name = "ID", value_parser = names::job)]
    ids: Vec<String>,
    /// Maximum time to wait; the job continues after that.
    #[arg(long, value_name = "DURATION", value_parser = words::parse_duration)]
    timeout: Option<Duration>,
}

pub(crate) async fn run(context: &Context, options: &Options) -> Result<Exit, Failure> {
    names::each(context, &options.ids, async |id| wait(context, id, options.timeout).await).await
}

async fn wait(context: &Context, id: &str, timeout: Option<Duration>) -> Result<Exit, Failure> {
    let value = questions::wait(context, &context.client()?, id, timeout, Some(context)).await?;
    let job: Job = api::read(&value)?;
    if job.is_terminal() {
        context.note(&ending::summary(&job));
    }
    if context.form.is_text() {
        return ending::conclude(context, &job);
    }
    context.show(&Shown { value, text: String::new(), names: vec![format!("job/{}", job.id)] })?;
    Ok(ending::exit(&job))
}
