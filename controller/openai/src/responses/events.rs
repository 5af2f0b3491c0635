//! The answer in events.

use atlas_model::{Answer, Delta, Part};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value, json};

use super::resource::{self, Resource};
use crate::pieces::Pieces;
use crate::{AnswerMeta, WireError};

/// Turns pieces of an answer into events. Each value has its name in `type`, which is the `event:` of its frame.
///
/// The `sequence_number` of an event is the place in the response that it reaches: events count one, and texts and arguments their
/// bytes. So the same place has the same number however the answer was cut into pieces, and a client that lost its connection goes
/// on after any number, though nobody kept the pieces: the answer is enough.
///
/// Items are in the order in which they began. A text or reasoning ends when another item begins; calls end with the response,
/// because their arguments may arrive in any order.
#[derive(Debug, Clone)]
pub struct Events {
    meta: AnswerMeta,
    echo: Map<String, Value>,
    /// Events up to this number are not returned.
    after: Option<u64>,
    /// The number of the next event.
    position: u64,
    pieces: Pieces,
    items: Vec<Item>,
    created: bool,
    running: bool,
    out: Vec<Value>,
}

/// An item of the output.
#[derive(Debug, Clone)]
struct Item {
    kind: Kind,
    /// Its text, reasoning or arguments so far.
    text: String,
    /// Its last event was returned.
    is_done: bool,
}

#[derive(Debug, Clone)]
enum Kind {
    Message,
    Reasoning { sealed: Vec<Part> },
    Call { index: usize, id: String, name: String },
}

impl Events {
    /// Events of one response. With `starting_after`, only those with a larger number are returned.
    pub fn new(meta: AnswerMeta, echo: Map<String, Value>, starting_after: Option<u64>) -> Self {
        Self {
            meta,
            echo,
            after: starting_after,
            position: 0,
            pieces: Pieces::default(),
            items: Vec::new(),
            created: false,
            running: false,
            out: Vec::new(),
        }
    }

    /// `response.created`, and `response.queued` in the background or `response.in_progress` otherwise. The other methods return them
    /// where this was not called.
    pub fn start(&mut self) -> Vec<Value> {
        self.create();
        if !resource::is_background(&self.echo) {
            self.run();
        }
        self.take()
    }

    /// The job of the response runs: `response.in_progress`, if it was not returned yet.
    pub fn progress(&mut self) -> Vec<Value> {
        self.run();
        self.take()
    }

    /// When the response was complete, in seconds since 1970.
    pub fn set_completed(&mut self, at: u64) {
        self.meta.completed = Some(at);
    }

    /// The events of a piece.
    pub fn delta(&mut self, delta: &Delta) -> Vec<Value> {
        if let Some(delta) = self.pieces.take(delta) {
            self.piece(&delta);
        }
        self.take()
    }

    /// The answer begins again: whether that is possible. It is until a piece was returned, because clients cannot take back what
    /// they have. If it is not, end the stream with [`Events::fail`].
    pub fn reset(&mut self) -> bool {
        let is_possible = !self.pieces.has_begun();
        if is_possible {
            self.pieces = Pieces::default();
        }
        is_possible
    }

    /// Pieces were missed: those that follow are ignored, and [`Events::end`] returns the rest of the answer.
    pub fn skip(&mut self) {
        self.pieces.skip();
    }

    /// The last events: what no piece carried, the ends of all items, and `response.completed` or `response.incomplete`.
    ///
    /// # Errors
    ///
    /// 502 if what was returned is not the beginning of the answer. The stream then ends with [`Events::fail`].
    pub fn end(&mut self, answer: &Answer) -> Result<Vec<Value>, WireError> {
        let rest = self.pieces.rest(answer)?;
        self.run();
        rest.iter().for_each(|delta| self.piece(delta));
        self.seal(answer);
        let last = self.items.len().saturating_sub(1);
        let is_cut = resource::incomplete(answer).is_some();
        for at in 0..self.items.len() {
            self.close(at, if is_cut && at == last { "incomplete" } else { "completed" });
        }
        let response = self.response(answer);
        let name = if is_cut { "response.incomplete" } else { "response.completed" };
        self.last(name, &response);
        Ok(self.take())
    }

    /// The last events of a response that failed: `response.failed`.
    pub fn fail(&mut self, error: &WireError) -> Vec<Value> {
        self.create();
        let failed =
            Resource { error: resource::failure(error), output: self.output("incomplete"), ..Resource::of("failed") };
        let response = failed.write(&self.meta, &self.echo);
        self.last("response.failed", &response);
        self.take()
    }

    /// The last events of a response that was cancelled: `response.failed` with the status `cancelled`, because no event is for this alone.
    pub fn cancel(&mut self) -> Vec<Value> {
        self.create();
        let error = json!({ "code": "server_error", "message": "the response was cancelled" });
        let cancelled = Resource { error, output: self.output("incomplete"), ..Resource::of("cancelled") };
        let response = cancelled.write(&self.meta, &self.echo);
        self.last("response.failed", &response);
        self.take()
    }

    /// The response of an answer, as the last event has it.
    pub(super) fn completed(answer: &Answer, meta: &AnswerMeta, echo: &Map<String, Value>) -> Value {
        // Whatever the number is, the last event is returned.
        let mut events = Self::new(meta.clone(), echo.clone(), Some(u64::MAX - 1));
        // Nothing was returned before, so that the answer cannot differ from it.
        let last = events.end(answer).unwrap_or_default().pop();
        last.map(|mut event| event["response"].take()).unwrap_or_default()
    }

    fn take(&mut self) -> Vec<Value> {
        std::mem::take(&mut self.out)
    }

    fn create(&mut self) {
        if std::mem::replace(&mut self.created, true) {
            return;
        }
        let is_background = resource::is_background(&self.echo);
        let status = if is_background { "queued" } else { "in_progress" };
        self.show("response.created", status);
        if is_background {
            self.show("response.queued", status);
        }
    }

    fn run(&mut self) {
        self.create();
        if std::mem::replace(&mut self.running, true) {
            return;
        }
        self.show("response.in_progress", "in_progress");
        if resource::wants_sealed(&self.echo) {
            // What the provider wants back arrives with the end, and belongs before the rest.
            self.add(Kind::Reasoning { sealed: Vec::new() });
        }
    }

    /// An event with the response as it is.
    fn show(&mut self, name: &str, status: &'static str) {
        let response = Resource::of(status).write(&self.meta, &self.echo);
        self.event(name, json!({ "response": response }));
    }

    fn piece(&mut self, delta: &Delta) {
        self.run();
        match delta {
            Delta::Text(text) => {
                let at = self.open(|kind| matches!(kind, Kind::Message), Kind::Message);
                self.text(at, text);
            }
            Delta::Reasoning(text) => {
                let new = Kind::Reasoning { sealed: Vec::new() };
                let at = self.open(|kind| matches!(kind, Kind::Reasoning { .. }), new);
                self.reasoning(at, text);
            }
            Delta::Call { index, id, name } => {
                self.close_texts();
                self.add(Kind::Call { index: *index, id: id.clone(), name: name.clone() });
            }
            Delta::Arguments { index, text } => {
                let is_it = |item: &Item| matches!(&item.kind, Kind::Call { index: own, .. } if own == index);
                if let Some(at) = self.items.iter().position(is_it) {
                    let fields = json!({ "item_id": self.id(at), "output_index": at });
                    self.grow(at, "response.function_call_arguments.delta", &fields, text);
                }
            }
        }
    }

    /// The last item, if it takes more of the kind; otherwise a new one.
    fn open(&mut self, is_kind: impl Fn(&Kind) -> bool, new: Kind) -> usize {
        let last = self.items.last().filter(|item| !item.is_done && is_kind(&item.kind));
        if last.is_none() {
            self.close_texts();
            self.add(new);
        }
        self.items.len() - 1
    }

    fn add(&mut self, kind: Kind) {
        let at = self.items.len();
        self.items.push(Item { kind, text: String::new(), is_done: false });
        let item = self.item(at, "in_progress");
        self.event("response.output_item.added", json!({ "output_index": at, "item": item }));
    }

    fn text(&mut self, at: usize, text: &str) {
        let fields = json!({ "item_id": self.id(at), "output_index": at, "content_index": 0 });
        if self.is_empty(at) {
            self.event("response.content_part.added", with(&fields, "part", content("")));
        }
        self.grow(at, "response.output_text.delta", &with(&fields, "logprobs", json!([])), text);
    }

    fn reasoning(&mut self, at: usize, text: &str) {
        let fields = json!({ "item_id": self.id(at), "output_index": at, "summary_index": 0 });
        if self.is_empty(at) {
            self.event("response.reasoning_summary_part.added", with(&fields, "part", summary("")));
        }
        self.grow(at, "response.reasoning_summary_text.delta", &fields, text);
    }

    fn is_empty(&self, at: usize) -> bool {
        self.items.get(at).is_none_or(|item| item.text.is_empty())
    }

    /// An event with more of an item's text.
    fn grow(&mut self, at: usize, name: &str, fields: &Value, text: &str) {
        if let Some(item) = self.items.get_mut(at) {
            item.text.push_str(text);
        }
        let start = self.position;
        self.position = start.saturating_add(text.len() as u64);
        // What the client has already: all bytes with numbers up to the one that it names.
        let known = self.after.map_or(0, |after| after.saturating_add(1).saturating_sub(start));
        let mut known = usize::try_from(known).unwrap_or(usize::MAX).min(text.len());
        while !text.is_char_boundary(known) {
            known += 1;
        }
        let Some(new) = text.get(known..).filter(|new| !new.is_empty()) else { return };
        let number = self.position - 1;
        self.out.push(event(name, number, with(fields, "delta", new.into())));
    }

    fn event(&mut self, name: &str, fields: Value) {
        let number = self.position;
        self.position = number.saturating_add(1);
        if self.after.is_none_or(|after| number > after) {
            self.out.push(event(name, number, fields));
        }
    }

    /// The last event: the client gets it whatever number it named.
    fn last(&mut self, name: &str, response: &Value) {
        let number = self.position.max(self.after.map_or(0, |after| after.saturating_add(1)));
        self.position = number.saturating_add(1);
        self.out.push(event(name, number, json!({ "response": response })));
    }

    /// Ends the items of text before another one begins. Those that wait for what is sealed stay open.
    fn close_texts(&mut self) {
        let waits = resource::wants_sealed(&self.echo);
        for at in 0..self.items.len() {
            let ends = match self.items.get(at).map(|item| &item.kind) {
                Some(Kind::Message) => true,
                Some(Kind::Reasoning { .. }) => !waits,
                Some(Kind::Call { .. }) | None => false,
            };
            if ends {
                self.close(at, "completed");
            }
        }
    }

    fn close(&mut self, at: usize, status: &'static str) {
        let Some(item) = self.items.get_mut(at).filter(|item| !item.is_done) else { return };
        item.is_done = true;
        let Item { kind, text, .. } = item.clone();
        let fields = json!({ "item_id": self.id(at), "output_index": at });
        match kind {
            Kind::Message => {
                let fields = with(&fields, "content_index", json!(0));
                let done = with(&with(&fields, "text", text.as_str().into()), "logprobs", json!([]));
                self.event("response.output_text.done", done);
                self.event("response.content_part.done", with(&fields, "part", content(&text)));
            }
            Kind::Reasoning { .. } if text.is_empty() => {}
            Kind::Reasoning { .. } => {
                let fields = with(&fields, "summary_index", json!(0));
                let done = with(&fields, "text", text.as_str().into());
                self.event("response.reasoning_summary_text.done", done);
                self.event("response.reasoning_summary_part.done", with(&fields, "part", summary(&text)));
            }
            Kind::Call { name, .. } => {
                let done = with(&with(&fields, "name", name.into()), "arguments", text.into());
                self.event("response.function_call_arguments.done", done);
            }
        }
        let item = self.item(at, status);
        self.event("response.output_item.done", json!({ "output_index": at, "item": item }));
    }

    /// Gives the items of reasoning what their provider wants back. Reasoning without a text belongs to the item before it, and reasoning at
    /// the beginning to the first item, which is there for that.
    fn seal(&mut self, answer: &Answer) {
        if !resource::wants_sealed(&self.echo) {
            return;
        }
        let places = self.places(|kind| matches!(kind, Kind::Reasoning { .. }));
        let mut used = 0;
        for (number, run) in runs(&answer.parts).into_iter().enumerate() {
            let is_shown = run.iter().any(|part| matches!(part, Part::Reasoning { text, .. } if !text.is_empty()));
            used += usize::from(number > 0 && is_shown);
            let item = places.get(used).and_then(|place| self.items.get_mut(*place));
            let Some(Item { kind: Kind::Reasoning { sealed }, .. }) = item else { continue };
            let is_wanted = |part: &&&Part| matches!(part, Part::Reasoning { opaque, .. } if !opaque.is_null());
            sealed.extend(run.iter().filter(is_wanted).map(|part| (*part).clone()));
        }
    }

    fn places(&self, is_kind: impl Fn(&Kind) -> bool) -> Vec<usize> {
        let found = self.items.iter().enumerate().filter(|(_, item)| is_kind(&item.kind));
        found.map(|(place, _)| place).collect()
    }

    fn response(&self, answer: &Answer) -> Value {
        let is_cut = resource::incomplete(answer).is_some();
        let output = self.output(if is_cut { "incomplete" } else { "completed" });
        Resource::answered(answer, output).write(&self.meta, &self.echo)
    }

    /// All items; the last one with its own status.
    fn output(&self, last_status: &str) -> Vec<Value> {
        let last = self.items.len().saturating_sub(1);
        let status = |at| if at == last { last_status } else { "completed" };
        (0..self.items.len()).map(|at| self.item(at, status(at))).collect()
    }

    /// The id of an item, made from that of the response.
    fn id(&self, at: usize) -> String {
        let prefix = match self.items.get(at).map(|item| &item.kind) {
            Some(Kind::Reasoning { .. }) => "rs",
            Some(Kind::Call { .. }) => "fc",
            Some(Kind::Message) | None => "msg",
        };
        let stem = self.meta.id.strip_prefix("resp_").unwrap_or(&self.meta.id);
        format!("{prefix}_{stem}_{at}")
    }

    fn item(&self, at: usize, status: &str) -> Value {
        let Some(item) = self.items.get(at) else { return Value::Null };
        let id = self.id(at);
        match &item.kind {
            Kind::Message => {
                let has_content = !item.text.is_empty();
                let content: Vec<Value> = has_content.then(|| content(&item.text)).into_iter().collect();
                json!({ "id": id, "type": "message", "status": status, "role": "assistant", "content": content })
            }
            Kind::Reasoning { sealed } => {
                let has_text = !item.text.is_empty();
                let summary: Vec<Value> = has_text.then(|| summary(&item.text)).into_iter().collect();
                let mut value = json!({ "id": id, "type": "reasoning", "summary": summary });
                if resource::wants_sealed(&self.echo) {
                    value["encrypted_content"] = seal(sealed);
                }
                value
            }
            Kind::Call { id: call, name, .. } => json!({
                "id": id, "type": "function_call", "status": status, "call_id": call, "name": name,
                "arguments": item.text,
            }),
        }
    }
}

/// The parts of reasoning that follow each other without anything shown between them. The first run is that at the beginning, which may
/// be empty.
fn runs(parts: &[Part]) -> Vec<Vec<&Part>> {
    let mut runs = vec![Vec::new()];
    let mut in_run = true;
    for part in parts {
        match part {
            Part::Reasoning { .. } => {
                if !std::mem::replace(&mut in_run, true) {
                    runs.push(Vec::new());
                }
                if let Some(run) = runs.last_mut() {
                    run.push(part);
                }
            }
            Part::Text { text } if text.is_empty() => {}
            _ => in_run = false,
        }
    }
    runs
}

/// Parts of reasoning in a text that clients send back and do not read.
fn seal(parts: &[Part]) -> Value {
    if parts.is_empty() {
        return Value::Null;
    }
    serde_json::to_vec(parts).map_or(Value::Null, |bytes| STANDARD.encode(bytes).into())
}

fn event(name: &str, number: u64, fields: Value) -> Value {
    let mut event = Map::from_iter([("type".to_owned(), name.into()), ("sequence_number".to_owned(), number.into())]);
    if let Value::Object(fields) = fields {
        event.extend(fields);
    }
    Value::Object(event)
}

fn with(fields: &Value, name: &str, value: Value) -> Value {
    let mut fields = fields.clone();
    fields[name] = value;
    fields
}

fn content(text: &str) -> Value {
    json!({ "type": "output_text", "text": text, "annotations": [], "logprobs": [] })
}

fn summary(text: &str) -> Value {
    json!({ "type": "summary_text", "text": text })
}
