//! Builds an answer from its pieces, within bounds.

use atlas_model::{CallError, Delta, Part, ToolCall};
use serde_json::{Map, Value};

use crate::bounds::{ANSWER_BYTES_MAX, CALLS_MAX, PARTS_MAX};
use crate::{Event, failure, json};

/// What a value takes in memory at least.
const VALUE_BYTES: usize = 100;

/// The parts of an answer under construction, in the order in which they began.
///
/// A text or reasoning part grows until another part begins or [`Assembly::close`] is called; calls of tools grow by the number
/// that [`Assembly::begin_call`] gave, in any order.
#[derive(Debug)]
pub struct Assembly {
    /// Distinguishes the made-up ids of this answer from those of earlier answers of the conversation.
    round: usize,
    parts: Vec<Building>,
    /// Places of the calls in `parts`.
    calls: Vec<usize>,
    /// The last part takes no more text.
    closed: bool,
    bytes: usize,
}

#[derive(Debug)]
enum Building {
    Text(String),
    Reasoning { text: String, opaque: Value },
    Call { id: String, name: String, arguments: Arguments, opaque: Value },
}

#[derive(Debug)]
enum Arguments {
    Text(String),
    Value(Value),
}

impl Assembly {
    /// An empty answer. `messages` is the number of messages of the request, which grows with each round.
    pub fn new(messages: usize) -> Self {
        Self { round: messages, parts: Vec::new(), calls: Vec::new(), closed: false, bytes: 0 }
    }

    /// More text.
    pub fn text(&mut self, piece: &str, out: &mut Vec<Event>) -> Result<(), CallError> {
        if piece.is_empty() {
            return Ok(());
        }
        self.charge(piece.len())?;
        match self.open() {
            Some(Building::Text(text)) => text.push_str(piece),
            _ => self.add(Building::Text(piece.to_owned()))?,
        }
        out.push(Event::Delta(Delta::Text(piece.to_owned())));
        Ok(())
    }

    /// More reasoning.
    pub fn reasoning(&mut self, piece: &str, out: &mut Vec<Event>) -> Result<(), CallError> {
        if piece.is_empty() {
            return Ok(());
        }
        self.charge(piece.len())?;
        match self.open() {
            Some(Building::Reasoning { text, .. }) => text.push_str(piece),
            _ => self.add(Building::Reasoning { text: piece.to_owned(), opaque: Value::Null })?,
        }
        out.push(Event::Delta(Delta::Reasoning(piece.to_owned())));
        Ok(())
    }

    /// What the provider wants back with the open reasoning part. Begins one without text if none is open.
    pub fn reasoning_opaque(&mut self, value: Value) -> Result<(), CallError> {
        self.charge(value.to_string().len())?;
        match self.open() {
            Some(Building::Reasoning { opaque, .. }) => *opaque = value,
            _ => self.add(Building::Reasoning { text: String::new(), opaque: value })?,
        }
        Ok(())
    }

    /// What the provider wants back with the reasoning of the whole answer: goes to the first reasoning part, which is made if
    /// there is none. Its size was counted with [`Assembly::reserve`].
    pub fn first_reasoning_opaque(&mut self, value: Value) -> Result<(), CallError> {
        let first = self.parts.iter_mut().find_map(|part| match part {
            Building::Reasoning { opaque, .. } => Some(opaque),
            _ => None,
        });
        match first {
            Some(opaque) => *opaque = value,
            None => self.add(Building::Reasoning { text: String::new(), opaque: value })?,
        }
        Ok(())
    }

    /// Counts values that are kept outside as part of the answer.
    pub fn reserve(&mut self, values: &[Value]) -> Result<(), CallError> {
        // In memory even the shortest value has a size.
        values.iter().try_for_each(|value| self.charge(value.to_string().len().max(VALUE_BYTES)))
    }

    /// The open text or reasoning part is complete.
    pub fn close(&mut self) {
        self.closed = true;
    }

    /// A call begins; the result is its number. An id that is empty or taken is replaced.
    pub fn begin_call(&mut self, id: &str, name: &str, out: &mut Vec<Event>) -> Result<usize, CallError> {
        let index = self.calls.len();
        if index >= CALLS_MAX {
            return Err(failure::answer(format!("the answer calls more than {CALLS_MAX} tools")));
        }
        if name.is_empty() {
            return Err(failure::answer("the answer calls a tool without a name"));
        }
        self.charge(id.len().saturating_add(name.len()))?;
        let taken =
            |id: &str| self.parts.iter().any(|part| matches!(part, Building::Call { id: other, .. } if other == id));
        let id = if id.is_empty() || taken(id) { format!("call_{}_{index}", self.round) } else { id.to_owned() };
        out.push(Event::Delta(Delta::Call { index, id: id.clone(), name: name.to_owned() }));
        self.calls.push(self.parts.len());
        let arguments = Arguments::Text(String::new());
        self.add(Building::Call { id, name: name.to_owned(), arguments, opaque: Value::Null })?;
        Ok(index)
    }

    /// More of a call's arguments, as JSON text.
    pub fn arguments(&mut self, index: usize, piece: &str, out: &mut Vec<Event>) -> Result<(), CallError> {
        if piece.is_empty() {
            return Ok(());
        }
        self.charge(piece.len())?;
        match self.call(index) {
            Some(Building::Call { arguments: Arguments::Text(text), .. }) => text.push_str(piece),
            _ => return Err(failure::answer("arguments belong to no call")),
        }
        out.push(Event::Delta(Delta::Arguments { index, text: piece.to_owned() }));
        Ok(())
    }

    /// The arguments of a call, from a provider that sends them parsed.
    pub fn parsed_arguments(&mut self, index: usize, value: Value, out: &mut Vec<Event>) -> Result<(), CallError> {
        let text = value.to_string();
        self.charge(text.len())?;
        match self.call(index) {
            Some(Building::Call { arguments, .. }) => *arguments = Arguments::Value(value),
            _ => return Err(failure::answer("arguments belong to no call")),
        }
        out.push(Event::Delta(Delta::Arguments { index, text }));
        Ok(())
    }

    /// The arguments of a call so far, if they are text.
    pub fn arguments_so_far(&self, index: usize) -> Option<&str> {
        match self.parts.get(*self.calls.get(index)?) {
            Some(Building::Call { arguments: Arguments::Text(text), .. }) => Some(text),
            _ => None,
        }
    }

    /// What the provider wants back with the result of a call.
    pub fn call_opaque(&mut self, index: usize, value: Value) -> Result<(), CallError> {
        self.charge(value.to_string().len())?;
        match self.call(index) {
            Some(Building::Call { opaque, .. }) => *opaque = value,
            _ => return Err(failure::answer("a signature belongs to no call")),
        }
        Ok(())
    }

    /// The id that a call has in the answer.
    pub fn call_id(&self, index: usize) -> Option<&str> {
        match self.parts.get(*self.calls.get(index)?) {
            Some(Building::Call { id, .. }) => Some(id),
            _ => None,
        }
    }

    /// The number of calls.
    pub fn calls(&self) -> usize {
        self.calls.len()
    }

    /// Whether nothing has arrived.
    pub fn is_empty(&self) -> bool {
        self.parts.is_empty()
    }

    /// The parts, with arguments parsed. Missing arguments are `{}`, and text that is no JSON stays a string.
    pub fn finish(&mut self) -> Vec<Part> {
        self.calls.clear();
        std::mem::take(&mut self.parts).into_iter().map(Building::finish).collect()
    }

    fn open(&mut self) -> Option<&mut Building> {
        if self.closed { None } else { self.parts.last_mut() }
    }

    fn call(&mut self, index: usize) -> Option<&mut Building> {
        self.parts.get_mut(*self.calls.get(index)?)
    }

    fn add(&mut self, part: Building) -> Result<(), CallError> {
        if self.parts.len() >= PARTS_MAX {
            return Err(failure::answer(format!("the answer has more than {PARTS_MAX} parts")));
        }
        self.parts.push(part);
        self.closed = false;
        Ok(())
    }

    fn charge(&mut self, bytes: usize) -> Result<(), CallError> {
        self.bytes = self.bytes.saturating_add(bytes);
        if self.bytes > ANSWER_BYTES_MAX {
            return Err(failure::answer(format!("the answer is larger than {ANSWER_BYTES_MAX} bytes")));
        }
        Ok(())
    }
}

impl Building {
    fn finish(self) -> Part {
        match self {
            Self::Text(text) => Part::Text { text },
            Self::Reasoning { text, opaque } => Part::Reasoning { text, opaque },
            Self::Call { id, name, arguments, opaque } => {
                Part::ToolCall(ToolCall { id, name, arguments: arguments.finish(), opaque })
            }
        }
    }
}

impl Arguments {
    fn finish(self) -> Value {
        let value = match self {
            Self::Value(value) => value,
            Self::Text(text) if text.trim().is_empty() => Value::Null,
            Self::Text(text) => json::parse(text.as_bytes()).unwrap_or(Value::String(text)),
        };
        if value.is_null() { Value::Object(Map::new()) } else { value }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn call(assembly: &mut Assembly, id: &str, name: &str, pieces: &[&str]) {
        let index = assembly.begin_call(id, name, &mut Vec::new()).expect("a call");
        for piece in pieces {
            assembly.arguments(index, piece, &mut Vec::new()).expect("arguments");
        }
    }

    #[test]
    fn parts_keep_their_order() {
        let mut assembly = Assembly::new(3);
        let mut out = Vec::new();
        for piece in ["I ", "think"] {
            assembly.reasoning(piece, &mut out).expect("fits");
        }
        assembly.reasoning_opaque(json!("signature")).expect("fits");
        assembly.text("He", &mut out).expect("fits");
        assembly.text("llo", &mut out).expect("fits");
        call(&mut assembly, "a", "f", &["{\"x\"", ":1}"]);
        assembly.text("!", &mut out).expect("fits");
        assembly.close();
        assembly.text("?", &mut out).expect("fits");
        let parts = serde_json::to_value(assembly.finish()).expect("JSON");
        assert_eq!(
            parts,
            json!([
                {"type": "reasoning", "text": "I think", "opaque": "signature"},
                {"type": "text", "text": "Hello"},
                {"type": "tool_call", "id": "a", "name": "f", "arguments": {"x": 1}},
                {"type": "text", "text": "!"},
                {"type": "text", "text": "?"},
            ])
        );
        assert_eq!(out.len(), 6);
    }

    #[test]
    fn arguments_are_repaired_or_kept() {
        let mut assembly = Assembly::new(2);
        for (id, pieces) in [("", &[][..]), ("x", &["null"]), ("x", &["{\"a\""]), ("y", &[" \n"])] {
            call(&mut assembly, id, "f", pieces);
        }
        let calls = assembly.finish().into_iter().map(|part| match part {
            Part::ToolCall(call) => (call.id, call.arguments),
            part => panic!("{part:?} is no call"),
        });
        let expected = [("call_2_0", json!({})), ("x", json!({})), ("call_2_2", json!("{\"a\"")), ("y", json!({}))];
        assert_eq!(calls.collect::<Vec<_>>(), expected.map(|(id, arguments)| (id.to_owned(), arguments)));
    }

    #[test]
    fn answers_are_bounded() {
        let mut assembly = Assembly::new(0);
        let out = &mut Vec::new();
        for _ in 0..CALLS_MAX {
            assembly.begin_call("", "f", out).expect("fits");
        }
        assert!(assembly.begin_call("", "f", out).is_err());
        assert!(assembly.begin_call("", "", out).is_err());
        assert!(assembly.arguments(999, "x", out).is_err());
        let mebibyte = "x".repeat(1 << 20);
        let mut assembly = Assembly::new(0);
        assert_eq!((0..20).take_while(|_| assembly.text(&mebibyte, out).is_ok()).count(), 8);
        let mut assembly = Assembly::new(0);
        let fits = |_: &usize| {
            assembly.close();
            assembly.text("x", out).is_ok()
        };
        assert_eq!((0..2000).take_while(fits).count(), PARTS_MAX);
    }
}
