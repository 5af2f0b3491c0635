//! `atlasctl job`: one file per verb.

mod batch;
mod cancel;
mod cost;
mod erase;
mod events;
mod explain;
mod fork;
mod list;
pub(super) mod logs;
mod message;
mod pages;
mod pieces;
mod recorded;
mod replay;
mod resolve;
mod result;
mod retry;
mod said;
mod show;
pub(crate) mod steps;
mod transcript;
pub(crate) mod tree;
mod wait;
pub(crate) mod watch;

pub(crate) use cancel::cancel;
pub(crate) use events::{Happening, line as event_line};
pub(crate) use explain::{Options as ExplainOptions, run as explain};
pub(crate) use list::{Listing, Options as ListOptions, run as list, watch as watch_in_list};
pub(crate) use logs::{Which as WhichLines, follow as follow_logs, line as log_line, of_job as logs};
pub(crate) use pieces::{Piece, Printed, follow as follow_pieces};
pub(crate) use retry::Options as RetryOptions;
pub(crate) use said::StepReader;
pub(crate) use show::show;
pub(crate) use transcript::{TranscriptForm, message as transcript_message};

use crate::command::question::{self, JobAnswer};
use crate::command::trace;
use crate::context::Context;
use crate::exit::Exit;
use crate::failure::Failure;

/// Verbs of `atlasctl job`. A unique prefix of a job id is enough.
#[derive(Debug, clap::Subcommand)]
pub(crate) enum Verb {
    /// Lists jobs, newest first.
    List(Listing),
    /// Shows one job, or one run of a chain: its node, times and result, or why it is waiting.
    Show(show::Options),
    /// Follows the events and log lines of a job until it has ended; for scripts with -o jsonl, because json and yaml come at the end.
    Watch(watch::Options),
    /// Prints the log lines of a job, or of all steps of a chain.
    Logs(logs::Options),
    /// Prints the events of a job.
    Events(events::Options),
    /// Explains why a job is waiting.
    Explain(explain::Options),
    /// Prints the output of a job or of a run of a chain that has ended.
    Result(result::Options),
    /// Waits until a job and its retries, or a run of a chain, has ended and prints its output.
    Wait(wait::Options),
    /// Cancels a job, or a run of a chain; a running job is stopped with all its processes.
    Cancel(cancel::Options),
    /// Puts a message into the inbox of a job, and wakes a parked job that waits for one.
    Message(message::Options),
    /// Answers the question of a job or of a run of a chain, or of a job below it.
    Answer(JobAnswer),
    /// Runs an ended job, or a run of a chain, again as a new one and prints its id.
    Retry(retry::Options),
    /// Resolves a job in doubt: run it again, or mark it as completed or failed.
    Resolve(resolve::Options),
    /// Erases the inputs, outputs, logs, steps and error messages of ended jobs, at every controller.
    Erase(erase::Options),
    /// Cancels or retries all jobs that match a filter.
    #[command(subcommand)]
    Batch(batch::Verb),
    /// Shows a job, or a run of a chain, with its retries and the jobs that it spawned.
    Tree(tree::Options),
    /// Sums up what a job, or a run of a chain, cost, with its retries and the jobs below it.
    Cost(cost::Options),
    /// Draws what a job, or a run of a chain, did, and when; the same as atlasctl trace show.
    Trace(trace::Options),
    /// Lists the recorded steps of a job.
    Steps(steps::Options),
    /// Prints what was said in a job of an agent with a model: prompts, answers, tool calls and their results.
    Transcript(transcript::Options),
    /// Runs the agent loop over the recorded steps of a job again, without calling its models and tools.
    Replay(replay::Options),
    /// Begins a new job with the first recorded steps of a job, to go on with another model or version.
    Fork(fork::Options),
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
        Verb::Answer(options) => question::of_job(context, options).await,
        Verb::Message(options) => message::run(context, options).await,
        Verb::Retry(options) => retry::run(context, options).await,
        Verb::Resolve(options) => resolve::run(context, options).await,
        Verb::Erase(options) => erase::run(context, options).await,
        Verb::Batch(verb) => batch::run(context, verb).await,
        Verb::Tree(options) => tree::run(context, options).await,
        Verb::Cost(options) => cost::run(context, options).await,
        Verb::Trace(options) => trace::show_all(context, options).await,
        Verb::Steps(options) => steps::run(context, options).await,
        Verb::Transcript(options) => transcript::run(context, options).await,
        Verb::Replay(options) => replay::run(context, options).await,
        Verb::Fork(options) => fork::run(context, options).await,
    }
}
