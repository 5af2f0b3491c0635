//! An answer as server-sent events.

use std::convert::Infallible;

use atlas_model::{Answer, Delta};
use atlas_openai::{WireError, chat, completions, responses};
use atlas_service::{Caller, Service, Shown};
use atlas_types::{JobId, JobStatus};
use axum::body::Body;
use bytes::Bytes;
use futures::stream;
use serde_json::Value;

use super::answered;
use super::begin::Begun;
use super::errors::{self, Refusal, with_job};
use super::follow::{CancelGuard, Following, Heard};
use crate::http::HttpDoor;
use crate::http::answer::Response;
use crate::http::events::sse_response;

/// A comment, which says that the stream is open.
const ALIVE: &[u8] = b": alive\n\n";
/// What chunks end with.
const DONE: &[u8] = b"data: [DONE]\n\n";

/// What turns pieces into the events of an operation.
pub(super) trait Writer: Send + 'static {
    /// The first events.
    fn start(&mut self) -> Vec<Value>;
    /// The events of a piece.
    fn delta(&mut self, delta: &Delta) -> Vec<Value>;
    /// Whether the answer can begin again.
    fn reset(&mut self) -> bool;
    /// Pieces were missed.
    fn skip(&mut self);
    /// When the answer was complete, in seconds since 1970.
    fn completed(&mut self, _at: u64) {}
    /// The last events.
    fn end(&mut self, answer: &Answer) -> Result<Vec<Value>, WireError>;
    /// The last events of an answer that failed; none if an error is sent as it is.
    fn fail(&mut self, error: &WireError) -> Vec<Value>;
    /// The last events of an answer that was cancelled.
    fn cancel(&mut self, error: &WireError) -> Vec<Value>;
    /// Whether events have their names in frames. Otherwise the stream ends with `[DONE]`.
    fn is_named(&self) -> bool;
}

impl Writer for chat::Chunks {
    fn start(&mut self) -> Vec<Value> {
        Self::start(self)
    }

    fn delta(&mut self, delta: &Delta) -> Vec<Value> {
        Self::delta(self, delta)
    }

    fn reset(&mut self) -> bool {
        Self::reset(self)
    }

    fn skip(&mut self) {
        Self::skip(self);
    }

    fn end(&mut self, answer: &Answer) -> Result<Vec<Value>, WireError> {
        Self::end(self, answer)
    }

    fn fail(&mut self, error: &WireError) -> Vec<Value> {
        vec![error.body()]
    }

    fn cancel(&mut self, error: &WireError) -> Vec<Value> {
        vec![error.body()]
    }

    fn is_named(&self) -> bool {
        false
    }
}

impl Writer for completions::Chunks {
    fn start(&mut self) -> Vec<Value> {
        Vec::new()
    }

    fn delta(&mut self, delta: &Delta) -> Vec<Value> {
        Self::delta(self, delta)
    }

    fn reset(&mut self) -> bool {
        Self::reset(self)
    }

    fn skip(&mut self) {
        Self::skip(self);
    }

    fn end(&mut self, answer: &Answer) -> Result<Vec<Value>, WireError> {
        Self::end(self, answer)
    }

    fn fail(&mut self, error: &WireError) -> Vec<Value> {
        vec![error.body()]
    }

    fn cancel(&mut self, error: &WireError) -> Vec<Value> {
        vec![error.body()]
    }

    fn is_named(&self) -> bool {
        false
    }
}

impl Writer for responses::Events {
    fn start(&mut self) -> Vec<Value> {
        Self::start(self)
    }

    fn delta(&mut self, delta: &Delta) -> Vec<Value> {
        Self::delta(self, delta)
    }

    fn reset(&mut self) -> bool {
        Self::reset(self)
    }

    fn skip(&mut self) {
        Self::skip(self);
    }

    fn end(&mut self, answer: &Answer) -> Result<Vec<Value>, WireError> {
        Self::end(self, answer)
    }

    fn fail(&mut self, error: &WireError) -> Vec<Value> {
        Self::fail(self, error)
    }

    fn completed(&mut self, at: u64) {
        self.set_completed(at);
    }

    fn cancel(&mut self, _error: &WireError) -> Vec<Value> {
        Self::cancel(self)
    }

    fn is_named(&self) -> bool {
        true
    }
}

/// What a stream is of.
pub(super) struct Told<W> {
    pub(super) writer: W,
    /// The model as the client names it.
    pub(super) model: String,
    /// Whether a failure before the first piece is the answer to the request, with its status.
    pub(super) may_fail_first: bool,
}

/// Follows a job as a stream.
pub(super) async fn begun<W: Writer>(
    door: &HttpDoor,
    caller: &Caller,
    begun: Begun,
    told: Told<W>,
    guard: CancelGuard,
) -> Result<Response, Refusal> {
    let (id, live) = (begun.job.id, begun.live);
    let limits = begun.limits();
    let following = Following::of(door, caller, begun.job, live).await?;
    let response = followed(door, following, id, told, guard).await?;
    Ok(limits.limited(response))
}

/// The same for a job that is followed already.
pub(super) async fn followed<W: Writer>(
    door: &HttpDoor,
    mut following: Following,
    job: JobId,
    told: Told<W>,
    guard: CancelGuard,
) -> Result<Response, Refusal> {
    let Told { writer, model, may_fail_first } = told;
    let mut first = None;
    if may_fail_first {
        let heard = following.next().await;
        if let Heard::Ended(shown) = &heard
            && shown.job().status != JobStatus::Completed
        {
            let mut guard = guard;
            guard.release();
            return Err(Refusal::Wire(errors::of_job(shown, &model), Some(job)));
        }
        first = Some(heard);
    }
    let service = door.service.clone();
    let stream = Streaming { service, following, writer, model, guard, first, begun: false, over: false };
    let frames = stream::unfold(stream, |mut stream| async move {
        let bytes = stream.next().await?;
        Some((Ok::<_, Infallible>(bytes), stream))
    });
    Ok(with_job(sse_response(Body::from_stream(frames)), Some(job)))
}

struct Streaming<W> {
    service: Service,
    following: Following,
    writer: W,
    model: String,
    guard: CancelGuard,
    /// What was heard before the stream began.
    first: Option<Heard>,
    begun: bool,
    over: bool,
}

impl<W: Writer> Streaming<W> {
    /// The next bytes; none at the end.
    async fn next(&mut self) -> Option<Bytes> {
        let mut out = Vec::new();
        while out.is_empty() {
            if self.over {
                return None;
            }
            let mut values = Vec::new();
            if !self.begun {
                self.begun = true;
                values = self.writer.start();
                if !values.is_empty() {
                    self.frames(&mut out, &values);
                    break;
                }
            }
            let heard = match self.first.take() {
                Some(heard) => heard,
                None => self.following.next().await,
            };
            match heard {
                Heard::Delta(delta) => values = self.writer.delta(&delta),
                // What was sent cannot be taken back. If the answer is the same again, its rest follows at the end.
                Heard::Again => {
                    if !self.writer.reset() {
                        self.writer.skip();
                    }
                }
                Heard::Missed => self.writer.skip(),
                Heard::Silence => out.extend_from_slice(ALIVE),
                Heard::Ended(shown) => return Some(self.end(&shown)),
                Heard::Lost(error) => return Some(self.fail(&Refusal::from(error).wire())),
                Heard::Stopped => {
                    let error = WireError::unavailable("this controller stops; the answer goes on at another one");
                    return Some(self.fail(&error));
                }
            }
            self.frames(&mut out, &values);
        }
        Some(out.into())
    }

    fn end(&mut self, shown: &Shown) -> Bytes {
        self.over = true;
        self.guard.release();
        self.writer.completed(u64::try_from(shown.job().completed_at.0 / 1_000_000).unwrap_or_default());
        let answered = answered::answer(&self.service, shown, &self.model);
        let (values, is_done) = match answered.and_then(|answer| self.writer.end(&answer)) {
            Ok(values) => (values, true),
            Err(error) if shown.job().status == JobStatus::Cancelled => (self.writer.cancel(&error), false),
            Err(error) => (self.writer.fail(&error), false),
        };
        let mut out = Vec::new();
        self.frames(&mut out, &values);
        if is_done && !self.writer.is_named() {
            out.extend_from_slice(DONE);
        }
        out.into()
    }

    /// Ends the stream. The client cannot tell that the job goes on, so that one without a key is cancelled with its stream.
    fn fail(&mut self, error: &WireError) -> Bytes {
        self.over = true;
        let mut out = Vec::new();
        let values = self.writer.fail(error);
        self.frames(&mut out, &values);
        out.into()
    }

    fn frames(&self, out: &mut Vec<u8>, values: &[Value]) {
        for value in values {
            if let Some(name) = value["type"].as_str().filter(|_| self.writer.is_named()) {
                out.extend_from_slice(format!("event: {name}\n").as_bytes());
            }
            out.extend_from_slice(format!("data: {value}\n\n").as_bytes());
        }
    }
}
