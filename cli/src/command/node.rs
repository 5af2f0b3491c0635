//! `atlasctl node`: one file a verb.

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
}

pub(crate) async fn run(context: &Context, verb: &Verb) -> Result<Exit, Failure> {
    match verb {
        Verb::List => list::run(context).await,
    }
}
