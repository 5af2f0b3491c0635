//! Builds an answer from its pieces, within bounds.

use std::hash::{DefaultHasher, Hash, Hasher};

use atlas_model::{CallError, Delta, Part, ToolCall};
use serde_json::{Map, Value};

use crate::bounds::{ANSWER_BYTES_MAX, CALLS_MAX, PARTS_MAX};
use crate::{Event, failure, json};

/// What a value takes in memory at least.
const VALUE_BYTES: usize = 100;

/// The parts of an answer under construction, in the order in which they began.
///
/// A text or reasoning part grows until another part begins or [`Assembly::close`] is called; tool calls grow by the number
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
    Call(Call),
}

#[derive(Debug)]
struct Call {
    /// The provider's id; another one if it has none or the id is taken.
    id: String,
    /// The provider's id as it came.
    given: String,
    /// Empty as long as the provider has not said it.
    name: String,
    arguments: Arguments,
    /// Of the parsed arguments: tells most calls apart without a look at them.
    hash: u64,
    opaque: Value,
}

#[derive(Debug, PartialEq)]
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

    /// A call begins; the result is its number. An id that is empty or taken is replaced. A name that is empty follows with
    /// [`Assembly::name_call`].
    pub fn begin_call(&mut self, id: &str, name: &str, out: &mut Vec<Event>) -> Result<usize, CallError> {
        let index = self.calls.len();
        if index >= CALLS_MAX {
            return Err(failure::answer(format!("the answer calls more than {CALLS_MAX} tools")));
        }
        self.charge(id.len())?;
        let taken = |id: &str| self.parts.iter().any(|part| matches!(part, Building::Call(call) if call.id == id));
        let own = if id.is_empty() || taken(id) { format!("call_{}_{index}", self.round) } else { id.to_owned() };
        self.calls.push(self.parts.len());
        let arguments = Arguments::Text(String::new());
        let (given, name_later) = (id.to_owned(), String::new());
        let call = Call { id: own, given, name: name_later, arguments, hash: 0, opaque: Value::Null };
        self.add(Building::Call(call))?;
        self.name_call(index, name, out)?;
        Ok(index)
    }

    /// The name of a call that began without one. What arrived of its arguments is shown with it.
    pub fn name_call(&mut self, index: usize, name: &str, out: &mut Vec<Event>) -> Result<(), CallError> {
        self.charge(name.len())?;
        let Some(call) = self.call(index).filter(|call| call.name.is_empty() && !name.is_empty()) else {
            return Ok(());
        };
        name.clone_into(&mut call.name);
        out.push(Event::Delta(Delta::Call { index, id: call.id.clone(), name: name.to_owned() }));
        let text = match &call.arguments {
            Arguments::Text(text) => text.clone(),
            Arguments::Value(value) => value.to_string(),
        };
        if !text.is_empty() {
            out.push(Event::Delta(Delta::Arguments { index, text }));
        }
        Ok(())
    }

    /// More of a call's arguments, as JSON text.
    pub fn arguments(&mut self, index: usize, piece: &str, out: &mut Vec<Event>) -> Result<(), CallError> {
        if piece.is_empty() {
            return Ok(());
        }
        self.charge(piece.len())?;
        match self.call(index) {
            Some(Call { arguments: Arguments::Text(text), name, .. }) => {
                text.push_str(piece);
                if !name.is_empty() {
                    out.push(Event::Delta(Delta::Arguments { index, text: piece.to_owned() }));
                }
                Ok(())
            }
            _ => Err(failure::answer("arguments belong to no call")),
        }
    }

    /// The arguments of a call, from a provider that sends them parsed.
    pub fn parsed_arguments(&mut self, index: usize, value: Value, out: &mut Vec<Event>) -> Result<(), CallError> {
        let text = value.to_string();
        self.charge(text.len())?;
        let call = self.call(index).ok_or_else(|| failure::answer("arguments belong to no call"))?;
        call.arguments = Arguments::Value(value);
        if !call.name.is_empty() {
            out.push(Event::Delta(Delta::Arguments { index, text }));
        }
        Ok(())
    }

    /// The arguments of a call so far, if they are text.
    pub fn arguments_so_far(&self, index: usize) -> Option<&str> {
        match self.parts.get(*self.calls.get(index)?) {
            Some(Building::Call(Call { arguments: Arguments::Text(text), .. })) => Some(text),
            _ => None,
        }
    }

    /// What the provider wants back with the result of a call.
    pub fn call_opaque(&mut self, index: usize, value: Value) -> Result<(), CallError> {
        self.charge(value.to_string().len())?;
        self.call(index).ok_or_else(|| failure::answer("a signature belongs to no call"))?.opaque = value;
        Ok(())
    }

    /// The id that a call has in the answer.
    pub fn call_id(&self, index: usize) -> Option<&str> {
        match self.parts.get(*self.calls.get(index)?) {
            Some(Building::Call(call)) => Some(&call.id),
            _ => None,
        }
    }

    /// The name of a call so far.
    pub fn call_name(&self, index: usize) -> Option<&str> {
        match self.parts.get(*self.calls.get(index)?) {
            Some(Building::Call(call)) => Some(&call.name),
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

    /// The parts, with arguments parsed. Missing arguments are `{}`, and text that is no JSON stays a string. A call that the
    /// server sent twice is one call.
    pub fn finish(&mut self) -> Result<Vec<Part>, CallError> {
        self.calls.clear();
        let mut parts: Vec<Building> = Vec::with_capacity(self.parts.len());
        for part in std::mem::take(&mut self.parts) {
            match part {
                Building::Call(mut call) => {
                    call.parse();
                    let mut calls = parts.iter_mut().filter_map(|part| match part {
                        Building::Call(call) => Some(call),
                        _ => None,
                    });
                    let twin = match call.name.is_empty() {
                        true => calls.next_back().filter(|before| call.continues(before)),
                        false => calls.find(|before| call.repeats(before)),
                    };
                    match twin {
                        Some(twin) => twin.absorb(call),
                        None if call.name.is_empty() => {
                            return Err(failure::answer("the answer calls a tool without a name"));
                        }
                        None => parts.push(Building::Call(call)),
                    }
                }
                part => parts.push(part),
            }
        }
        Ok(parts.into_iter().map(Building::finish).collect())
    }

    fn open(&mut self) -> Option<&mut Building> {
        if self.closed { None } else { self.parts.last_mut() }
    }

    fn call(&mut self, index: usize) -> Option<&mut Call> {
        match self.parts.get_mut(*self.calls.get(index)?)? {
            Building::Call(call) => Some(call),
            _ => None,
        }
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
            Self::Call(Call { id, name, arguments, opaque, .. }) => {
                Part::ToolCall(ToolCall { id, name, arguments: arguments.finish(), opaque })
            }
        }
    }
}

impl Call {
    /// Parses the arguments, of which nothing is to come. It is done once, since each call is compared with those before it.
    fn parse(&mut self) {
        let text = std::mem::replace(&mut self.arguments, Arguments::Value(Value::Null));
        let value = text.finish();
        let mut hasher = DefaultHasher::new();
        value.hash(&mut hasher);
        self.hash = hasher.finish();
        self.arguments = Arguments::Value(value);
    }

    /// Whether this is `before` once more: servers that translate between protocols send a call under two numbers, once
    /// complete and once without its arguments, or twice alike. Run twice, it would do its work twice.
    fn repeats(&self, before: &Self) -> bool {
        !self.given.is_empty()
            && self.given == before.given
            && self.name == before.name
            && (self.arguments.is_nothing()
                || before.arguments.is_nothing()
                || self.hash == before.hash && self.arguments == before.arguments)
    }

    /// Whether this nameless call holds the arguments of `before`, under another number.
    fn continues(&self, before: &Self) -> bool {
        let is_same = [&self.given, &before.given].iter().any(|id| id.is_empty()) || self.given == before.given;
        is_same && (self.arguments.is_nothing() || before.arguments.is_nothing())
    }

    /// Takes what the other half of the call holds and this one lacks.
    fn absorb(&mut self, other: Self) {
        if self.arguments.is_nothing() {
            self.arguments = other.arguments;
            self.hash = other.hash;
        }
        if self.opaque.is_null() {
            self.opaque = other.opaque;
        }
    }
}

impl Arguments {
    /// Whether there are none: servers write them as an empty text or object.
    fn is_nothing(&self) -> bool {
        match self {
            Self::Text(text) => text.trim().is_empty(),
            Self::Value(Value::Null) => true,
            Self::Value(Value::Object(members)) => members.is_empty(),
            Self::Value(_) => false,
        }
    }

    /// The parsed arguments.
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
        let parts = serde_json::to_value(assembly.finish().expect("whole")).expect("JSON");
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
        for (id, pieces) in [("", &[][..]), ("x", &["{\"b\": 1}"]), ("x", &["{\"a\""]), ("y", &[" \n"])] {
            call(&mut assembly, id, "f", pieces);
        }
        let calls = assembly.finish().expect("whole").into_iter().map(|part| match part {
            Part::ToolCall(call) => (call.id, call.arguments),
            part => panic!("{part:?} is no call"),
        });
        let expected =
            [("call_2_0", json!({})), ("x", json!({"b": 1})), ("call_2_2", json!("{\"a\"")), ("y", json!({}))];
        assert_eq!(calls.collect::<Vec<_>>(), expected.map(|(id, arguments)| (id.to_owned(), arguments)));
    }

    /// The calls of an answer, from their ids, names and arguments.
    fn calls(pieces: &[(&str, &str, &str)]) -> Result<Vec<(String, Value)>, CallError> {
        let mut assembly = Assembly::new(1);
        for (id, name, arguments) in pieces {
            call(&mut assembly, id, name, &[*arguments]);
        }
        let calls = assembly.finish()?.into_iter().map(|part| match part {
            Part::ToolCall(call) => (format!("{} {}", call.id, call.name), call.arguments),
            part => panic!("{part:?} is no call"),
        });
        Ok(calls.collect())
    }

    #[test]
    fn a_call_under_two_numbers_is_one_call() {
        let one = Ok(vec![("a f".to_owned(), json!({"x": 1}))]);
        let full = "{\"x\":1}";
        for (first, second) in [("{}", full), ("", full), (full, "{}"), (full, ""), (full, "{ \"x\": 1 }")] {
            assert_eq!(calls(&[("a", "f", first), ("a", "f", second)]), one, "{first} {second}");
        }
        assert_eq!(calls(&[("a", "f", ""), ("", "", full)]), one);
        assert_eq!(calls(&[("a", "f", ""), ("a", "", full)]), one);
        assert_eq!(calls(&[("a", "f", full), ("", "", "")]), one);
        let two =
            |second: &str, arguments| Ok(vec![("a f".to_owned(), json!({"x": 1})), (second.to_owned(), arguments)]);
        assert_eq!(calls(&[("a", "f", full), ("a", "f", "{\"x\":2}")]), two("call_1_1 f", json!({"x": 2})));
        assert_eq!(calls(&[("a", "f", full), ("a", "g", full)]), two("call_1_1 g", json!({"x": 1})));
        assert_eq!(calls(&[("a", "f", full), ("b", "f", full)]), two("b f", json!({"x": 1})));
        for nameless in [&[("", "", "{}")][..], &[("a", "f", full), ("", "", full)], &[("a", "f", ""), ("b", "", full)]]
        {
            let error = calls(nameless).expect_err("refused");
            assert_eq!(error.message, "the answer calls a tool without a name");
        }
    }

    #[test]
    fn many_large_calls_of_one_id_are_told_apart() {
        let long = "x".repeat(60_000);
        let arguments: Vec<String> = (0..CALLS_MAX).map(|n| format!("[\"{long}\", {n}]")).collect();
        let pieces: Vec<_> = arguments.iter().map(|arguments| ("a", "f", arguments.as_str())).collect();
        let last = |calls: &[(String, Value)]| calls.last().map(|(_, arguments)| arguments[1].clone());
        let all = calls(&pieces).expect("fits");
        assert_eq!((all.len(), last(&all)), (CALLS_MAX, Some(json!(CALLS_MAX - 1))));
        let twice: Vec<_> =
            pieces.iter().take(CALLS_MAX / 2).chain(pieces.iter().take(CALLS_MAX / 2)).copied().collect();
        assert_eq!(calls(&twice).expect("fits").len(), CALLS_MAX / 2);
    }

    #[test]
    fn a_name_may_follow_its_id() {
        let (mut assembly, mut out) = (Assembly::new(1), Vec::new());
        let index = assembly.begin_call("a", "", &mut out).expect("fits");
        assembly.arguments(index, "{\"x\":", &mut out).expect("fits");
        assert_eq!(out, []);
        assembly.name_call(index, "f", &mut out).expect("fits");
        assembly.name_call(index, "other", &mut out).expect("fits");
        assembly.arguments(index, "1}", &mut out).expect("fits");
        let shown = |text: &str| Event::Delta(Delta::Arguments { index, text: text.to_owned() });
        let begun = Event::Delta(Delta::Call { index, id: "a".to_owned(), name: "f".to_owned() });
        assert_eq!(out, [begun, shown("{\"x\":"), shown("1}")]);
    }

    #[test]
    fn answers_are_bounded() {
        let mut assembly = Assembly::new(0);
        let out = &mut Vec::new();
        for _ in 0..CALLS_MAX {
            assembly.begin_call("", "f", out).expect("fits");
        }
        assert!(assembly.begin_call("", "f", out).is_err());
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
