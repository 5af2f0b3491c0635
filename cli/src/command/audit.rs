//! `atlasctl audit`: who did what, and who was denied it. Each controller has the records of its own doors; any controller answers
//! with those of all.

mod read;
mod receipt;
mod verify;

use crate::context::Context;
use crate::exit::Exit;
use crate::failure::Failure;

/// Verbs of `atlasctl audit`.
#[derive(Debug, clap::Subcommand)]
pub(crate) enum Verb {
    /// Prints new records of all controllers until Ctrl-C.
    Tail(read::Filter),
    /// Prints the records of all controllers that match a filter, by time.
    Query(read::Query),
    /// Checks that no record was changed, removed or inserted; of a file, such as a receipt, without a cluster.
    Verify(verify::Verify),
    /// Prints the receipt of a job that has ended: what it was, who asked, where it ran, what it called and how it ended.
    Receipt(receipt::Options),
    /// Writes the records of all controllers to a file, as they are, to be verified elsewhere.
    Export(verify::Export),
}

pub(crate) async fn run(context: &Context, verb: &Verb) -> Result<Exit, Failure> {
    match verb {
        Verb::Tail(filter) => read::tail(context, filter).await,
        Verb::Query(options) => read::query(context, options).await,
        Verb::Verify(options) => verify::verify(context, options).await,
        Verb::Receipt(options) => receipt::show(context, options).await,
        Verb::Export(options) => verify::export(context, options).await,
    }
}
