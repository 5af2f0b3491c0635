//! The answer in chunks.

use atlas_model::{Answer, Delta};
use serde_json::{Map, Value, json};

use super::{EXTRA, OURS, REASONING, finish_reason};
use crate::pieces::Pieces;
use crate::{AnswerMeta, WireError, usage};

/// Turns pieces of an answer into chunks. The texts of all chunks together are exactly those of [`whole`](super::whole).
///
/// ```
/// use atlas_model::{Answer, Delta, Part, Stop, Usage};
/// use atlas_openai::{AnswerMeta, chat::Chunks};
///
/// let mut chunks = Chunks::new(AnswerMeta::default(), false);
/// let first = chunks.delta(&Delta::Text("Hel".to_owned()));
/// assert_eq!(first[0]["choices"][0]["delta"]["role"], "assistant");
/// assert_eq!(first[1]["choices"][0]["delta"]["content"], "Hel");
/// let answer = Answer {
///     parts: vec![Part::Text { text: "Hello".to_owned() }],
///     stop: Stop::End, usage: Usage::default(), model: "m".to_owned(), id: None, raw: Default::default(),
/// };
/// let last = chunks.end(&answer).expect("it is the same answer");
/// assert_eq!(last[0]["choices"][0]["delta"]["content"], "lo");
/// assert_eq!(last[1]["choices"][0]["finish_reason"], "stop");
/// ```
#[derive(Debug, Clone)]
pub struct Chunks {
    meta: AnswerMeta,
    include_usage: bool,
    pieces: Pieces,
    /// The chunk with the role was returned.
    started: bool,
}

impl Chunks {
    /// Chunks of one answer. With `include_usage`, the last one has the usage.
    pub fn new(meta: AnswerMeta, include_usage: bool) -> Self {
        Self { meta, include_usage, pieces: Pieces::default(), started: false }
    }

    /// The chunk with the role, if it was not returned yet: says to the client that the answer has begun. [`Chunks::delta`] and
    /// [`Chunks::end`] return it where this was not called.
    pub fn start(&mut self) -> Vec<Value> {
        if std::mem::replace(&mut self.started, true) {
            return Vec::new();
        }
        vec![self.chunk(&json!({ "role": "assistant", "content": "" }), None)]
    }

    /// The chunks of a piece.
    pub fn delta(&mut self, delta: &Delta) -> Vec<Value> {
        let Some(delta) = self.pieces.take(delta) else { return Vec::new() };
        let mut chunks = self.start();
        chunks.push(self.piece(&delta));
        chunks
    }

    /// The answer begins again (another try, or another model): whether that is possible. It is until a piece was returned, because
    /// clients cannot take back what they have. If it is not, end the stream with [`WireError::body`].
    pub fn reset(&mut self) -> bool {
        let is_possible = !self.pieces.has_begun();
        if is_possible {
            self.pieces = Pieces::default();
        }
        is_possible
    }

    /// Pieces were missed: those that follow are ignored, and [`Chunks::end`] returns the rest of the answer.
    pub fn skip(&mut self) {
        self.pieces.skip();
    }

    /// The last chunks: what no piece carried, the reason of the end, and the usage. `data: [DONE]` follows, which the door writes.
    ///
    /// # Errors
    ///
    /// 502 if what was returned is not the beginning of the answer. The stream then ends with [`WireError::body`].
    pub fn end(&mut self, answer: &Answer) -> Result<Vec<Value>, WireError> {
        let rest = self.pieces.rest(answer)?;
        let mut chunks = self.start();
        chunks.extend(rest.iter().map(|delta| self.piece(delta)));
        for (index, call) in answer.tool_calls().enumerate().filter(|(_, call)| !call.opaque.is_null()) {
            let call = json!({ "index": index, "function": { "arguments": "" }, EXTRA: { OURS: call.opaque } });
            chunks.push(self.chunk(&json!({ "tool_calls": [call] }), None));
        }
        chunks.push(self.chunk(&json!({}), Some(finish_reason(answer))));
        if self.include_usage {
            chunks.push(self.frame(Value::Array(Vec::new()), Some(usage::completion(&answer.usage))));
        }
        Ok(chunks)
    }

    fn piece(&self, delta: &Delta) -> Value {
        let delta = match delta {
            Delta::Text(text) => json!({ "content": text }),
            Delta::Reasoning(text) => json!({ REASONING: text }),
            Delta::Call { index, id, name } => {
                let function = json!({ "name": name, "arguments": "" });
                json!({ "tool_calls": [{ "index": index, "id": id, "type": "function", "function": function }] })
            }
            Delta::Arguments { index, text } => {
                json!({ "tool_calls": [{ "index": index, "function": { "arguments": text } }] })
            }
        };
        self.chunk(&delta, None)
    }

    /// A chunk of the only choice. Clients want all four members.
    fn chunk(&self, delta: &Value, finish_reason: Option<&str>) -> Value {
        let choice = json!({ "index": 0, "delta": delta, "logprobs": null, "finish_reason": finish_reason });
        self.frame(Value::Array(vec![choice]), None)
    }

    fn frame(&self, choices: Value, usage: Option<Value>) -> Value {
        let mut frame = Map::new();
        frame.insert("id".to_owned(), self.meta.id.as_str().into());
        frame.insert("object".to_owned(), "chat.completion.chunk".into());
        frame.insert("created".to_owned(), self.meta.created.into());
        frame.insert("model".to_owned(), self.meta.model.as_str().into());
        frame.insert("choices".to_owned(), choices);
        if self.include_usage {
            frame.insert("usage".to_owned(), usage.unwrap_or_default());
        }
        Value::Object(frame)
    }
}
