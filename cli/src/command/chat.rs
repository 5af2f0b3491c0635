//! `atlasctl chat`: a conversation with an agent or a model. Each message is a job, and the cluster keeps the conversation.

mod answer;
mod lines;
mod repl;
mod target;
mod turn;
mod view;

pub(crate) use lines::Attendant;
pub(crate) use target::{Message, Target};
pub(crate) use turn::{Ended, Turn};
pub(crate) use view::View;

use atlas_api::types::Conversation;
use atlas_chat::{Attachments, ChatSettings, FileError, read_items};
use atlas_model::CHAT_AGENT;
use serde_json::json;

use crate::answers;
use crate::client::Client;
use crate::context::Context;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::names;

/// Options of `atlasctl chat`.
#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// Who answers: an agent, optionally with @VERSION, or a model; without it, a model of the namespace.
    #[arg(value_name = "AGENT|MODEL", value_parser = names::agent)]
    target: Option<String>,
    /// Go on with this conversation, or begin it under this name.
    #[arg(long, value_name = "ID", value_parser = names::conversation)]
    conversation: Option<String>,
    /// Begin anew: what was said in --conversation before is removed.
    #[arg(long, requires = "conversation")]
    new: bool,
    #[command(flatten)]
    wanted: Wanted,
    /// Send these files with the first message: texts, images, folders, patterns, or - for stdin; repeatable.
    #[arg(short, long = "file", value_name = "FILE")]
    files: Vec<String>,
}

/// What a model is asked with.
#[derive(Debug, Default, clap::Args)]
pub(crate) struct Wanted {
    /// Model or tier of the namespace that answers.
    #[arg(short, long, value_name = "NAME", value_parser = names::model)]
    pub(crate) model: Option<String>,
    /// What the model is told before the conversation.
    #[arg(long, value_name = "TEXT")]
    pub(crate) instructions: Option<String>,
    /// Setting of the model: temperature, top_p, top_k, max_tokens, reasoning_effort or stop; repeatable.
    #[arg(long = "set", value_name = "NAME=VALUE")]
    pub(crate) set: Vec<String>,
}

impl Wanted {
    /// The settings that were given, which only models have.
    pub(crate) fn settings(&self, target: &Target) -> Result<ChatSettings, Failure> {
        let mut settings = ChatSettings::default();
        for text in &self.set {
            let Some((name, value)) = text.split_once('=') else {
                return Err(Failure::usage(format!("\"{text}\" is not NAME=VALUE")));
            };
            settings.set(name, value).map_err(|error| Failure::usage(error.to_string()))?;
        }
        if let Some(text) = &self.instructions {
            settings.set("instructions", text).map_err(|error| Failure::usage(error.to_string()))?;
        }
        if !settings.is_empty() && !target.is_model() {
            let text = format!("{} is an agent, which has its own instructions and settings", target.name());
            return Err(Failure::usage(text));
        }
        Ok(settings)
    }
}

impl Message {
    /// A message of a text and files.
    pub(crate) fn of(text: Option<&str>, files: &Attachments) -> Self {
        let images = files.images.iter().map(|image| json!({"data": image.data, "mime_type": image.mime})).collect();
        Self { text: files.message(text), images }
    }
}

/// Reads files for a message.
pub(crate) fn read_files(context: &Context, items: &[String], last: Option<&str>) -> Result<Attachments, Failure> {
    let read = read_items(items, &mut std::io::stdin().lock(), last).map_err(|error| {
        let exit = if matches!(error, FileError::Large { .. } | FileError::Many) { Exit::Invalid } else { Exit::Usage };
        Failure { exit, ..Failure::usage(error.to_string()) }
    })?;
    if !read.left_out.is_empty() {
        let names: Vec<String> = read.left_out.iter().map(|path| path.display().to_string()).collect();
        context
            .note(&format!("left out, because they are neither texts nor images: {}", crate::words::some(&names, 5)));
    }
    Ok(read)
}

pub(crate) async fn run(context: &Context, options: &Options) -> Result<Exit, Failure> {
    let client = context.client()?;
    let known = match &options.conversation {
        Some(id) => answers::read(&client.get_if_known(&["api", "conversations", id]).await?)?,
        None => None,
    };
    let (target, kept) = match (&known, &options.target, &options.wanted.model) {
        (Some(known), None, None) => resumed(&client, known).await?,
        (_, name, model) => (Target::find(&client, name.as_deref(), model.as_deref()).await?, ChatSettings::default()),
    };
    let given = options.wanted.settings(&target)?;
    let settings = if given.is_empty() && !options.new { kept } else { given };
    let files = read_files(context, &options.files, None)?;
    let id = options.conversation.clone().unwrap_or_else(repl::new_id);
    if options.new && known.is_some() {
        client.delete(&["api", "conversations", &id]).await?;
    }
    repl::run(context, &client, repl::Chat::new(target, settings, id, files)).await
}

/// Who answers in a conversation, and the settings with which the model was asked last.
async fn resumed(client: &Client, known: &Conversation) -> Result<(Target, ChatSettings), Failure> {
    if known.agent != CHAT_AGENT {
        return Ok((Target::agent(client, &known.agent).await?, ChatSettings::default()));
    }
    let messages = known.messages.iter().flatten().rev();
    let chosen: Vec<_> = messages.filter_map(|message| message.settings.as_ref()).collect();
    let latest = |name: &str| chosen.iter().find_map(|settings| settings.get(name));
    let settings = latest("settings").map(ChatSettings::of).unwrap_or_default();
    let target = match latest("model").and_then(|name| name.as_str()) {
        Some(name) => Target::Model(name.to_owned()),
        None => Target::find(client, None, None).await?,
    };
    Ok((target, settings))
}
