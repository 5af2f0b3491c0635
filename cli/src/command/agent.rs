//! `atlasctl agent`: one file a verb.

mod list;
mod schema;
mod show;

use crate::context::Context;
use crate::exit::Exit;
use crate::failure::Failure;

/// What to do with agents.
#[derive(Debug, clap::Subcommand)]
pub(crate) enum Verb {
    /// Lists agents.
    List(list::Options),
    /// Shows one agent: what it does, its program and its contract.
    Show(show::Options),
    /// Prints the schemas of an agent's input and output.
    Schema(schema::Options),
}

pub(crate) async fn run(context: &Context, verb: &Verb) -> Result<Exit, Failure> {
    match verb {
        Verb::List(options) => list::run(context, options).await,
        Verb::Show(options) => show::run(context, options).await,
        Verb::Schema(options) => schema::run(context, options).await,
    }
}
