//! `atlasctl cluster`: the controllers that are the cluster. One file a verb.

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

/// What to do with the controllers of a cluster.
#[derive(Debug, clap::Subcommand)]
pub(crate) enum Verb {
    /// Shows who leads, who follows, how far each is and how fast its disk is.
    Status,
    /// Lists the controllers with their addresses.
    Members(members::Options),
    /// Makes a token with which one controller joins.
    JoinToken(join_token::Options),
    /// Hands leadership to another controller.
    TransferLeader(transfer::Options),
    /// Removes a controller for good; it needs a new token to come back.
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
