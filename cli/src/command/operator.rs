//! `atlasctl operator`: backups, and the files of a stopped controller.

mod raft;
mod snapshot;

use crate::context::Context;
use crate::exit::Exit;
use crate::failure::Failure;

/// Verbs of `atlasctl operator`.
#[derive(Debug, clap::Subcommand)]
pub(crate) enum Verb {
    /// Backups: the state, history and artifacts of a cluster in one file.
    #[command(subcommand)]
    Snapshot(snapshot::Verb),
    /// Files of a stopped controller; needs no running cluster.
    #[command(subcommand)]
    Raft(raft::Verb),
}

pub(crate) async fn run(context: &Context, verb: &Verb) -> Result<Exit, Failure> {
    match verb {
        Verb::Snapshot(verb) => snapshot::run(context, verb).await,
        Verb::Raft(verb) => raft::run(context, verb),
    }
}
