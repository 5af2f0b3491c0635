//! `atlasctl node`: one file per verb.

mod change;
mod gpus;
pub(in crate::command) mod label;
mod list;
mod show;
mod token;

pub(crate) use change::remove;
pub(crate) use list::{Options as ListOptions, describe, gpus as gpu_words, list, state, watch};
pub(crate) use show::show;

use crate::context::Context;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::names;

/// Verbs of `atlasctl node`.
#[derive(Debug, clap::Subcommand)]
pub(crate) enum Verb {
    /// Lists nodes.
    List(list::Options),
    /// Shows one node: its hardware, free resources and labels.
    Show(change::Options),
    /// Lists the GPUs of all nodes.
    Gpus(gpus::Options),
    /// Drains a node: its running jobs finish, and it gets no new ones.
    Drain(change::DrainOptions),
    /// Stops new jobs on a node.
    Cordon(change::Options),
    /// Allows new jobs on a node again.
    Uncordon(change::Options),
    /// Lets jobs start on a node again although the last ones failed there.
    Resume(change::Options),
    /// Adds and removes labels of a node, which jobs can require.
    Label(label::Options),
    /// Removes a node that runs no jobs.
    Remove(change::Options),
    /// Makes a token with which a worker joins a cluster with TLS as this node, once.
    Token(token::Options),
    /// Refuses the certificates of nodes from now on; their running jobs start again elsewhere.
    Revoke(change::Options),
}

pub(crate) async fn run(context: &Context, verb: &Verb) -> Result<Exit, Failure> {
    match verb {
        Verb::List(options) => list(context, options).await,
        Verb::Show(options) => names::each(context, &options.names, async |name| show(context, name).await).await,
        Verb::Gpus(options) => gpus::run(context, options).await,
        Verb::Drain(options) => change::drain(context, options).await,
        Verb::Cordon(options) => {
            names::each(context, &options.names, async |name| change::cordon(context, name).await).await
        }
        Verb::Uncordon(options) => {
            names::each(context, &options.names, async |name| change::uncordon(context, name).await).await
        }
        Verb::Resume(options) => {
            names::each(context, &options.names, async |name| change::resume(context, name).await).await
        }
        Verb::Label(options) => label::run(context, options).await,
        Verb::Token(options) => token::create(context, options).await,
        Verb::Revoke(options) => {
            names::each(context, &options.names, async |name| token::revoke(context, name).await).await
        }
        Verb::Remove(options) => names::each(context, &options.names, async |name| remove(context, name).await).await,
    }
}
