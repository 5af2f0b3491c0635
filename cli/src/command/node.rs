//! `atlasctl node`: one file a verb.

mod change;
mod list;

pub(crate) use list::describe;

use crate::context::Context;
use crate::exit::Exit;
use crate::failure::Failure;

/// What to do with nodes.
#[derive(Debug, clap::Subcommand)]
pub(crate) enum Verb {
    /// Lists nodes.
    List,
    /// Lets a node finish what it runs and gives it nothing new.
    Drain(change::Options),
    /// Gives a node nothing new.
    Cordon(change::Options),
    /// Gives a node new jobs again.
    Uncordon(change::Options),
}

pub(crate) async fn run(context: &Context, verb: &Verb) -> Result<Exit, Failure> {
    match verb {
        Verb::List => list::run(context).await,
        Verb::Drain(options) => {
            change::run(context, options, "drain", "finishes what it runs and takes nothing new").await
        }
        Verb::Cordon(options) => change::run(context, options, "cordon", "takes no new jobs").await,
        Verb::Uncordon(options) => change::run(context, options, "uncordon", "takes new jobs again").await,
    }
}
