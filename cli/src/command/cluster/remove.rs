//! `atlasctl cluster remove`.

use std::io::{BufRead, IsTerminal};

use crate::api::{self, Cluster};
use crate::context::Context;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::names;
use crate::output::Shown;

/// Which controller.
#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// Its name or number.
    #[arg(value_name = "CONTROLLER", value_parser = names::controller)]
    name: String,
    /// Does not ask.
    #[arg(short, long)]
    yes: bool,
}

pub(crate) async fn run(context: &Context, options: &Options) -> Result<Exit, Failure> {
    remove(context, &options.name, options.yes).await
}

/// Removes a controller; asks first unless `yes`.
pub(crate) async fn remove(context: &Context, name: &str, yes: bool) -> Result<Exit, Failure> {
    let client = context.client()?;
    let cluster: Cluster = api::read(&client.get(&["api", "cluster"], &[]).await?)?;
    let left = cluster.members.iter().filter(|member| member.role != "learner" && member.name != name).count();
    context.note(&format!("{name} leaves for good; {left} of {} voters stay", cluster.quorum.voters));
    if !yes && !confirmed(name)? {
        return Err(Failure::new("E0113", Exit::Usage, "nothing was changed: this needs a confirmation")
            .with_next(format!("atlasctl cluster remove {name} --yes")));
    }
    let value = client.delete(&["api", "cluster", "members", name]).await?;
    context.show(&Shown { value, text: format!("{name} is removed\n"), names: vec![format!("controller/{name}")] })?;
    Ok(Exit::Done)
}

/// Asks on a terminal; nobody is asked off one.
fn confirmed(name: &str) -> Result<bool, Failure> {
    if !std::io::stdin().is_terminal() {
        return Ok(false);
    }
    #[expect(clippy::print_stderr, reason = "a question to the person at the terminal")]
    {
        eprint!("type {name} to go on: ");
    }
    let mut line = String::new();
    let read = std::io::stdin().lock().read_line(&mut line);
    read.map_err(|error| Failure::usage(format!("could not read the answer: {error}")))?;
    Ok(line.trim() == name)
}
