//! The loop of a chat: reads a message or a command, and does it. A failure is reported and the loop goes on.

use std::io::IsTerminal as _;
use std::sync::{Arc, Mutex, PoisonError};

use atlas_api::types::{Conversation, ConversationMessage};
use atlas_chat::{Attachments, ChatSettings, Command, Input, Names, Standing, command_rows, parse, split_items};
use atlas_env::Env;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::lines::{Attendant, Lines, Read};
use super::target::{Message, Target, models};
use super::turn::{Ended, Turn};
use super::view::View;
use super::{read_files, resumed};
use crate::answers;
use crate::client::Client;
use crate::command::conversation::document;
use crate::command::job::TranscriptForm;
use crate::context::Context;
use crate::editor::Draft;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::screen::Screen;
use crate::words;

/// The path of conversations.
const PATH: [&str; 2] = ["api", "conversations"];
/// What lets an answer go on.
const CONTINUE: &str = "Continue exactly where your last answer ended. Do not repeat what it said.";
/// Most conversations that `.conversation` lists.
const LISTED_MAX: usize = 15;
/// Columns that a line of `.help` may need.
const HELP_COLUMNS: usize = 96;
/// Most bytes that are copied: terminals refuse more.
const COPIED_MAX: usize = 74_994;

/// A chat.
pub(super) struct Chat {
    target: Target,
    settings: ChatSettings,
    id: String,
    /// Files for the next message.
    files: Attachments,
    /// Messages of the conversation that were answered.
    turns: u64,
    /// The last answer.
    answer: Option<String>,
    /// How the first failure would end a program whose messages come from a pipe.
    failed: Option<Exit>,
    names: Arc<Mutex<Names>>,
}

/// Whether the loop goes on.
enum Next {
    On,
    Leave,
}

/// A name for a conversation that has none: the time, and digits that nobody else has.
pub(super) fn new_id() -> String {
    let env = Env::system();
    let time = words::compact_time(env.clock.wall().0 as f64 / 1e6);
    format!("chat-{}-{:06x}", time.to_lowercase(), env.entropy.u64() & 0xff_ffff)
}

/// Runs a chat until the person leaves, or standard input ends.
pub(super) async fn run(context: &Context, client: &Client, mut chat: Chat) -> Result<Exit, Failure> {
    let mut lines = Lines::open(&chat.names)?;
    chat.look(client).await;
    if lines.is_terminal() {
        chat.know_names(client).await;
        context.note(&chat.heading());
        context.note(".help lists the commands, Ctrl+D leaves");
    }
    loop {
        chat.share();
        let text = match lines.next(&chat.prompt())? {
            Read::Text(text) => text,
            Read::Interrupted => {
                context.note("Ctrl+D or .exit leaves");
                continue;
            }
            Read::End => break,
        };
        let done = match parse(&text, chat.standing()) {
            Ok(Input::Nothing) => Ok(Next::On),
            Ok(Input::Message(text)) => chat.send(context, client, &text).await,
            Ok(Input::Command(command)) => chat.command(context, client, command).await,
            Err(why) => Err(Failure::usage(why)),
        };
        match done {
            Ok(Next::On) => {}
            Ok(Next::Leave) => break,
            Err(failure) => {
                context.report(&failure);
                chat.failed.get_or_insert(failure.exit);
            }
        }
    }
    if lines.is_terminal() {
        if chat.turns > 0 && chat.target.remembers() {
            context.next(&format!("go on: atlasctl chat --conversation {}", words::shell(&chat.id)));
        }
        return Ok(Exit::Done);
    }
    Ok(chat.failed.unwrap_or(Exit::Done))
}

impl Chat {
    pub(super) fn new(target: Target, settings: ChatSettings, id: String, files: Attachments) -> Self {
        Self { target, settings, id, files, turns: 0, answer: None, failed: None, names: Arc::default() }
    }

    fn standing(&self) -> Standing {
        Standing { has_model: self.target.is_model(), has_turns: self.turns > 0, has_answer: self.answer.is_some() }
    }

    fn prompt(&self) -> String {
        format!("{}> ", self.target.name())
    }

    fn heading(&self) -> String {
        let with = self.target.name();
        match (self.target.remembers(), self.turns) {
            (false, _) => format!("{with} takes each message alone"),
            (true, 0) => format!("a new conversation with {with}: {}", self.id),
            (true, turns) => format!("{} with {with}, {}", self.id, words::count(turns, "turn")),
        }
    }

    /// Tells the completion what there is.
    fn share(&self) {
        let standing = self.standing();
        self.names.lock().unwrap_or_else(PoisonError::into_inner).standing = standing;
    }

    /// Reads names for completion. Without them, nothing is completed.
    async fn know_names(&self, client: &Client) {
        let text = |value: &serde_json::Value, name: &str| value[name].as_str().map(str::to_owned);
        let list = |value: Result<serde_json::Value, Failure>, name: &str| -> Vec<String> {
            let value = value.unwrap_or_default();
            let items = value.as_array().into_iter().flatten();
            items.filter_map(|item| text(item, name)).collect()
        };
        let agents = list(client.get(&["api", "agents"], &[]).await, "name");
        let conversations = list(client.get(&PATH, &[]).await, "id");
        let models = models(client).await.unwrap_or_default();
        let mut names = self.names.lock().unwrap_or_else(PoisonError::into_inner);
        (names.agents, names.models, names.conversations) = (agents, models, conversations);
    }

    /// Looks at what the conversation has.
    async fn look(&mut self, client: &Client) {
        let found = self.conversation(client).await.ok().flatten();
        self.turns = found.as_ref().map_or(0, |found| found.turns);
        let messages = found.and_then(|found| found.messages).unwrap_or_default();
        let last = messages.into_iter().rfind(|message| message.role == "assistant");
        self.answer = last.map(|message| message.content);
    }

    /// The conversation as the cluster has it.
    async fn conversation(&self, client: &Client) -> Result<Option<Conversation>, Failure> {
        answers::read(&client.get_if_known(&[PATH[0], PATH[1], &self.id]).await?)
    }

    /// Sends a text with the files that wait for it.
    async fn send(&mut self, context: &Context, client: &Client, text: &str) -> Result<Next, Failure> {
        let files = std::mem::take(&mut self.files);
        self.turn(context, client, &Message::of(Some(text), &files)).await
    }

    async fn turn(&mut self, context: &Context, client: &Client, message: &Message) -> Result<Next, Failure> {
        let mut view = View::new(context, true);
        let turn =
            Turn { target: &self.target, message, conversation: Some(self.id.as_str()), settings: &self.settings };
        let made = turn.make(client, &mut view, &mut Attendant).await;
        view.clear_status();
        let ended = made?;
        if ended.interrupted && ended.reply.is_none() {
            context.note("interrupted; the conversation is as it was");
            return Ok(Next::On);
        }
        if let Some(failure) = ended.failure() {
            return Err(failure);
        }
        self.finish(&mut view, ended);
        Ok(Next::On)
    }

    /// Shows the end of a turn, and remembers its answer.
    fn finish(&mut self, view: &mut View<'_>, ended: Ended) {
        let Ended { job, reply, .. } = ended;
        if let Some(reply) = reply {
            if !view.is_live() {
                view.whole(&reply);
            }
            self.answer = Some(reply);
        }
        view.footer(&job);
        self.turns += 1;
    }

    async fn command(&mut self, context: &Context, client: &Client, command: Command) -> Result<Next, Failure> {
        match command {
            Command::Exit => return Ok(Next::Leave),
            Command::Help => context.print(&help(self.standing()))?,
            Command::Info => context.print(&self.info())?,
            Command::Model(None) => print_names(context, &models(client).await?)?,
            Command::Model(Some(name)) => {
                let target = Target::model(client, &name).await?;
                self.change(context, target);
            }
            Command::Agent(None) => {
                let agents = client.get(&["api", "agents"], &[]).await?;
                let names = agents.as_array().into_iter().flatten().filter_map(|agent| agent["name"].as_str());
                print_names(context, &names.map(str::to_owned).collect::<Vec<_>>())?;
            }
            Command::Agent(Some(name)) => {
                let target = Target::agent(client, &name).await?;
                self.change(context, target);
            }
            Command::Conversation(None) => list(context, client).await?,
            Command::Conversation(Some(id)) => self.go_to(context, client, id).await?,
            Command::New(id) => {
                self.id = id.unwrap_or_else(new_id);
                self.look(client).await;
                context.note(&self.heading());
            }
            Command::Empty => {
                client.delete(&[PATH[0], PATH[1], &self.id]).await?;
                (self.turns, self.answer) = (0, None);
                context.note(&format!("{} is empty", self.id));
            }
            Command::File(rest) => {
                let (items, text) = split_items(&rest).map_err(|error| Failure::usage(error.to_string()))?;
                let files = read_files(context, &items, self.answer.as_deref())?;
                return self.turn(context, client, &Message::of(text.as_deref(), &files)).await;
            }
            Command::Continue => return self.send(context, client, CONTINUE).await,
            Command::Regenerate => return self.regenerate(context, client).await,
            Command::Copy => copy(context, self.answer.as_deref().unwrap_or_default())?,
            Command::Set(None) => context.print(&lines(self.settings.lines()))?,
            Command::Set(Some((name, value))) => {
                self.settings.set(&name, &value).map_err(|error| Failure::usage(error.to_string()))?;
            }
            Command::Edit => {
                let draft = Draft::new("md", "")?;
                let text = draft.edit()?;
                draft.remove();
                if text.trim().is_empty() {
                    context.note("nothing was written, and nothing is sent");
                    return Ok(Next::On);
                }
                return self.send(context, client, text.trim_end()).await;
            }
            Command::Save(path) => self.save(context, client, path).await?,
        }
        Ok(Next::On)
    }

    /// Talks with somebody else. A conversation is with one agent, so another agent begins another one; all models share the cluster's own.
    fn change(&mut self, context: &Context, target: Target) {
        let is_same = self.target.agent_name() == target.agent_name();
        self.target = target;
        if !is_same {
            (self.id, self.turns, self.answer) = (new_id(), 0, None);
        }
        context.note(&self.heading());
    }

    async fn go_to(&mut self, context: &Context, client: &Client, id: String) -> Result<(), Failure> {
        let found: Conversation = answers::read(&client.get(&[PATH[0], PATH[1], &id], &[]).await?)?;
        (self.target, self.settings) = resumed(client, &found).await?;
        self.id = id;
        self.look(client).await;
        context.note(&self.heading());
        Ok(())
    }

    /// Asks the last question again: in a conversation that has everything before it, which takes the place of this one.
    async fn regenerate(&mut self, context: &Context, client: &Client) -> Result<Next, Failure> {
        let messages = self.conversation(client).await?.and_then(|found| found.messages).unwrap_or_default();
        let last = messages.into_iter().rfind(|message| message.role == "user");
        let Some(ConversationMessage { content, images, .. }) = last else {
            return Err(Failure::usage("nothing was said yet in this conversation"));
        };
        let images = images.unwrap_or_default().into_iter().map(serde_json::Value::Object).collect();
        let before = self.turns.saturating_sub(1);
        let id = new_id();
        if before > 0 {
            let body = serde_json::json!({"id": id, "turns": before});
            client.post(&[PATH[0], PATH[1], &self.id, "branch"], &[], &body).await?;
        }
        context.note(&format!("{} keeps the earlier answer; this goes on in {id}", self.id));
        (self.id, self.turns) = (id, before);
        self.turn(context, client, &Message { text: content, images }).await
    }

    async fn save(&self, context: &Context, client: &Client, path: Option<String>) -> Result<(), Failure> {
        let value = client.get(&[PATH[0], PATH[1], &self.id], &[]).await?;
        let path = path.unwrap_or_else(|| format!("{}.md", self.id.replace(['/', ':'], "-")));
        let is_json = std::path::Path::new(&path).extension().is_some_and(|end| end.eq_ignore_ascii_case("json"));
        let text = if is_json { format!("{value:#}\n") } else { document(&value, TranscriptForm::Md) };
        let made = std::fs::OpenOptions::new().write(true).create_new(true).open(&path);
        let written = made.and_then(|mut file| std::io::Write::write_all(&mut file, text.as_bytes()));
        written.map_err(|error| words::could_not("write", std::path::Path::new(&path), &error))?;
        context.note(&format!("written to {path}"));
        Ok(())
    }

    fn info(&self) -> String {
        let kind = if self.target.is_model() { "model" } else { "agent" };
        let mut rows = vec![format!("{kind}  {}", self.target.name())];
        if self.target.remembers() {
            rows.push(format!("conversation  {}  ({})", self.id, words::count(self.turns, "turn")));
        } else {
            rows.push("conversation  none: the agent takes each message alone".to_owned());
        }
        rows.extend(self.settings.lines());
        lines(rows)
    }
}

fn lines(rows: Vec<String>) -> String {
    rows.into_iter().map(|row| row + "\n").collect()
}

fn print_names(context: &Context, names: &[String]) -> Result<(), Failure> {
    context.print(&lines(names.to_vec()))
}

/// The commands that can be used now.
fn help(standing: Standing) -> String {
    let rows: Vec<_> = command_rows(standing).collect();
    let head = |row: &atlas_chat::CommandRow| format!("{} {}", row.name, row.arguments).trim_end().to_owned();
    let width = rows.iter().map(|row| head(row).chars().count()).max().unwrap_or(0);
    // On a narrow terminal, what a command does is below it.
    let is_narrow = Screen::get().width.is_some_and(|columns| columns < HELP_COLUMNS);
    let between = if is_narrow { "\n    " } else { "  " };
    let width = if is_narrow { 0 } else { width };
    let mut text: String = rows.iter().map(|row| format!("{:width$}{between}{}\n", head(row), row.does)).collect();
    text += "Several lines: Alt+Enter or Ctrl+J between them, or ::: before and after. Ctrl+C interrupts an answer.\n";
    text
}

/// The latest conversations.
async fn list(context: &Context, client: &Client) -> Result<(), Failure> {
    let mut all: Vec<Conversation> = answers::read(&client.get(&PATH, &[]).await?)?;
    all.sort_by_key(|conversation| std::cmp::Reverse(conversation.updated_at));
    let row = |found: &Conversation| format!("{}  {}  {}\n", found.id, found.agent, words::count(found.turns, "turn"));
    context.print(&all.iter().take(LISTED_MAX).map(row).collect::<String>())
}

/// Copies a text by the terminal (OSC 52), which also works over SSH.
fn copy(context: &Context, text: &str) -> Result<(), Failure> {
    if !std::io::stdout().is_terminal() {
        return Err(Failure::usage("there is no terminal that could copy"));
    }
    if text.len() > COPIED_MAX {
        return Err(Failure::usage(format!(
            "the answer is longer than the {COPIED_MAX} bytes that terminals copy; use .save"
        )));
    }
    let mut stdout = std::io::stdout().lock();
    let sequence = format!("\u{1b}]52;c;{}\u{7}", STANDARD.encode(text));
    let written = std::io::Write::write_all(&mut stdout, sequence.as_bytes());
    written.and_then(|()| std::io::Write::flush(&mut stdout)).map_err(|error| Failure::usage(error.to_string()))?;
    context.note("copied, if the terminal allows it");
    Ok(())
}
