//! `atlasctl ask`: one message to an agent or a model, and its answer.

use std::io::IsTerminal as _;

use atlas_terminal::code_blocks;

use super::chat::{Attendant, Ended, Message, Target, Turn, View, Wanted, read_files};
use crate::context::Context;
use crate::display::JobDisplay as _;
use crate::ending;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::input;
use crate::names;
use crate::output::{Shown, members as known};

/// What a model is told for `--code`.
const CODE: &str = "Answer with one fenced block of code and nothing else: no explanation before or after it.";

/// Options of `atlasctl ask`.
#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// The message. What is piped to stdin follows it, or is the message if there is none.
    #[arg(value_name = "TEXT")]
    words: Vec<String>,
    /// Agent that answers, optionally with @VERSION; without it, a model.
    #[arg(short, long, value_name = "NAME", value_parser = names::agent, conflicts_with = "model")]
    agent: Option<String>,
    #[command(flatten)]
    wanted: Wanted,
    /// Send these files with the message: texts, images, folders, patterns, or - for stdin; repeatable.
    #[arg(short, long = "file", value_name = "FILE")]
    files: Vec<String>,
    /// Go on with this conversation, or begin it; without it, the message stands alone.
    #[arg(long, value_name = "ID", value_parser = names::conversation)]
    conversation: Option<String>,
    /// Ask for code; a pipe gets the first block of code alone.
    #[arg(short, long)]
    code: bool,
    /// Print the answer when it is complete, also on a terminal.
    #[arg(short = 'S', long)]
    no_stream: bool,
    /// Print the job that would be submitted, and submit none.
    #[arg(long)]
    dry_run: bool,
}

pub(crate) async fn run(context: &Context, options: &Options) -> Result<Exit, Failure> {
    context.form.fits(known::JOB)?;
    let client = context.client()?;
    let message = message(context, options)?;
    let target = Target::find(&client, options.agent.as_deref(), options.wanted.model.as_deref()).await?;
    let mut settings = options.wanted.settings(&target)?;
    if options.code && target.is_model() {
        let given = settings.get("instructions").and_then(|text| text.as_str()).map(|text| format!("{text}\n\n"));
        let text = format!("{}{CODE}", given.unwrap_or_default());
        settings.set("instructions", &text).map_err(|error| Failure::usage(error.to_string()))?;
    }
    let conversation = options.conversation.as_deref();
    if conversation.is_some() && !target.remembers() {
        return Err(Failure::usage(format!("{} takes each message alone: leave --conversation out", target.name())));
    }
    let turn = Turn { target: &target, message: &message, conversation, settings: &settings };
    if options.dry_run {
        context.print(&format!("{:#}\n", turn.body(false)?))?;
        return Ok(Exit::Done);
    }
    let is_terminal = std::io::stdout().is_terminal();
    let mut view = View::new(context, context.form.is_text() && !options.no_stream);
    let made = turn.make(&client, &mut view, &mut Attendant).await;
    view.clear_status();
    let Ended { job, value, reply, .. } = made?;
    if !context.form.is_text() {
        context.show(&Shown { value, text: String::new(), names: vec![format!("job/{}", job.id)] })?;
        return Ok(ending::exit(&job));
    }
    if job.is_terminal() {
        context.note(&ending::summary(&job));
    }
    let Some(reply) = reply else { return ending::conclude(context, &client, &job).await };
    match code_blocks(&reply).into_iter().next().filter(|_| options.code && !is_terminal) {
        Some(block) => context.print(&block.text)?,
        None if !view.is_live() => view.whole(&reply),
        None => {}
    }
    Ok(Exit::Done)
}

/// The message: words, files, and what is piped.
fn message(context: &Context, options: &Options) -> Result<Message, Failure> {
    let reads_stdin = options.files.iter().any(|file| file == "-");
    let files = read_files(context, &options.files, None)?;
    let mut text = options.words.join(" ");
    if !reads_stdin && !std::io::stdin().is_terminal() {
        let piped = input::read_stdin()?;
        let piped = piped.trim_end();
        if !piped.is_empty() && !text.is_empty() {
            text.push('\n');
        }
        text += piped;
    }
    if text.trim().is_empty() && files.is_empty() {
        return Err(Failure::usage("there is nothing to ask").with_next("write: atlasctl ask TEXT   or: atlasctl chat"));
    }
    Ok(Message::of(Some(text.as_str()).filter(|text| !text.trim().is_empty()), &files))
}
