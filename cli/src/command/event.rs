//! `atlasctl event`: what happens in the cluster.

use serde_json::Value;

use crate::api::{self, JobEvent};
use crate::command::job::{Happening, event_line};
use crate::context::Context;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::filter::Filter;
use crate::output::Shown;

/// What to do with events.
#[derive(Debug, clap::Subcommand)]
pub(crate) enum Verb {
    /// Prints events as they come, until Ctrl-C.
    Tail(TailOptions),
}

/// Which events.
#[derive(Debug, clap::Args)]
pub(crate) struct TailOptions {
    /// Only those for which this holds, such as 'new_status == "failed" && agent_name == "hello"'.
    #[arg(long, value_name = "CEL")]
    filter: Option<Filter>,
    /// Only those of this type, in the word of the lines or in that of the API.
    #[arg(long = "type", value_name = "TYPE")]
    kind: Option<Happening>,
    /// Ends after so many.
    #[arg(long, value_name = "N")]
    limit: Option<u64>,
}

pub(crate) async fn run(context: &Context, verb: &Verb) -> Result<Exit, Failure> {
    let Verb::Tail(options) = verb;
    let mut left = options.limit;
    let client = context.client()?;
    let tail = client.events(&["api", "events"], &[("view", "full")], |frame| {
        let value: Value = serde_json::from_str(&frame.data).map_err(Failure::answer)?;
        let kind = value["change"].as_str().and_then(Happening::of);
        if options.kind.is_some() && options.kind != kind {
            return Ok(true);
        }
        if let Some(filter) = &options.filter
            && !filter.admits(&value)?
        {
            return Ok(true);
        }
        let event: JobEvent = api::read(&value)?;
        let id = event.job.id.clone();
        let text: String = event_line(&event).lines().map(|line| format!("{id}  {line}\n")).collect();
        if text.is_empty() && context.form.is_text() {
            return Ok(true);
        }
        context.show(&Shown { value, text, names: vec![format!("job/{id}")] })?;
        left = left.map(|left| left.saturating_sub(1));
        Ok(left != Some(0))
    });
    tokio::select! {
        ended = tail => ended?,
        _ = tokio::signal::ctrl_c() => {}
    }
    Ok(Exit::Done)
}
