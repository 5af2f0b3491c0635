//! `atlasctl cluster`: the controllers of the cluster. One file per verb.

mod join_token;
mod members;
mod remove;
mod status;
mod transfer;

pub(crate) use members::{member, members};
pub(crate) use remove::remove;

use crate::context::Context;
use crate::exit::Exit;
use crate::failure::Failure;

/// Verbs of `atlasctl cluster`.
#[derive(Debug, clap::Subcommand)]
pub(crate) enum Verb {
    /// Shows the leader, the followers, their log positions and disk latencies.
    Status,
    /// Lists the controllers with their addresses.
    Members(members::Options),
    /// Creates a token with which one controller can join.
    JoinToken(join_token::Options),
    /// Hands leadership to another controller.
    TransferLeader(transfer::Options),
    /// Removes a controller permanently; it needs a new token to rejoin.
    Remove(remove::Options),
}

pub(crate) async fn run(context: &Context, verb: &Verb) -> Result<Exit, Failure> {
    match verb {
        Verb::Status => status::run(context).await,
        Verb::Members(options) => members::run(context, options).await,
        Verb::JoinToken(options) => join_token::run(context, options).await,
        Verb::TransferLeader(options) => transfer::run(context, options).await,
        Verb::Remove(options) => remove::run(context, options).await,
    }
}
