//! `/v1/responses`. A response is a job: its id is that of the job, it goes on when its client does not, and what is read of it later comes
//! from the record of the job. The label [`OPERATION_LABEL`] says that a job is one.

use std::collections::BTreeMap;
use std::time::Duration;

use atlas_model::{Answer, Message, Messages, Part, Purpose, Request as ModelRequest, Role};
use atlas_openai::responses::{self, Events, Phase, ResponsesRequest};
use atlas_openai::{AnswerMeta, WireError};
use atlas_service::{Caller, Consistency, Error, Shown, View};
use atlas_types::{ERASED_LABEL, Job, JobId, JobStatus, Timestamp};
use http::StatusCode;
use serde_json::{Map, Value};

use super::begin::{Asked, Begun, Live, MODEL_LABEL, OPERATION_LABEL, begin};
use super::calls::waited;
use super::errors::{Refusal, with_job};
use super::follow::{CancelGuard, Following};
use super::stream::{self, Told};
use super::{BODY_BYTES_MAX, answered};
use crate::http::HttpDoor;
use crate::http::answer::{Answer as Answered, Response, json as answer_json};
use crate::http::request::Request;

/// What the id of a response begins with; the id of its job follows.
const PREFIX: &str = "resp_";
/// The value of [`OPERATION_LABEL`].
const RESPONSE: &str = "response";
/// The label of a response that cannot be read later.
const UNSTORED_LABEL: &str = "openai.unstored";
/// The label of the response of an agent with what it repeats of its request.
const ECHO_LABEL: &str = "openai.echo";
/// The member of the input of a model call with what its response repeats of its request.
const ECHO: &str = "echo";
/// The member with the number of messages that come from earlier responses.
const EARLIER: &str = "earlier";
/// Most messages of earlier responses, and most bytes of the input of the latest one.
const MESSAGES_MAX: usize = 10_000;
const EARLIER_BYTES_MAX: usize = 2 << 20;
/// Most bytes of a label.
const LABEL_BYTES_MAX: usize = 1_024;
/// How long the end of a cancelled job is waited for.
const CANCEL_WAIT: Duration = Duration::from_secs(5);
/// Items of a page, if the request does not say, and at most.
const PAGE: usize = 20;
const PAGE_MAX: u64 = 100;

/// `POST /v1/responses`.
pub(in crate::http) async fn create(door: &HttpDoor, caller: &Caller, request: &mut Request) -> Answered {
    match created(door, caller, request).await {
        Ok(response) => Ok(response),
        Err(refusal) => refusal.answer(),
    }
}

async fn created(door: &HttpDoor, caller: &Caller, request: &mut Request) -> Result<Response, Refusal> {
    let body = request.body(door, door.limits.body_bytes_max.max(BODY_BYTES_MAX)).await?;
    let mut asked = responses::read(&body)?;
    drop(body);
    if asked.conversation.is_some() {
        let why = "conversations of OpenAI are not kept here; use previous_response_id";
        return Err(WireError::unsupported("conversation", why).into());
    }
    let mut earlier = 0;
    if let Some(id) = asked.previous_response_id.clone() {
        let messages = continued(door, caller, &id).await?;
        earlier = messages.len();
        asked.continue_from(&messages)?;
    }
    let begun = submitted(door, caller, &asked, earlier).await?;
    let (job, limits) = (begun.job.id, begun.limits());
    let meta = AnswerMeta {
        id: format!("{PREFIX}{job}"),
        created: seconds(door.env.clock.wall()),
        model: asked.model.clone(),
        ..AnswerMeta::default()
    };
    let mut guard = match asked.background {
        true => CancelGuard::none(door, caller),
        false => CancelGuard::of(door, caller, job),
    };
    if asked.stream {
        let writer = Events::new(meta, asked.echo, None);
        let told = Told { writer, model: asked.model, may_fail_first: false };
        return stream::begun(door, caller, begun, told, guard).await;
    }
    if asked.background {
        let shown = door.service.job(caller, job, View::Full, Consistency::Linearizable).await?;
        let value = shown_response(door, &shown, (&meta, &asked.echo));
        return Ok(limits.limited(with_job(answer_json(StatusCode::OK, &value), Some(job))));
    }
    let answer = waited(door, caller, begun, &asked.model).await?;
    guard.release();
    let meta = AnswerMeta { completed: Some(seconds(door.env.clock.wall())), ..meta };
    let value = responses::whole(Phase::Answered(&answer), &meta, &asked.echo);
    Ok(limits.limited(with_job(answer_json(StatusCode::OK, &value), Some(job))))
}

async fn submitted(
    door: &HttpDoor,
    caller: &Caller,
    asked: &ResponsesRequest,
    earlier: usize,
) -> Result<Begun, Refusal> {
    let mut labels = BTreeMap::new();
    if !asked.store {
        labels.insert(UNSTORED_LABEL.to_owned(), "true".to_owned());
    }
    let beside = [(ECHO.to_owned(), asked.echo.clone().into()), (EARLIER.to_owned(), earlier.into())];
    let call = Asked {
        operation: RESPONSE,
        model: &asked.model,
        purpose: Purpose::Chat,
        request: &asked.request,
        stream: asked.stream || asked.background,
        user: asked.user.as_deref(),
        labels,
        // A model call has all of it in its input. A label has what there is room for.
        agent_labels: BTreeMap::from([(ECHO_LABEL.to_owned(), echo_label(&asked.echo))]),
        beside: Map::from_iter(beside),
    };
    let said = || {
        asked.check_for_agent()?;
        Ok(asked.said())
    };
    begin(door, caller, call, &said).await
}

/// The members of the echo that fit into a label.
fn echo_label(echo: &Map<String, Value>) -> String {
    let mut kept = Map::new();
    let mut bytes = 2;
    for (name, value) in echo {
        // Labels have no control characters, and texts have them escaped.
        let more = name.len() + value.to_string().len() + 6;
        if bytes + more <= LABEL_BYTES_MAX && !value.is_null() {
            bytes += more;
            kept.insert(name.clone(), value.clone());
        }
    }
    Value::Object(kept).to_string()
}

/// A response that is read.
struct Stored {
    shown: Shown,
    input: Value,
    echo: Map<String, Value>,
    meta: AnswerMeta,
}

impl Stored {
    fn job(&self) -> &Job {
        self.shown.job()
    }

    /// The request, as a model gets it.
    fn request(&self) -> ModelRequest {
        answered::request(&self.input).unwrap_or_else(|| of_agent(&self.input))
    }

    /// How many of the messages come from earlier responses.
    fn earlier(&self) -> usize {
        self.input[EARLIER].as_u64().and_then(|count| usize::try_from(count).ok()).unwrap_or_default()
    }
}

/// Finds a response that the caller asked for, or that it may read because it may read jobs.
async fn find(door: &HttpDoor, caller: &Caller, id: &str) -> Result<Stored, Refusal> {
    let job = job_of(id)?;
    let job = door.service.awaited_job(caller, &job.to_string()).await?;
    let shown = door.service.wait_family(caller, job, View::Full, Duration::ZERO).await?;
    let labels = &shown.job().labels;
    let is_readable = labels.get(OPERATION_LABEL).is_some_and(|operation| operation == RESPONSE)
        && !labels.contains_key(UNSTORED_LABEL)
        && !labels.contains_key(ERASED_LABEL);
    if !is_readable {
        return Err(missing(id));
    }
    let input = shown.input().unwrap_or_default();
    let echo = match input[ECHO].as_object() {
        Some(echo) if door.service.is_model_call(shown.job()) => echo.clone(),
        _ => labels.get(ECHO_LABEL).and_then(|echo| serde_json::from_str(echo).ok()).unwrap_or_default(),
    };
    let ended = shown.job().status.is_terminal();
    let meta = AnswerMeta {
        id: id.to_owned(),
        created: seconds(shown.job().created_at),
        completed: ended.then(|| seconds(shown.job().completed_at)),
        model: labels.get(MODEL_LABEL).cloned().unwrap_or_default(),
    };
    Ok(Stored { shown, input, echo, meta })
}

fn missing(id: &str) -> Refusal {
    let short: String = id.chars().take(64).collect();
    Refusal::Problem(Error::UnknownObject(format!("no response has the id {short:?}")).into())
}

fn seconds(time: Timestamp) -> u64 {
    u64::try_from(time.0 / 1_000_000).unwrap_or_default()
}

/// A response as its job is now.
fn shown_response(door: &HttpDoor, shown: &Shown, (meta, echo): (&AnswerMeta, &Map<String, Value>)) -> Value {
    match shown.job().status {
        JobStatus::Pending => responses::whole(Phase::Queued, meta, echo),
        JobStatus::Running => responses::whole(Phase::InProgress, meta, echo),
        JobStatus::Cancelled => responses::whole(Phase::Cancelled, meta, echo),
        JobStatus::Completed | JobStatus::Failed => match answered::answer(&door.service, shown, &meta.model) {
            Ok(answer) => responses::whole(Phase::Answered(&answer), meta, echo),
            Err(error) => responses::whole(Phase::Failed(&error), meta, echo),
        },
    }
}

/// The messages of a response and those before it, with its answer.
async fn continued(door: &HttpDoor, caller: &Caller, id: &str) -> Result<Vec<Message>, Refusal> {
    let param = "previous_response_id";
    let stored = match find(door, caller, id).await {
        Ok(stored) => stored,
        Err(refusal) => return Err(refusal.wire().at(param).into()),
    };
    if !stored.job().status.is_terminal() {
        let text = format!("the response {id:?} is not complete; wait for it");
        return Err(WireError::conflict(text).at(param).into());
    }
    let answer = answered::answer(&door.service, &stored.shown, &stored.meta.model).map_err(|error| {
        let text = format!("the response {id:?} has no answer: {}", error.message);
        WireError::invalid(text).at(param)
    })?;
    let request = stored.request();
    if request.messages.len() >= MESSAGES_MAX || stored.input.to_string().len() > EARLIER_BYTES_MAX {
        let text = format!(
            "the responses before have more than {MESSAGES_MAX} messages or {EARLIER_BYTES_MAX} bytes; begin anew"
        );
        return Err(WireError::too_long(text).at(param).into());
    }
    let mut messages = request.messages.to_vec();
    messages.push(said_again(&answer));
    Ok(messages)
}

/// The answer as the message that the next request repeats. It is never empty: some providers refuse that.
fn said_again(answer: &Answer) -> Message {
    let message = answer.message();
    if message.parts.is_empty() {
        return Message { role: Role::Assistant, parts: vec![Part::Text { text: String::new() }] };
    }
    message
}

/// What an agent was asked, as messages: those of its input, or its text.
fn of_agent(input: &Value) -> ModelRequest {
    let mut messages = Vec::new();
    let lists = input.as_object().into_iter().flatten().filter_map(|(_, member)| member.as_array());
    let listed = lists.flatten().chain(input["conversation"]["messages"].as_array().into_iter().flatten());
    for said in listed {
        let Some(text) = said["content"].as_str() else { continue };
        let role = if said["role"] == "assistant" { Role::Assistant } else { Role::User };
        messages.push(Message { role, parts: vec![Part::Text { text: text.to_owned() }] });
    }
    if messages.is_empty() {
        let mut texts = input.as_object().into_iter().flatten().filter_map(|(_, member)| member.as_str());
        messages.extend(texts.next().map(Message::user));
    }
    ModelRequest { messages: Messages::from(messages), ..ModelRequest::default() }
}

/// `GET /v1/responses/{id}`.
pub(in crate::http) async fn get(door: &HttpDoor, caller: &Caller, request: &Request, id: &str) -> Answered {
    match got(door, caller, request, id).await {
        Ok(response) => Ok(response),
        Err(refusal) => refusal.answer(),
    }
}

async fn got(door: &HttpDoor, caller: &Caller, request: &Request, id: &str) -> Result<Response, Refusal> {
    let query = request.query();
    let (streams, after) = (query.flag("stream")?, query.count("starting_after")?);
    let Stored { shown, echo, meta, .. } = find(door, caller, id).await?;
    let job = shown.job().id;
    if !streams {
        let value = shown_response(door, &shown, (&meta, &echo));
        return Ok(with_job(answer_json(StatusCode::OK, &value), Some(job)));
    }
    let live = match (shown.job().status.is_terminal(), door.service.is_model_call(shown.job())) {
        (false, true) => Live::Call,
        _ => Live::Nothing,
    };
    let following = Following::of(door, caller, job.into(), live).await?;
    let model = meta.model.clone();
    let told = Told { writer: Events::new(meta, echo, after), model, may_fail_first: false };
    stream::followed(door, following, job, told, CancelGuard::none(door, caller)).await
}

/// `POST /v1/responses/{id}/cancel`.
pub(in crate::http) async fn cancel(door: &HttpDoor, caller: &Caller, id: &str) -> Answered {
    match cancelled(door, caller, id).await {
        Ok(response) => Ok(response),
        Err(refusal) => refusal.answer(),
    }
}

async fn cancelled(door: &HttpDoor, caller: &Caller, id: &str) -> Result<Response, Refusal> {
    // A job that is no response is not cancelled here.
    let Stored { shown, echo, meta, .. } = find(door, caller, id).await?;
    let job = shown.job().id;
    door.service.cancel(caller, job, true).await?;
    let shown = door.service.wait_family(caller, job, View::Full, CANCEL_WAIT).await?;
    let value = shown_response(door, &shown, (&meta, &echo));
    Ok(with_job(answer_json(StatusCode::OK, &value), Some(job)))
}

/// The job of a response.
fn job_of(id: &str) -> Result<JobId, Refusal> {
    let job = id.strip_prefix(PREFIX).and_then(|job| job.parse().ok());
    job.ok_or_else(|| missing(id))
}

/// `DELETE /v1/responses/{id}`.
pub(in crate::http) async fn delete(door: &HttpDoor, caller: &Caller, id: &str) -> Answered {
    match deleted(door, caller, id).await {
        Ok(response) => Ok(response),
        Err(refusal) => refusal.answer(),
    }
}

async fn deleted(door: &HttpDoor, caller: &Caller, id: &str) -> Result<Response, Refusal> {
    // A job that is no response is not erased here.
    let stored = find(door, caller, id).await?;
    door.service.forget_job(caller, stored.job().id).await?;
    Ok(answer_json(StatusCode::OK, &responses::deleted(id)))
}

/// `GET /v1/responses/{id}/input_items`.
pub(in crate::http) async fn input_items(door: &HttpDoor, caller: &Caller, request: &Request, id: &str) -> Answered {
    match listed(door, caller, request, id).await {
        Ok(response) => Ok(response),
        Err(refusal) => refusal.answer(),
    }
}

async fn listed(door: &HttpDoor, caller: &Caller, request: &Request, id: &str) -> Result<Response, Refusal> {
    let query = request.query();
    let limit = query.count("limit")?.map_or(PAGE, |limit| usize::try_from(limit.clamp(1, PAGE_MAX)).unwrap_or(PAGE));
    let (is_ascending, after) = (query.get("order").as_deref() == Some("asc"), query.filled("after"));
    let stored = find(door, caller, id).await?;
    let all = stored.request();
    let own = all.messages.get(stored.earlier()..).unwrap_or_default();
    let value = page(responses::input_items(own, id), limit, is_ascending, after.as_deref());
    Ok(with_job(answer_json(StatusCode::OK, &value), Some(stored.job().id)))
}

/// A page of items, which are in ascending order.
fn page(mut items: Vec<Value>, limit: usize, is_ascending: bool, after: Option<&str>) -> Value {
    if !is_ascending {
        items.reverse();
    }
    if let Some(after) = after {
        let place = items.iter().position(|item| item["id"] == after).map_or(items.len(), |place| place + 1);
        items.drain(..place);
    }
    let has_more = items.len() > limit;
    items.truncate(limit);
    responses::page(items, has_more)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn pages_are_cut_from_either_end() {
        let list = || vec![json!({"id": "a"}), json!({"id": "b"}), json!({"id": "c"})];
        let check = |page: Value, ids: &[&str], has_more: bool| {
            let found: Vec<_> = page["data"].as_array().into_iter().flatten().map(|item| item["id"].clone()).collect();
            assert_eq!((json!(found), &page["has_more"]), (json!(ids), &json!(has_more)), "{page}");
        };
        check(page(list(), 2, true, None), &["a", "b"], true);
        check(page(list(), 2, true, Some("b")), &["c"], false);
        check(page(list(), 1, false, None), &["c"], true);
        check(page(list(), 1, true, Some("gone")), &[], false);
    }

    #[test]
    fn what_agents_were_asked_is_messages_again() {
        let said = of_agent(&json!({"m": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]}));
        assert_eq!((said.messages.len(), said.messages[1].role), (2, Role::Assistant));
        assert_eq!(of_agent(&json!({"message": "hi"})).messages[0].text(), "hi");
        assert!(of_agent(&Value::Null).messages.is_empty());
    }

    #[test]
    fn echoes_fit_into_labels() {
        let echo =
            json!({"a": "x", "b": "y".repeat(2_000), "c": null, "d": 1}).as_object().cloned().expect("an object");
        assert_eq!(echo_label(&echo), r#"{"a":"x","d":1}"#);
    }
}
