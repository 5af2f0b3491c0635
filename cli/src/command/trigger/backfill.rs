//! `atlasctl trigger backfill`: first the times, then, with `--yes`, their jobs.

use atlas_api::types::{Backfill, BackfillTime};
use serde_json::json;

use super::{missing, path};
use crate::answers;
use crate::context::Context;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::names;
use crate::output::Shown;
use crate::words;

/// Options of `atlasctl trigger backfill`.
#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// The trigger's name.
    #[arg(value_name = "NAME", value_parser = names::trigger)]
    name: String,
    /// The first time: @1795348867 or 2026-11-22T12:01:07Z.
    #[arg(long, value_name = "TIME")]
    from: String,
    /// The last time; now without it.
    #[arg(long, value_name = "TIME")]
    to: Option<String>,
    /// Start the jobs; without it, only the times are shown.
    #[arg(long)]
    yes: bool,
}

pub(super) async fn run(context: &Context, options: &Options) -> Result<Exit, Failure> {
    let moment = |text: &str| words::parse_moment(text, context.look.now).map_err(Failure::usage);
    let to = options.to.as_deref().map_or(Ok(context.look.now), moment)?;
    let body = json!({ "from": moment(&options.from)?, "to": to, "dry_run": !options.yes });
    let name = &options.name;
    let value = context.client()?.post(&[&path(name)[..], &["backfill"]].concat(), &[], &body).await;
    let value = value.map_err(|failure| missing(failure, name))?;
    let Backfill { times, .. } = answers::read(&value)?;
    let line = |time: &BackfillTime| match &time.job_id {
        Some(job) => format!("{}   {job}\n", time.local),
        None => format!("{}\n", time.local),
    };
    let mut text: String = times.iter().map(line).collect();
    let count = times.len();
    text += &match options.yes {
        true => format!("{count} jobs\n"),
        false => format!("{count} jobs would be started; start them: add --yes\n"),
    };
    let jobs = times.iter().filter_map(|time| time.job_id.as_ref().map(|job| format!("job/{job}")));
    let names = jobs.collect();
    context.show(&Shown { value, text, names })?;
    Ok(Exit::Done)
}
