//! `atlasctl operator`: files of a new cluster, backups, and the files of a stopped controller.

mod init;
mod raft;
mod secret;
mod snapshot;

use crate::context::Context;
use crate::exit::Exit;
use crate::failure::Failure;

/// Verbs of `atlasctl operator`.
#[derive(Debug, clap::Subcommand)]
pub(crate) enum Verb {
    /// Makes the files of a new cluster: its certificate and key for TLS, and the root token. Needs no running cluster.
    Init(init::Options),
    /// Makes the Secret of a new cluster in Kubernetes: its root token, keys, join token and certificate.
    Secret(secret::Options),
    /// Backups: the state, history and artifacts of a cluster in one file.
    #[command(subcommand)]
    Snapshot(snapshot::Verb),
    /// Files of a stopped controller; needs no running cluster.
    #[command(subcommand)]
    Raft(raft::Verb),
}

pub(crate) async fn run(context: &Context, verb: &Verb) -> Result<Exit, Failure> {
    match verb {
        Verb::Init(options) => init::run(context, options),
        Verb::Secret(options) => secret::run(context, options).await,
        Verb::Snapshot(verb) => snapshot::run(context, verb).await,
        Verb::Raft(verb) => raft::run(context, verb),
    }
}
