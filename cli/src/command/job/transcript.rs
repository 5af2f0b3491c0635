//! `atlasctl job transcript`: what was said in a job of an agent with a model: prompts, answers, tool calls and their results.

use atlas_api::types::{Job, JobStep};
use atlas_chat::{TranscriptEntry, markdown, openai};
use clap::ValueEnum;
use serde_json::{Value, json};

use super::said::StepReader;
use crate::answers;
use crate::client::Client;
use crate::context::Context;
use crate::display::JobDisplay as _;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::names;
use crate::output::Shown;

/// Options of `atlasctl job transcript`.
#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// Id of a job, or a unique prefix of it, also as printed by -o name.
    #[arg(value_name = "ID", value_parser = names::job)]
    id: String,
    /// Form of the transcript: Markdown, or messages as OpenAI's interface has them. With -o json or yaml, everything as data.
    #[arg(long = "as", value_name = "md|openai", default_value = "md")]
    form: TranscriptForm,
}

/// How what was said is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum TranscriptForm {
    /// Markdown.
    Md,
    /// Messages of OpenAI's interface.
    Openai,
}

impl TranscriptForm {
    /// What was said, in this form.
    pub(crate) fn text(self, title: &str, entries: &[TranscriptEntry]) -> String {
        match self {
            Self::Openai => format!("{:#}\n", openai(entries)),
            Self::Md => markdown(title, entries),
        }
    }
}

/// The size of the outcome `null`, which a page also shows instead of an outcome that it has no room for.
const NULL_BYTES: u64 = 4;
/// Most steps that are read.
const STEPS_MAX: usize = 10_000;

pub(super) async fn run(context: &Context, options: &Options) -> Result<Exit, Failure> {
    let client = context.client()?;
    let job: Job = answers::read(&client.get(&["api", "jobs", &options.id], &[("view", "full")]).await?)?;
    let entries = entries(&client, &job).await?;
    if context.form.is_text() {
        context.print(&options.form.text(&title(&job), &entries))?;
        return Ok(Exit::Done);
    }
    let value = json!({
        "job": job.id, "agent": job.agent_name, "version": job.agent_version, "status": job.status,
        "entries": entries.iter().map(data).collect::<Vec<_>>(),
    });
    context.show(&Shown { text: String::new(), value, names: vec![format!("job/{}", job.id)] })?;
    Ok(Exit::Done)
}

fn title(job: &Job) -> String {
    let title = if job.title.is_empty() { String::new() } else { format!(": {}", job.title) };
    format!("{} of {}{title}", job.id, job.agent())
}

/// What was said in a job, the oldest first.
async fn entries(client: &Client, job: &Job) -> Result<Vec<TranscriptEntry>, Failure> {
    let (steps, more) = steps(client, &job.id).await?;
    if steps.is_empty() {
        let text = format!(
            "the job {} has recorded no steps; only agents with a model, graphs and durable programs record them",
            job.id
        );
        return Err(
            Failure::new("E3016", Exit::Invalid, text).with_next(format!("what it did: atlasctl job show {}", job.id))
        );
    }
    let mut reader = StepReader::default();
    let mut said: Vec<TranscriptEntry> = steps.iter().flat_map(|step| reader.read(step)).collect();
    // The system text comes before the input, and everything else after it.
    let at = usize::from(matches!(said.first(), Some(TranscriptEntry::System(_))));
    said.splice(at..at, asked(&job.input_data));
    if !said.iter().any(|entry| matches!(entry, TranscriptEntry::Assistant { .. })) {
        said.push(TranscriptEntry::Note(format!(
            "its steps have no answers of a model: atlasctl job steps {}",
            job.id
        )));
    }
    if more {
        said.push(TranscriptEntry::Note(format!("there are more than {STEPS_MAX} steps; the rest is left out")));
    }
    if !job.error.is_empty() {
        said.push(TranscriptEntry::Note(format!("the job is {}: {}", job.status, job.error_text())));
    }
    Ok(said)
}

/// All steps up to the most, and whether there are more. An outcome that a page has no room for is the first one of the next page.
async fn steps(client: &Client, id: &str) -> Result<(Vec<JobStep>, bool), Failure> {
    let mut steps: Vec<JobStep> = Vec::new();
    loop {
        let after = steps.last().map(|last| last.step.to_string());
        let mut query = vec![("limit", "1000")];
        query.extend(after.as_deref().map(|after| ("after", after)));
        let page: Vec<JobStep> = answers::read(&client.get(&["api", "jobs", id, "steps"], &query).await?)?;
        let known = steps.len();
        let is_left_out = |step: &JobStep| step.outcome.is_null() && step.outcome_bytes > NULL_BYTES;
        steps.extend(page.into_iter().take_while(|step| !is_left_out(step)));
        if steps.len() == known || steps.len() >= STEPS_MAX {
            let more = steps.len() > STEPS_MAX || (steps.len() == STEPS_MAX && steps.len() != known);
            steps.truncate(STEPS_MAX);
            return Ok((steps, more));
        }
    }
}

/// The input as messages: those of a conversation, or the input itself.
fn asked(input: &Value) -> Vec<TranscriptEntry> {
    let conversation = input.pointer("/conversation/messages").or_else(|| {
        let members = input.as_object()?.values();
        members.filter(|value| is_conversation(value)).max_by_key(|value| value.as_array().map_or(0, Vec::len))
    });
    if let Some(messages) = conversation.and_then(Value::as_array) {
        return messages.iter().map(message).collect();
    }
    let text = match input.as_object() {
        Some(members) if members.len() == 1 => members.values().next().and_then(Value::as_str).map(str::to_owned),
        _ => None,
    };
    let text = text.unwrap_or_else(|| if input.is_null() { "(erased)".to_owned() } else { format!("{input:#}") });
    vec![TranscriptEntry::User { text, images: Vec::new() }]
}

fn is_conversation(value: &Value) -> bool {
    let is_message = |value: &Value| value["role"].is_string() && value["content"].is_string();
    value.as_array().is_some_and(|messages| !messages.is_empty() && messages.iter().all(is_message))
}

/// A message of a conversation.
pub(crate) fn message(value: &Value) -> TranscriptEntry {
    let text = value["content"].as_str().unwrap_or_default().to_owned();
    match value["role"].as_str() {
        Some("assistant") => TranscriptEntry::Assistant { text, calls: Vec::new() },
        _ => TranscriptEntry::User { text, images: value["images"].as_array().cloned().unwrap_or_default() },
    }
}

fn data(entry: &TranscriptEntry) -> Value {
    match entry {
        TranscriptEntry::System(text) => json!({"kind": "system", "text": text}),
        TranscriptEntry::User { text, images } if images.is_empty() => json!({"kind": "user", "text": text}),
        TranscriptEntry::User { text, images } => json!({"kind": "user", "text": text, "images": images}),
        TranscriptEntry::Assistant { text, calls } => {
            let call =
                |call: &atlas_chat::ToolUse| json!({"id": call.id, "name": call.name, "arguments": call.arguments});
            json!({"kind": "assistant", "text": text, "calls": calls.iter().map(call).collect::<Vec<_>>()})
        }
        TranscriptEntry::Result { call, name, text, failed } => {
            json!({"kind": "result", "call": call, "name": name, "text": text, "failed": failed})
        }
        TranscriptEntry::Note(text) => json!({"kind": "note", "text": text}),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_input_is_a_conversation_or_a_message() {
        let user = |text: &str| TranscriptEntry::User { text: text.to_owned(), images: Vec::new() };
        let said = json!([{"role": "user", "content": "a"}, {"role": "assistant", "content": "A"}, {"role": "user", "content": "b"}]);
        let assistant = TranscriptEntry::Assistant { text: "A".to_owned(), calls: Vec::new() };
        let expected = vec![user("a"), assistant, user("b")];
        assert_eq!(asked(&json!({"model": "m", "messages": said})), expected);
        assert_eq!(asked(&json!({"message": "b", "conversation": {"messages": said}})), expected);
        assert_eq!(asked(&json!({"text": "hi"})), [user("hi")]);
        assert_eq!(asked(&json!({"list": [], "n": 5})), [user("{\n  \"list\": [],\n  \"n\": 5\n}")]);
        assert_eq!(asked(&Value::Null), [user("(erased)")]);
    }
}
