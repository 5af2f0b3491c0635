//! `POST /v1/completions`: a text that goes on from a prompt. The prompt becomes one message of the user.

use atlas_model::{Answer, Delta, Message, Request};
use serde_json::{Map, Value, json};

use crate::body::{self, Node};
use crate::chat::finish_reason;
use crate::pieces::Pieces;
use crate::{AnswerMeta, Dialogue, WireError, dialogue, parameters, settings, usage};

/// The limit of an answer whose request has none.
const MAX_TOKENS_DEFAULT: u32 = 16;

/// A request that was read.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct CompletionRequest {
    /// The model or agent, as the client names it.
    pub model: String,
    /// The request without `model` and `stream`: what goes into the job ([`job_input`](crate::job_input)).
    pub request: Request,
    /// Whether the client wants chunks.
    pub stream: bool,
    /// Whether the last chunk has the usage.
    pub include_usage: bool,
    /// The client's own user, for records; not sent to providers.
    pub user: Option<String>,
}

/// Reads a body. Errors name the member that is wrong.
pub fn read(body: &[u8]) -> Result<CompletionRequest, WireError> {
    let value = body::parse(body)?;
    let root = Node::root(&value);
    let extra = parameters::admit(root.object()?, parameters::COMPLETIONS)?;
    let model = settings::model(&root)?;
    let messages = vec![Message::user(prompt(&root.required("prompt")?)?)].into();
    let mut request = Request { messages, extra, ..Request::default() };
    settings::sampling(&root, &mut request)?;
    request.max_tokens = settings::tokens(&root, "max_tokens")?.or(Some(MAX_TOKENS_DEFAULT));
    request.stop = settings::stop(&root)?;
    let (stream, include_usage) = settings::stream(&root)?;
    Ok(CompletionRequest { model, request, stream, include_usage, user: settings::user(&root)? })
}

fn prompt(node: &Node<'_>) -> Result<String, WireError> {
    if let Some(text) = node.value.as_str() {
        return Ok(text.to_owned());
    }
    let list = node.value.as_array().ok_or_else(|| node.wrong_type("a string"))?;
    if list.iter().any(|prompt| prompt.is_number() || prompt.is_array()) {
        return Err(WireError::unsupported(&node.path, "a prompt is a text; this server takes no tokens"));
    }
    if list.len() > 1 {
        return Err(WireError::unsupported(&node.path, "a request has one prompt; send one request for each"));
    }
    match node.list(1)?.first() {
        Some(prompt) => prompt.text().map(str::to_owned),
        None => Err(node.wrong("must have one text")),
    }
}

impl CompletionRequest {
    /// Refuses what an agent behind the name of a model cannot follow.
    pub fn check_for_agent(&self) -> Result<(), WireError> {
        dialogue::check(&self.request, "prompt", "prompt")
    }

    /// The message for an agent.
    pub fn said(&self) -> Dialogue {
        Dialogue::of(&self.request)
    }
}

/// The answer as one value.
pub fn whole(answer: &Answer, meta: &AnswerMeta) -> Value {
    let mut value = frame(meta, &answer.text(), Some(finish_reason(answer)));
    value.insert("usage".to_owned(), usage::completion(&answer.usage));
    Value::Object(value)
}

/// A value with the only choice.
fn frame(meta: &AnswerMeta, text: &str, finish_reason: Option<&str>) -> Map<String, Value> {
    let choice = json!({ "index": 0, "text": text, "logprobs": null, "finish_reason": finish_reason });
    members(meta, json!([choice]))
}

fn members(meta: &AnswerMeta, choices: Value) -> Map<String, Value> {
    Map::from_iter([
        ("id".to_owned(), meta.id.as_str().into()),
        ("object".to_owned(), "text_completion".into()),
        ("created".to_owned(), meta.created.into()),
        ("model".to_owned(), meta.model.as_str().into()),
        ("choices".to_owned(), choices),
    ])
}

/// Turns pieces of an answer into chunks, which have its text and nothing else. The methods are those of
/// [`chat::Chunks`](crate::chat::Chunks).
#[derive(Debug, Clone)]
pub struct Chunks {
    meta: AnswerMeta,
    include_usage: bool,
    pieces: Pieces,
}

impl Chunks {
    /// Chunks of one answer. With `include_usage`, the last one has the usage.
    pub fn new(meta: AnswerMeta, include_usage: bool) -> Self {
        Self { meta, include_usage, pieces: Pieces::default() }
    }

    /// The chunks of a piece: one for a text, and none for another one.
    pub fn delta(&mut self, delta: &Delta) -> Vec<Value> {
        let Delta::Text(_) = delta else { return Vec::new() };
        self.pieces.take(delta).iter().filter_map(|delta| self.piece(delta)).collect()
    }

    /// Whether the answer can begin again: until a text was returned.
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
        let mut chunks: Vec<Value> = rest.iter().filter_map(|delta| self.piece(delta)).collect();
        chunks.push(self.chunk(frame(&self.meta, "", Some(finish_reason(answer))), None));
        if self.include_usage {
            let usage = usage::completion(&answer.usage);
            chunks.push(self.chunk(members(&self.meta, Value::Array(Vec::new())), Some(usage)));
        }
        Ok(chunks)
    }

    fn piece(&self, delta: &Delta) -> Option<Value> {
        let Delta::Text(text) = delta else { return None };
        Some(self.chunk(frame(&self.meta, text, None), None))
    }

    fn chunk(&self, mut members: Map<String, Value>, usage: Option<Value>) -> Value {
        if self.include_usage {
            members.insert("usage".to_owned(), usage.unwrap_or_default());
        }
        Value::Object(members)
    }
}

#[cfg(test)]
mod tests {
    use atlas_model::Stop;
    use expect_test::expect;
    use proptest::prelude::*;

    use super::*;
    use crate::testing::{answer, answers, cut, lines, meta, text};

    #[test]
    fn requests_are_read() {
        let read = |members: Value| {
            let mut body = json!({ "model": "fast", "prompt": "Once" });
            for (name, value) in members.as_object().expect("an object") {
                body[name] = value.clone();
            }
            let request = read(body.to_string().as_bytes()).map(|request| request.request);
            request.map(|request| (request.messages[0].text(), request.max_tokens)).map_err(|error| error.message)
        };
        assert_eq!(read(json!({})), Ok(("Once".to_owned(), Some(16))));
        assert_eq!(read(json!({"prompt": ["Then"], "max_tokens": 5, "echo": false})), Ok(("Then".to_owned(), Some(5))));
        let tokens = Err("\"prompt\" is not supported: a prompt is a text; this server takes no tokens".to_owned());
        assert_eq!(read(json!({"prompt": [1, 2]})), tokens);
        assert_eq!(read(json!({"prompt": [[1], [2]]})), tokens);
        assert_eq!(
            read(json!({"prompt": ["a", "b"]})),
            Err("\"prompt\" is not supported: a request has one prompt; send one request for each".to_owned())
        );
        assert_eq!(read(json!({"prompt": []})), Err("prompt must have one text".to_owned()));
        assert_eq!(read(json!({"prompt": {}})), Err("prompt must be a string, not an object".to_owned()));
        assert_eq!(read(json!({"prompt": [null]})), Err("prompt[0] must be a string, not null".to_owned()));
        assert_eq!(
            read(json!({"echo": true})),
            Err("\"echo\" is not supported: the answer does not repeat the prompt".to_owned())
        );
    }

    #[test]
    fn answers_as_one_value_and_in_chunks() {
        let answer = answer(vec![text("upon a time")], Stop::Length);
        let mut chunks = Chunks::new(meta("cmpl-1"), true);
        let mut all = vec![whole(&answer, &meta("cmpl-1"))];
        all.extend(chunks.delta(&Delta::Text("upon".to_owned())));
        assert!(!chunks.reset());
        all.extend(chunks.end(&answer).expect("the same answer"));
        expect![[r#"
            {"id":"cmpl-1","object":"text_completion","created":1700000000,"model":"fast","choices":[{"index":0,"text":"upon a time","logprobs":null,"finish_reason":"length"}],"usage":{"prompt_tokens":9,"completion_tokens":4,"total_tokens":13,"prompt_tokens_details":{"cached_tokens":3,"cache_write_tokens":0,"audio_tokens":0},"completion_tokens_details":{"reasoning_tokens":1,"audio_tokens":0,"accepted_prediction_tokens":0,"rejected_prediction_tokens":0}}}
            {"id":"cmpl-1","object":"text_completion","created":1700000000,"model":"fast","choices":[{"index":0,"text":"upon","logprobs":null,"finish_reason":null}],"usage":null}
            {"id":"cmpl-1","object":"text_completion","created":1700000000,"model":"fast","choices":[{"index":0,"text":" a time","logprobs":null,"finish_reason":null}],"usage":null}
            {"id":"cmpl-1","object":"text_completion","created":1700000000,"model":"fast","choices":[{"index":0,"text":"","logprobs":null,"finish_reason":"length"}],"usage":null}
            {"id":"cmpl-1","object":"text_completion","created":1700000000,"model":"fast","choices":[],"usage":{"prompt_tokens":9,"completion_tokens":4,"total_tokens":13,"prompt_tokens_details":{"cached_tokens":3,"cache_write_tokens":0,"audio_tokens":0},"completion_tokens_details":{"reasoning_tokens":1,"audio_tokens":0,"accepted_prediction_tokens":0,"rejected_prediction_tokens":0}}}
        "#]].assert_eq(&lines(&all));
    }

    proptest! {
        #[test]
        fn chunks_together_are_the_text(answer in answers(), seed in any::<u64>(), seen in 0..40_usize) {
            let mut chunks = Chunks::new(meta("cmpl-1"), false);
            let mut all: Vec<Value> = cut(&answer, seed).iter().take(seen).flat_map(|delta| chunks.delta(delta)).collect();
            all.extend(chunks.end(&answer).expect("the same answer"));
            let text: String = all.iter().filter_map(|chunk| chunk["choices"][0]["text"].as_str()).collect();
            prop_assert_eq!(text, answer.text());
        }
    }
}
