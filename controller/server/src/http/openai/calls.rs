//! `POST /v1/chat/completions`, `POST /v1/completions` and `POST /v1/embeddings`.

use std::collections::BTreeMap;

use atlas_model::{Answer, Purpose, Request as ModelRequest};
use atlas_openai::{AnswerMeta, WireError, chat, completions, embeddings};
use atlas_service::Caller;
use http::StatusCode;
use serde_json::{Map, Value};

use super::begin::{Asked, Begun, Said, begin};
use super::errors::{Refusal, with_job};
use super::follow::{CancelGuard, Following, Heard};
use super::stream::{self, Told, Writer};
use super::{BODY_BYTES_MAX, answered};
use crate::http::HttpDoor;
use crate::http::answer::{Answer as Answered, Response, json};
use crate::http::request::Request;

/// `POST /v1/chat/completions`.
pub(in crate::http) async fn chat(door: &HttpDoor, caller: &Caller, request: &mut Request) -> Answered {
    match chat_call(door, caller, request).await {
        Ok(response) => Ok(response),
        Err(refusal) => refusal.answer(),
    }
}

async fn chat_call(door: &HttpDoor, caller: &Caller, request: &mut Request) -> Result<Response, Refusal> {
    let body = request.body(door, door.limits.body_bytes_max.max(BODY_BYTES_MAX)).await?;
    let asked = chat::read(&body)?;
    drop(body);
    let call = Call {
        operation: "chat",
        prefix: "chatcmpl-",
        model: &asked.model,
        request: &asked.request,
        user: asked.user.as_deref(),
    };
    let said = || {
        asked.check_for_agent()?;
        Ok(asked.said())
    };
    let include_usage = asked.include_usage;
    match asked.stream {
        true => call.streamed(door, caller, &said, |meta| chat::Chunks::new(meta, include_usage)).await,
        false => call.whole(door, caller, &said, |answer, meta| Ok(chat::whole(answer, meta))).await,
    }
}

/// `POST /v1/completions`.
pub(in crate::http) async fn complete(door: &HttpDoor, caller: &Caller, request: &mut Request) -> Answered {
    match completion_call(door, caller, request).await {
        Ok(response) => Ok(response),
        Err(refusal) => refusal.answer(),
    }
}

async fn completion_call(door: &HttpDoor, caller: &Caller, request: &mut Request) -> Result<Response, Refusal> {
    let body = request.body(door, door.limits.body_bytes_max.max(BODY_BYTES_MAX)).await?;
    let asked = completions::read(&body)?;
    drop(body);
    let call = Call {
        operation: "completion",
        prefix: "cmpl-",
        model: &asked.model,
        request: &asked.request,
        user: asked.user.as_deref(),
    };
    let said = || {
        asked.check_for_agent()?;
        Ok(asked.said())
    };
    let include_usage = asked.include_usage;
    match asked.stream {
        true => call.streamed(door, caller, &said, |meta| completions::Chunks::new(meta, include_usage)).await,
        false => call.whole(door, caller, &said, |answer, meta| Ok(completions::whole(answer, meta))).await,
    }
}

/// `POST /v1/embeddings`.
pub(in crate::http) async fn embed(door: &HttpDoor, caller: &Caller, request: &mut Request) -> Answered {
    match embedding_call(door, caller, request).await {
        Ok(response) => Ok(response),
        Err(refusal) => refusal.answer(),
    }
}

async fn embedding_call(door: &HttpDoor, caller: &Caller, request: &mut Request) -> Result<Response, Refusal> {
    let body = request.body(door, door.limits.body_bytes_max.max(BODY_BYTES_MAX)).await?;
    let asked = embeddings::read(&body)?;
    drop(body);
    let call = Call {
        operation: "embeddings",
        prefix: "",
        model: &asked.model,
        request: &asked.request,
        user: asked.user.as_deref(),
    };
    let said = || Err(WireError::invalid("the model is an agent, which makes no vectors").at("model"));
    call.whole(door, caller, &said, |answer, _| embeddings::whole(answer, &asked)).await
}

/// A call whose client waits for the answer.
struct Call<'a> {
    operation: &'static str,
    /// What the id of the answer begins with.
    prefix: &'static str,
    model: &'a str,
    request: &'a ModelRequest,
    user: Option<&'a str>,
}

impl Call<'_> {
    async fn begin(&self, door: &HttpDoor, caller: &Caller, said: Said<'_>, stream: bool) -> Result<Begun, Refusal> {
        let asked = Asked {
            operation: self.operation,
            model: self.model,
            purpose: if self.request.task.is_chat() { Purpose::Chat } else { Purpose::Embedding },
            request: self.request,
            stream,
            user: self.user,
            labels: BTreeMap::new(),
            agent_labels: BTreeMap::new(),
            beside: Map::new(),
        };
        begin(door, caller, asked, said).await
    }

    fn meta(&self, door: &HttpDoor, begun: &Begun) -> AnswerMeta {
        AnswerMeta {
            id: format!("{}{}", self.prefix, begun.job.id),
            created: u64::try_from(door.env.clock.wall().0 / 1_000_000).unwrap_or_default(),
            model: self.model.to_owned(),
            ..AnswerMeta::default()
        }
    }

    /// The answer as one value.
    async fn whole(
        self,
        door: &HttpDoor,
        caller: &Caller,
        said: Said<'_>,
        write: impl Fn(&Answer, &AnswerMeta) -> Result<Value, WireError> + Send,
    ) -> Result<Response, Refusal> {
        let begun = self.begin(door, caller, said, false).await?;
        let (meta, job, limits) = (self.meta(door, &begun), begun.job.id, begun.limits());
        let mut guard = CancelGuard::of(door, caller, job);
        let answer = waited(door, caller, begun, self.model).await?;
        guard.release();
        let value = write(&answer, &meta).map_err(|error| Refusal::Wire(error, Some(job)))?;
        Ok(limits.limited(with_job(json(StatusCode::OK, &value), Some(job))))
    }

    /// The answer in chunks.
    async fn streamed<W: Writer>(
        self,
        door: &HttpDoor,
        caller: &Caller,
        said: Said<'_>,
        writer: impl FnOnce(AnswerMeta) -> W + Send,
    ) -> Result<Response, Refusal> {
        let begun = self.begin(door, caller, said, true).await?;
        let guard = CancelGuard::of(door, caller, begun.job.id);
        let writer = writer(self.meta(door, &begun));
        let told = Told { writer, model: self.model.to_owned(), may_fail_first: true };
        stream::begun(door, caller, begun, told, guard).await
    }
}

/// Waits for the answer of a job.
pub(super) async fn waited(door: &HttpDoor, caller: &Caller, begun: Begun, model: &str) -> Result<Answer, Refusal> {
    let job = begun.job.id;
    let mut following = Following::of(door, caller, begun.job, super::begin::Live::Nothing).await?;
    loop {
        match following.next().await {
            Heard::Ended(shown) => {
                let answer = answered::answer(&door.service, &shown, model);
                return answer.map_err(|error| Refusal::Wire(error, Some(job)));
            }
            Heard::Lost(error) => return Err(error.into()),
            Heard::Stopped => {
                let error = WireError::unavailable("this controller stops; ask another one again");
                return Err(Refusal::Wire(error, Some(job)));
            }
            Heard::Delta(_) | Heard::Again | Heard::Missed | Heard::Silence => {}
        }
    }
}
