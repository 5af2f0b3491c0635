//! `send_message`: a turn of a conversation, or a message that stands alone.

use std::time::Duration;

use atlas_service::{BegunTurn, Mapping, Message, Shown, Submission, SubmittedJob, View, reply_of};
use atlas_types::JobStatus;
use bytes::Bytes;
use rmcp::RoleServer;
use rmcp::model::{CallToolResult, ContentBlock, JsonObject};
use rmcp::service::RequestContext;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{AgentServer, Asked, history, tools};
use crate::progress::Told;
use crate::view::plain_error_text as error_text;
use crate::{arguments, bearer, progress, texts};

/// Most images of one message.
const IMAGES_MAX: usize = 32;

/// The arguments.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Send {
    message: String,
    #[serde(default)]
    images: Option<Vec<Image>>,
    #[serde(default)]
    conversation_id: Option<String>,
}

#[derive(Debug, Deserialize)]
struct Image {
    data: String,
    mime_type: String,
}

/// One call.
pub(super) struct Sending<'a> {
    pub(super) server: &'a AgentServer,
    pub(super) asked: Asked,
    pub(super) context: RequestContext<RoleServer>,
}

/// What ends a call early: a text for the client.
type Refused = String;

impl Sending<'_> {
    /// Carries out the call, and counts it.
    pub(super) async fn answer(self, arguments: Option<JsonObject>) -> Result<CallToolResult, Refused> {
        let timing = self.server.service.message_began(&self.asked.agent);
        let answer = self.turn(arguments).await;
        timing.ended(answer.as_ref().is_ok_and(|result| result.is_error != Some(true)));
        answer
    }

    async fn turn(&self, mut arguments: Option<JsonObject>) -> Result<CallToolResult, Refused> {
        if let (Some(arguments), Some(tool)) = (&mut arguments, tools::named(tools::SEND_MESSAGE)) {
            texts::read(arguments, &tool.input_schema);
        }
        let Send { message, images, conversation_id } = arguments::read(arguments)?;
        let service = &self.server.service;
        let agent = self.server.agent(&self.asked).await.map_err(|error| error_text(&error))?;
        let name = &agent.agent.name;
        let mapping = Mapping::of(&agent.contract.value).map_err(|why| {
            format!("{name} takes no messages: {why}. Run it with its input: the tool agent_run at /mcp")
        })?;
        let images = images.unwrap_or_default();
        if images.len() > IMAGES_MAX {
            return Err(format!("'images' has more than {IMAGES_MAX} elements"));
        }
        if !images.is_empty() && !mapping.sees() {
            return Err(format!("{name} takes no images: its input has no member for them"));
        }
        let images =
            images.into_iter().map(|Image { data, mime_type }| json!({ "data": data, "mime_type": mime_type }));
        let message = Message::user(message, images.collect());
        let conversation = history::conversation(&self.asked, &agent, conversation_id.as_deref());
        let caller = &bearer::passing_on(&self.asked.caller, &self.context);
        let Some((conversation, scope)) = conversation else {
            let mut submission = Submission::new(name.clone(), Bytes::from(mapping.input(&[message]).to_string()));
            submission.refuse = true;
            let job = service.submit_to_wait(caller, submission).await.map_err(|error| error_text(&error))?;
            return Ok(result(&self.awaited(job).await?, None));
        };
        let begun = service.begin_turn(caller, &conversation, scope, name, &mapping, message).await;
        let begun = begun.map_err(|error| error_text(&error))?;
        let ended = self.awaited(begun.job.into()).await;
        self.finish(&conversation, begun).await?;
        Ok(result(&ended?, Some(&conversation)))
    }

    async fn finish(&self, conversation: &str, turn: BegunTurn) -> Result<(), Refused> {
        let finished = self.server.service.finish_turn(&self.asked.caller, conversation, turn).await;
        finished.map_err(|error| error_text(&error))
    }

    /// Waits until a job has ended. The client's cancellation of the call cancels the job.
    async fn awaited(&self, submitted: SubmittedJob) -> Result<Shown, Refused> {
        let (service, caller) = (&self.server.service, &self.asked.caller);
        let job = submitted.id;
        let waiting = service.wait_for_family(caller, submitted, View::Full, self.server.turn_max);
        let waited = async {
            match self.context.meta.get_progress_token() {
                Some(token) => {
                    let report = progress::report(service, caller, job, (token, Told::Steps), &self.context.peer);
                    progress::with(waiting, report).await
                }
                None => waiting.await,
            }
        };
        tokio::select! {
            shown = waited => shown.map_err(|error| error_text(&error)),
            () = self.context.ct.cancelled() => {
                service.cancel(caller, job, true).await.map_err(|error| error_text(&error))?;
                // The conversation goes on once the job has ended.
                let _ = service.wait_family(caller, job, View::Plain, CANCEL_MAX).await;
                Err(format!("the call was cancelled, and with it {job}"))
            }
        }
    }
}

/// How long a cancelled job is waited for.
const CANCEL_MAX: Duration = Duration::from_secs(10);

/// The answer of the agent, or its error.
fn result(shown: &Shown, conversation: Option<&str>) -> CallToolResult {
    let job = shown.job();
    let (text, is_error) = match job.status {
        JobStatus::Completed => (reply_of(&shown.output().unwrap_or_default()), false),
        status => {
            let error = job.failure.as_ref().map(|failure| failure.error.to_string());
            let error = error.filter(|error| !error.is_empty());
            (error.unwrap_or_else(|| format!("{} is {}", job.id, status.as_str())), true)
        }
    };
    let mut about = json!({ "job_id": job.id.to_string() });
    if let Some(conversation) = conversation {
        about["conversation_id"] = json!(conversation);
    }
    if is_error {
        let mut result = CallToolResult::error(vec![ContentBlock::text(text)]);
        result.structured_content = Some(about);
        return result;
    }
    about["reply"] = Value::String(text.clone());
    let mut result = CallToolResult::success(vec![ContentBlock::text(text)]);
    result.structured_content = Some(about);
    result
}
