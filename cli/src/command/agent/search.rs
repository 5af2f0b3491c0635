//! `atlasctl agent search`.

use crate::command::agent::list::shown;
use crate::context::Context;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::ListOptions;

/// Options of `atlasctl agent search`.
#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// Text to find in names, descriptions or capabilities.
    #[arg(value_name = "TEXT", required_unless_present = "capability")]
    text: Option<String>,
    /// Capability that agents must have.
    #[arg(short, long, value_name = "CAPABILITY")]
    capability: Option<String>,
    #[command(flatten)]
    list: ListOptions,
}

pub(super) async fn run(context: &Context, options: &Options) -> Result<Exit, Failure> {
    let mut query = vec![("all", "false"), ("view", "full")];
    query.extend(options.text.as_deref().map(|text| ("q", text)));
    query.extend(options.capability.as_deref().map(|capability| ("capability", capability)));
    let value = context.client()?.get(&["api", "agents"], &query).await?;
    if shown(context, value, &options.list)? == 0 {
        context.note("no agents found");
        context.next("next: atlasctl agent list -o wide");
    }
    Ok(Exit::Done)
}
