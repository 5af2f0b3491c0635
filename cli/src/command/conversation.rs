//! `atlasctl conversation`: what was said to agents, and what they answered.

use atlas_api::types::{Conversation, ConversationMessage};
use serde_json::{Value, json};

use crate::answers;
use crate::command::job::{TranscriptForm, transcript_message};
use crate::context::Context;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::names;
use crate::output::{Column, List, ListOptions, Shown, column, members, wide};
use crate::words;

/// The path of conversations.
const PATH: [&str; 2] = ["api", "conversations"];

/// Verbs of `atlasctl conversation`.
#[derive(Debug, clap::Subcommand)]
pub(crate) enum Verb {
    /// Lists conversations.
    List(Options),
    /// Shows a conversation with its messages.
    Show(Name),
    /// Prints a conversation with its messages as JSON, or in another form.
    Export(ExportOptions),
    /// Begins a conversation with the first turns of another one, or with all of them.
    Branch(BranchOptions),
    /// Gives a conversation another name.
    Rename(Renaming),
    /// Deletes conversations.
    Delete(Names),
}

/// Options of `atlasctl conversation list`.
#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    #[command(flatten)]
    list: ListOptions,
}

/// The id of a conversation.
#[derive(Debug, clap::Args)]
pub(crate) struct Name {
    /// The conversation's id.
    #[arg(value_name = "ID", value_parser = names::conversation)]
    id: String,
}

/// Options of `atlasctl conversation export`.
#[derive(Debug, clap::Args)]
pub(crate) struct ExportOptions {
    #[command(flatten)]
    name: Name,
    /// Form: Markdown, or messages as OpenAI's interface has them; without it, JSON as the interface of Atlas has it.
    #[arg(long = "as", value_name = "md|openai")]
    form: Option<TranscriptForm>,
}

/// Options of `atlasctl conversation branch`.
#[derive(Debug, clap::Args)]
pub(crate) struct BranchOptions {
    #[command(flatten)]
    name: Name,
    /// The id of the new conversation.
    #[arg(value_name = "NEW", value_parser = names::conversation)]
    new: String,
    /// How many turns it begins with; all without it.
    #[arg(long, value_name = "COUNT")]
    turns: Option<u64>,
}

/// Options of `atlasctl conversation rename`.
#[derive(Debug, clap::Args)]
pub(crate) struct Renaming {
    #[command(flatten)]
    name: Name,
    /// The new id.
    #[arg(value_name = "NEW", value_parser = names::conversation)]
    new: String,
}

/// Ids of conversations.
#[derive(Debug, clap::Args)]
pub(crate) struct Names {
    /// The conversation's id.
    #[arg(value_name = "ID", required = true, value_parser = names::conversation)]
    ids: Vec<String>,
}

const COLUMNS: [Column<Conversation>; 8] = [
    column("ID", "id", |conversation, _| conversation.id.clone()),
    column("AGENT", "agent", |conversation, _| conversation.agent.clone()),
    column("SCOPE", "scope", |conversation, _| conversation.scope.clone()),
    column("TURNS", "turns", |conversation, _| conversation.turns.to_string()),
    column("SIZE", "bytes", |conversation, _| words::bytes(conversation.bytes)),
    column("UPDATED", "updated_at", |conversation, context| context.when(conversation.updated_at as f64)),
    wide("RUNNING", "running_job", |conversation, _| conversation.running_job.clone().unwrap_or_default()),
    wide("OWNER", "owner", |conversation, _| conversation.owner.clone()),
];

pub(crate) async fn run(context: &Context, verb: &Verb) -> Result<Exit, Failure> {
    match verb {
        Verb::List(options) => list(context, options).await,
        Verb::Show(name) => show(context, &name.id).await,
        Verb::Export(options) => export(context, options).await,
        Verb::Branch(BranchOptions { name, new, turns }) => {
            let value = branch(context, &name.id, new, *turns).await?;
            shown(context, value, new, &format!("begun from {}", name.id))
        }
        Verb::Rename(Renaming { name, new }) => {
            let value = branch(context, &name.id, new, None).await?;
            context.client()?.delete(&[PATH[0], PATH[1], &name.id]).await?;
            shown(context, value, new, &format!("was {}", name.id))
        }
        Verb::Delete(names) => names::each(context, &names.ids, async |id| delete(context, id).await).await,
    }
}

async fn list(context: &Context, options: &Options) -> Result<Exit, Failure> {
    let conversations = context.client()?.get(&PATH, &[]).await?;
    let name = |conversation: &Conversation| format!("conversation/{}", conversation.id);
    let list = List { columns: &COLUMNS, members: members::CONVERSATION, name };
    if context.list(conversations, &options.list, &list)? == 0 {
        context.note("no conversations: clients begin them at /agents/NAME/mcp");
    }
    Ok(Exit::Done)
}

async fn read(context: &Context, id: &str) -> Result<Value, Failure> {
    context.client()?.get(&[PATH[0], PATH[1], id], &[]).await
}

async fn show(context: &Context, id: &str) -> Result<Exit, Failure> {
    let value = read(context, id).await?;
    let conversation: Conversation = answers::read(&value)?;
    let names = vec![format!("conversation/{}", conversation.id)];
    context.show(&Shown { text: text(&conversation), value, names })?;
    Ok(Exit::Done)
}

fn text(conversation: &Conversation) -> String {
    let Conversation { id, agent, scope, turns, running_job, messages, .. } = conversation;
    let mut text = format!("{id}  with {agent}  {scope}  {}\n", words::count(*turns, "turn"));
    for ConversationMessage { role, content, images, .. } in messages.iter().flatten() {
        let images = match images.as_ref().map_or(0, Vec::len) {
            0 => String::new(),
            count => format!(" ({})", words::count(count as u64, "image")),
        };
        text += &format!("\n{role}{images}\n");
        content.lines().for_each(|line| text += &format!("  {line}\n"));
    }
    if let Some(job) = running_job {
        text += &format!("\n{job} is answering\n");
    }
    text
}

async fn export(context: &Context, options: &ExportOptions) -> Result<Exit, Failure> {
    let value = read(context, &options.name.id).await?;
    let text = options.form.map_or_else(|| format!("{value:#}\n"), |form| document(&value, form));
    context.print(&text)?;
    Ok(Exit::Done)
}

/// A conversation with its messages as a document.
pub(crate) fn document(conversation: &Value, form: TranscriptForm) -> String {
    let messages = conversation["messages"].as_array().into_iter().flatten();
    let text = |name: &str| conversation[name].as_str().unwrap_or_default();
    form.text(&format!("{} with {}", text("id"), text("agent")), &messages.map(transcript_message).collect::<Vec<_>>())
}

/// Begins a conversation with turns of another one.
async fn branch(context: &Context, id: &str, new: &str, turns: Option<u64>) -> Result<Value, Failure> {
    let mut body = json!({ "id": new });
    if let Some(turns) = turns {
        body["turns"] = turns.into();
    }
    context.client()?.post(&[PATH[0], PATH[1], id, "branch"], &[], &body).await
}

fn shown(context: &Context, value: Value, id: &str, what: &str) -> Result<Exit, Failure> {
    let name = format!("conversation/{id}");
    let turns = words::count(value["turns"].as_u64().unwrap_or(0), "turn");
    context.show(&Shown { value, text: format!("{name}  {what}  {turns}\n"), names: vec![name] })?;
    Ok(Exit::Done)
}

async fn delete(context: &Context, id: &str) -> Result<Exit, Failure> {
    let value = context.client()?.delete(&[PATH[0], PATH[1], id]).await?;
    let name = format!("conversation/{id}");
    context.show(&Shown { value, text: format!("{name}  deleted\n"), names: vec![name] })?;
    Ok(Exit::Done)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_conversation_reads_like_one() {
        let said = |role: &str, content: &str| ConversationMessage {
            role: role.to_owned(),
            content: content.to_owned(),
            images: None,
            settings: None,
        };
        let conversation = Conversation {
            id: "trip".to_owned(),
            agent: "travel".to_owned(),
            scope: "named".to_owned(),
            turns: 1,
            messages: Some(vec![
                ConversationMessage { images: Some(vec![Default::default()]), ..said("user", "Where?\nAnd when?") },
                said("assistant", "Here."),
            ]),
            running_job: Some("job-1".to_owned()),
            ..Conversation::default()
        };
        expect_test::expect![[r#"
            trip  with travel  named  1 turn

            user (1 image)
              Where?
              And when?

            assistant
              Here.

            job-1 is answering
        "#]]
        .assert_eq(&text(&conversation));
    }
}
