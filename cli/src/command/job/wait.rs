//! `atlasctl job wait`.

use std::time::Duration;

use atlas_api::types::Job;
use atlas_env::Env;

use crate::answers;
use crate::command::chain_run;
use crate::command::run::{Attending, family};
use crate::context::Context;
use crate::display::JobDisplay as _;
use crate::ending;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::names;
use crate::output::Shown;
use crate::words;

/// Options of `atlasctl job wait`.
#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// Ids of jobs or of runs of chains, or unique prefixes of them, also as printed by -o name.
    #[arg(required = true, value_name = "ID", value_parser = names::ran)]
    ids: Vec<String>,
    /// Maximum time to wait; the job continues after that.
    #[arg(long, value_name = "DURATION", value_parser = words::parse_duration)]
    timeout: Option<Duration>,
    /// Wait for this job only, even if it failed and is retried.
    #[arg(long)]
    no_retry_wait: bool,
}

pub(crate) async fn run(context: &Context, options: &Options) -> Result<Exit, Failure> {
    names::each(context, &options.ids, async |id| wait(context, id, options).await).await
}

async fn wait(context: &Context, id: &str, options: &Options) -> Result<Exit, Failure> {
    if chain_run::is_one(id) {
        return chain_run::wait(context, id, options.timeout).await;
    }
    let mut latest = id.to_owned();
    let attending = Attending { timeout: options.timeout, follow: false, no_retry_wait: options.no_retry_wait };
    let since = Env::system().clock.monotonic();
    let value = family(context, &context.client()?, &mut latest, attending, since).await?.unwrap_or_default();
    let job: Job = answers::read(&value)?;
    if latest != id && job.is_terminal() {
        context.note(&format!("{} {} as a retry of {id}", job.id, job.status));
    }
    if context.form.is_text() {
        return ending::conclude(context, &context.client()?, &job).await;
    }
    context.show(&Shown { value, text: String::new(), names: vec![format!("job/{}", job.id)] })?;
    Ok(ending::exit(&job))
}
