//! `atlasctl node`: one file a verb.

mod change;
mod gpus;
mod label;
mod list;
mod show;

pub(crate) use change::remove;
pub(crate) use list::{Options as ListOptions, describe, gpus as gpu_words, list, state, watch};
pub(crate) use show::show;

use crate::context::Context;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::names;

/// What to do with nodes.
#[derive(Debug, clap::Subcommand)]
pub(crate) enum Verb {
    /// Lists nodes.
    List(list::Options),
    /// Shows one node: its hardware, what of it is free, and its labels.
    Show(change::Options),
    /// Lists the GPUs of all nodes.
    Gpus(gpus::Options),
    /// Lets a node finish what it runs and gives it nothing new.
    Drain(change::DrainOptions),
    /// Gives a node nothing new.
    Cordon(change::Options),
    /// Gives a node new jobs again.
    Uncordon(change::Options),
    /// Gives a node labels and takes labels away: jobs may ask for them.
    Label(label::Options),
    /// Forgets a node that runs nothing.
    Remove(change::Options),
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
        Verb::Label(options) => label::run(context, options).await,
        Verb::Remove(options) => names::each(context, &options.names, async |name| remove(context, name).await).await,
    }
}
