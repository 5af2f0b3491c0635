//! `atlasctl job`: one file a verb.

mod cancel;
mod events;
mod list;
mod logs;
mod resolve;
mod retry;
mod show;
mod wait;

use crate::context::Context;
use crate::exit::Exit;
use crate::failure::Failure;

/// What to do with jobs. Any unique beginning of an id will do.
#[derive(Debug, clap::Subcommand)]
pub(crate) enum Verb {
    /// Lists jobs, newest first.
    List(list::Options),
    /// Shows one job: where, when, what came out, and why it waits.
    Show(show::Options),
    /// Waits until a job has ended and prints its output.
    Wait(wait::Options),
    /// Cancels a job; one that runs is stopped together with its processes.
    Cancel(cancel::Options),
    /// Runs an ended job again, as a new one, and prints its id.
    Retry(retry::Options),
    /// Decides on a job in doubt: it runs again, did its work, or failed.
    Resolve(resolve::Options),
    /// Prints what happened to a job.
    Events(events::Options),
    /// Prints what the agent logged.
    Logs(logs::Options),
}

pub(crate) async fn run(context: &Context, verb: &Verb) -> Result<Exit, Failure> {
    match verb {
        Verb::List(options) => list::run(context, options).await,
        Verb::Show(options) => show::run(context, options).await,
        Verb::Wait(options) => wait::run(context, options).await,
        Verb::Cancel(options) => cancel::run(context, options).await,
        Verb::Retry(options) => retry::run(context, options).await,
        Verb::Resolve(options) => resolve::run(context, options).await,
        Verb::Events(options) => events::run(context, options).await,
        Verb::Logs(options) => logs::run(context, options).await,
    }
}
