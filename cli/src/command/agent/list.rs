//! `atlasctl agent list`.

use crate::api::{self, Agent};
use crate::context::Context;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::{Shown, Table};

/// Which agents.
#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// Every version, also retired ones, not only the latest of each.
    #[arg(long)]
    all: bool,
}

pub(crate) async fn run(context: &Context, options: &Options) -> Result<Exit, Failure> {
    let all = if options.all { "true" } else { "false" };
    let value = context.client()?.get(&["api", "agents"], &[("all", all)]).await?;
    let agents: Vec<Agent> = api::read(&value)?;
    let mut table = Table::new(&["AGENT", "VERSION", "PROGRAM", "DESCRIPTION"]);
    for agent in &agents {
        let version = if agent.retired { format!("{} (retired)", agent.version) } else { agent.version.clone() };
        table.row([agent.name.clone(), version, agent.provider.clone(), agent.description.clone()]);
    }
    let text = if agents.is_empty() { String::new() } else { table.text() };
    if agents.is_empty() {
        context.note("no agents");
        context.next("next: atlasctl dev --agents DIR");
    }
    let names = agents.iter().map(|agent| format!("agent/{}", agent.name)).collect();
    context.show(&Shown { value, text, names })?;
    Ok(Exit::Done)
}
