//! `atlasctl operator`: backups, and the files of a controller that is stopped.

mod raft;
mod snapshot;

use crate::context::Context;
use crate::exit::Exit;
use crate::failure::Failure;

/// What to do for the cluster as a whole.
#[derive(Debug, clap::Subcommand)]
pub(crate) enum Verb {
    /// Backups: the state, the history and the artifacts of a cluster in one file.
    #[command(subcommand)]
    Snapshot(snapshot::Verb),
    /// The files of a controller that is stopped; nothing here needs a cluster.
    #[command(subcommand)]
    Raft(raft::Verb),
}

pub(crate) async fn run(context: &Context, verb: &Verb) -> Result<Exit, Failure> {
    match verb {
        Verb::Snapshot(verb) => snapshot::run(context, verb).await,
        Verb::Raft(verb) => raft::run(context, verb),
    }
}
