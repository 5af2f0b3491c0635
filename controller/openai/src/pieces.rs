//! What was sent of an answer, and what is left of it. All streams stand on it, so that their pieces are always together the answer.
//!
//! Arguments are sent without the white space between their tokens, as the whole answer has them.

use atlas_model::{Answer, Delta, Part, ToolCall};
use serde_json::Value;

use crate::WireError;

/// What was sent of one answer.
#[derive(Debug, Clone, Default)]
pub(crate) struct Pieces {
    text: String,
    reasoning: String,
    calls: Vec<Call>,
    /// Pieces were missed: those that follow are not sent.
    skipping: bool,
}

#[derive(Debug, Clone)]
struct Call {
    id: String,
    name: String,
    arguments: String,
    squeezer: Squeezer,
}

impl Pieces {
    /// Whether something was sent.
    pub(crate) fn has_begun(&self) -> bool {
        !self.text.is_empty() || !self.reasoning.is_empty() || !self.calls.is_empty()
    }

    /// Sends no more pieces; [`Pieces::rest`] has what they say.
    pub(crate) fn skip(&mut self) {
        self.skipping = true;
    }

    /// A piece as it is to be sent. None if there is nothing to send.
    pub(crate) fn take(&mut self, delta: &Delta) -> Option<Delta> {
        if self.skipping {
            return None;
        }
        match delta {
            Delta::Text(text) if !text.is_empty() => self.text.push_str(text),
            Delta::Reasoning(text) if !text.is_empty() => self.reasoning.push_str(text),
            Delta::Text(_) | Delta::Reasoning(_) => return None,
            Delta::Call { index, id, name } => {
                if *index != self.calls.len() {
                    // One that is known is repeated. Otherwise the beginning of another call was missed.
                    self.skipping |= *index > self.calls.len();
                    return None;
                }
                let (id, name) = (id.clone(), name.clone());
                self.calls.push(Call { id, name, arguments: String::new(), squeezer: Squeezer::default() });
            }
            Delta::Arguments { index, text } => {
                let Some(call) = self.calls.get_mut(*index) else {
                    self.skipping = true;
                    return None;
                };
                let text = call.squeezer.squeeze(text);
                if text.is_empty() {
                    return None;
                }
                call.arguments.push_str(&text);
                return Some(Delta::Arguments { index: *index, text });
            }
        }
        Some(delta.clone())
    }

    /// What is left of the answer, in its order, which counts as sent. An error if what was sent is not its beginning.
    pub(crate) fn rest(&mut self, answer: &Answer) -> Result<Vec<Delta>, WireError> {
        let other = |what: &str| {
            let text = format!(
                "the answer began again after a part of it was sent, and {what} is another one; send the request again"
            );
            WireError::provider(text).with_code("answer_restarted")
        };
        let text = answer.text();
        if !text.starts_with(&self.text) {
            return Err(other("its text"));
        }
        if self.calls.len() > answer.tool_calls().count() {
            return Err(other("one of its tool calls"));
        }
        let reasoning = reasoning(answer);
        // Some providers join what they showed with other marks. Reasoning that was shown is not shown again.
        let reasoning_sent =
            if reasoning.starts_with(&self.reasoning) { self.reasoning.len() } else { reasoning.len() };
        let (mut text_left, mut reasoning_left) = (self.text.len(), reasoning_sent);
        let mut rest = Vec::new();
        let mut index = 0;
        for part in &answer.parts {
            match part {
                Part::Text { text } => rest.extend(beyond(text, &mut text_left).map(Delta::Text)),
                Part::Reasoning { text, .. } => rest.extend(beyond(text, &mut reasoning_left).map(Delta::Reasoning)),
                Part::ToolCall(call) => {
                    let left = self.rest_of_call(index, call).ok_or_else(|| other("one of its tool calls"))?;
                    if index >= self.calls.len() {
                        rest.push(Delta::Call { index, id: call.id.clone(), name: call.name.clone() });
                    }
                    if !left.is_empty() {
                        rest.push(Delta::Arguments { index, text: left });
                    }
                    index += 1;
                }
                Part::Image(_) | Part::ToolResult(_) => {}
            }
        }
        self.skipping = true;
        Ok(rest)
    }

    /// What is left of the arguments of a call. None if another call was sent.
    fn rest_of_call(&self, index: usize, call: &ToolCall) -> Option<String> {
        let Some(sent) = self.calls.get(index) else { return Some(arguments(&call.arguments)) };
        if sent.id != call.id || sent.name != call.name {
            return None;
        }
        let forms = [arguments(&call.arguments), call.arguments.to_string()];
        if let Some(rest) = forms.iter().find_map(|form| form.strip_prefix(sent.arguments.as_str())) {
            return Some(rest.to_owned());
        }
        // The same value in another notation, such as `\u0041` for a letter.
        let is_same = serde_json::from_str::<Value>(&sent.arguments).is_ok_and(|value| value == call.arguments);
        is_same.then(String::new)
    }
}

/// What a text has beyond the bytes that were sent, which are counted down. None if that is nothing.
fn beyond(text: &str, sent: &mut usize) -> Option<String> {
    let here = text.len().min(*sent);
    *sent -= here;
    text.get(here..).filter(|rest| !rest.is_empty()).map(str::to_owned)
}

/// The reasoning of an answer, joined without a separator.
pub(crate) fn reasoning(answer: &Answer) -> String {
    let text = |part: &Part| if let Part::Reasoning { text, .. } = part { Some(text.clone()) } else { None };
    answer.parts.iter().filter_map(text).collect()
}

/// The arguments of a call as JSON text. Arguments that are no JSON are what the model wrote.
pub(crate) fn arguments(value: &Value) -> String {
    match value {
        Value::String(text) => Squeezer::default().squeeze(text),
        value => value.to_string(),
    }
}

/// Leaves out the white space between the tokens of a JSON text that arrives in pieces.
#[derive(Debug, Clone, Copy, Default)]
struct Squeezer {
    in_string: bool,
    escaped: bool,
}

impl Squeezer {
    fn squeeze(&mut self, piece: &str) -> String {
        let keep = |letter: &char| {
            let is_kept = self.in_string || !matches!(letter, ' ' | '\t' | '\n' | '\r');
            match letter {
                _ if self.escaped => self.escaped = false,
                '\\' if self.in_string => self.escaped = true,
                '"' => self.in_string = !self.in_string,
                _ => {}
            }
            is_kept
        };
        piece.chars().filter(keep).collect()
    }
}
