//! `atlasctl job`: one file a verb.

mod batch;
mod cancel;
mod events;
mod explain;
mod list;
mod logs;
mod pages;
mod resolve;
mod result;
mod retry;
mod show;
mod tree;
mod wait;
mod watch;

pub(crate) use cancel::cancel;
pub(crate) use events::{Happening, line as event_line};
pub(crate) use explain::{Options as ExplainOptions, run as explain};
pub(crate) use list::{Listing, Options as ListOptions, run as list, watch as watch_in_list};
pub(crate) use logs::{
    Which as WhichLines, follow as follow_logs, line as log_line, of_job as logs, so_far as logs_so_far,
};
pub(crate) use show::show;

use crate::context::Context;
use crate::exit::Exit;
use crate::failure::Failure;

/// What to do with jobs. Any unique beginning of an id will do.
#[derive(Debug, clap::Subcommand)]
pub(crate) enum Verb {
    /// Lists jobs, newest first.
    List(Listing),
    /// Shows one job: where, when, what came out, and why it waits.
    Show(show::Options),
    /// Follows a job until it has ended: what happens to it and what its agent says.
    Watch(watch::Options),
    /// Prints what the agent logged.
    Logs(logs::Options),
    /// Prints what happened to a job.
    Events(events::Options),
    /// Says why a job waits.
    Explain(explain::Options),
    /// Prints the output of a job that has ended.
    Result(result::Options),
    /// Waits until a job has ended and prints its output.
    Wait(wait::Options),
    /// Cancels a job; one that runs is stopped together with its processes.
    Cancel(cancel::Options),
    /// Runs an ended job again, as a new one, and prints its id.
    Retry(retry::Options),
    /// Decides on a job in doubt: it runs again, did its work, or failed.
    Resolve(resolve::Options),
    /// Cancels or retries all jobs that a filter admits.
    #[command(subcommand)]
    Batch(batch::Verb),
    /// Shows a job with the jobs that it spawned.
    Tree(tree::Options),
}

pub(crate) async fn run(context: &Context, verb: &Verb) -> Result<Exit, Failure> {
    match verb {
        Verb::List(options) => list::run(context, options).await,
        Verb::Show(options) => show::run(context, options).await,
        Verb::Watch(options) => watch::run(context, options).await,
        Verb::Logs(options) => logs::run(context, options).await,
        Verb::Events(options) => events::run(context, options).await,
        Verb::Explain(options) => explain::run(context, options).await,
        Verb::Result(options) => result::run(context, options).await,
        Verb::Wait(options) => wait::run(context, options).await,
        Verb::Cancel(options) => cancel::run(context, options).await,
        Verb::Retry(options) => retry::run(context, options).await,
        Verb::Resolve(options) => resolve::run(context, options).await,
        Verb::Batch(verb) => batch::run(context, verb).await,
        Verb::Tree(options) => tree::run(context, options).await,
    }
}
