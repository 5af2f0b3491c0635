//! `atlasctl memory`: the text that agents share.

mod compact;

use atlas_api::types::{Deletion, Memory, MemoryEntry};
use serde_json::{Value, json};

use crate::answers;
use crate::confirm;
use crate::context::Context;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::input;
use crate::names;
use crate::output::{Column, List, ListOptions, Shown, column, members};
use crate::words;

/// The path of memory.
const PATH: [&str; 2] = ["api", "memory"];

/// Verbs of `atlasctl memory`.
#[derive(Debug, clap::Subcommand)]
pub(crate) enum Verb {
    /// Prints the text.
    Show(Scope),
    /// Appends a line.
    Append(Text),
    /// Replaces the text.
    Set(Text),
    /// Lists what was written and by whom, the oldest first.
    History(Options),
    /// Lets a model write a summary in place of the oldest entries.
    Compact(compact::Options),
    /// Removes the text with its history.
    Clear(Clear),
}

/// Whose memory it is.
#[derive(Debug, clap::Args)]
pub(crate) struct Scope {
    /// Who shares it: namespace, agent:NAME, user:NAME or conversation:ID. While authentication is off, every user is user:local.
    #[arg(long, value_name = "SCOPE", default_value = "namespace", value_parser = names::scope)]
    scope: String,
}

/// What is written.
#[derive(Debug, clap::Args)]
pub(crate) struct Text {
    /// The text; - reads it from stdin, @FILE from a file.
    #[arg(value_name = "TEXT", allow_hyphen_values = true)]
    text: String,
    /// More words of the text.
    #[arg(value_name = "TEXT")]
    more: Vec<String>,
    #[command(flatten)]
    scope: Scope,
}

/// Options of `atlasctl memory history`.
#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    #[command(flatten)]
    scope: Scope,
    #[command(flatten)]
    list: ListOptions,
}

/// Options of `atlasctl memory clear`.
#[derive(Debug, clap::Args)]
pub(crate) struct Clear {
    #[command(flatten)]
    scope: Scope,
    /// Skip the confirmation.
    #[arg(long)]
    yes: bool,
}

const COLUMNS: [Column<MemoryEntry>; 5] = [
    column("WRITTEN", "written_at", |entry, context| context.when(entry.written_at as f64)),
    column("BY", "author", |entry, _| entry.agent.clone().unwrap_or_else(|| entry.author.clone())),
    column("JOB", "job", |entry, _| entry.job.clone().unwrap_or_default()),
    column("KIND", "replaces", |entry, _| kind(entry).to_owned()),
    column("TEXT", "text", |entry, _| entry.text.lines().next().unwrap_or_default().to_owned()),
];

fn kind(entry: &MemoryEntry) -> &'static str {
    match (entry.replaced, entry.summary, entry.replaces) {
        (true, _, _) => "replaced",
        (false, true, _) => "summary",
        (false, false, true) => "set",
        (false, false, false) => "appended",
    }
}

pub(crate) async fn run(context: &Context, verb: &Verb) -> Result<Exit, Failure> {
    match verb {
        Verb::Show(scope) => show(context, &scope.scope).await,
        Verb::Append(options) => write(context, options, "append").await,
        Verb::Set(options) => write(context, options, "write").await,
        Verb::History(options) => history(context, options).await,
        Verb::Compact(options) => compact::run(context, options).await,
        Verb::Clear(options) => clear(context, options).await,
    }
}

async fn show(context: &Context, scope: &str) -> Result<Exit, Failure> {
    let value = context.client()?.get(&PATH, &[("scope", scope)]).await?;
    let memory: Memory = answers::read(&value)?;
    if memory.entries == 0 {
        let others = "; others: --scope user:NAME, agent:NAME or conversation:ID";
        let others = if memory.scope == "namespace" { others } else { "" };
        context.note(&format!("nothing is in the memory of {}{others}", memory.scope));
    }
    let names = vec![format!("memory/{}", memory.scope)];
    // A text that was set may end within a line.
    let end = if memory.text.is_empty() || memory.text.ends_with('\n') { "" } else { "\n" };
    context.show(&Shown { text: memory.text + end, value, names })?;
    Ok(Exit::Done)
}

async fn write(context: &Context, options: &Text, action: &str) -> Result<Exit, Failure> {
    let scope = &options.scope.scope;
    let content = input::words(&options.text, &options.more)?;
    if action == "append" && content.is_empty() {
        return Err(Failure::usage("nothing to append: the text is empty"));
    }
    let body = json!({"content": content, "action": action, "scope": scope});
    let value = context.client()?.post(&PATH, &[], &body).await?;
    let memory: Memory = answers::read(&value)?;
    let name = format!("memory/{}", memory.scope);
    let done = if action == "write" { "set" } else { "appended" };
    let text = format!("{name}  {done}  {}, {}\n", words::entries(memory.entries), words::bytes(memory.bytes));
    context.show(&Shown { value, text, names: vec![name] })?;
    Ok(Exit::Done)
}

async fn history(context: &Context, options: &Options) -> Result<Exit, Failure> {
    let entries = context.client()?.get(&[PATH[0], PATH[1], "entries"], &[("scope", &options.scope.scope)]).await?;
    let name = |entry: &MemoryEntry| format!("memory/{}", entry.id);
    let list = List { columns: &COLUMNS, members: members::MEMORY, name };
    if context.list(entries, &options.list, &list)? == 0 {
        context.note("nothing was written: agents with `requires.memory: true` write, and atlasctl memory append TEXT");
    }
    Ok(Exit::Done)
}

async fn clear(context: &Context, options: &Clear) -> Result<Exit, Failure> {
    let scope = &options.scope.scope;
    if !options.yes && !confirm::agreed(&format!("remove the memory {scope} with its history? [y/N] "))? {
        return Err(Failure::usage("nothing was removed").with_next("confirm: --yes"));
    }
    let value: Value = context.client()?.delete_with(&PATH, &[("scope", scope)]).await?;
    let deleted: Deletion = answers::read(&value)?;
    let name = format!("memory/{scope}");
    let text = if deleted.deleted { format!("{name}  removed\n") } else { format!("{name}  was empty\n") };
    context.show(&Shown { value, text, names: vec![name] })?;
    Ok(Exit::Done)
}
