//! Results of tools beside the calls that they answer: items may have them anywhere behind, providers want them at once.

use std::collections::BTreeMap;

use atlas_model::{Message, Part, Role, ToolCall, ToolResult};

use crate::WireError;
use crate::error::bounded;

/// A call of the messages.
struct Call {
    id: String,
    name: String,
    result: Option<Part>,
}

/// The messages with the results of each message's calls right behind it. Ids may come again in a later message, as some providers count
/// them in each answer.
///
/// # Errors
///
/// 400 if a call has no result, a result no call before it, or two calls without a result the same id.
pub(super) fn settle(messages: Vec<Message>) -> Result<Vec<Message>, WireError> {
    let mut calls = Calls::default();
    let mut kept: Vec<Message> = Vec::with_capacity(messages.len());
    for mut message in messages {
        let mut parts = Vec::with_capacity(message.parts.len());
        for part in message.parts {
            match part {
                Part::ToolResult(result) => calls.end(result)?,
                Part::ToolCall(call) => {
                    calls.begin(&call)?;
                    parts.push(Part::ToolCall(call));
                }
                part => parts.push(part),
            }
        }
        if !parts.is_empty() {
            message.parts = parts;
            kept.push(message);
        }
    }
    calls.put(kept)
}

/// The calls of all messages, in their order.
#[derive(Default)]
struct Calls {
    all: Vec<Call>,
    /// The last call with each id.
    latest: BTreeMap<String, usize>,
}

impl Calls {
    fn begin(&mut self, call: &ToolCall) -> Result<(), WireError> {
        let earlier = self.latest.insert(call.id.clone(), self.all.len());
        if earlier.and_then(|at| self.all.get(at)).is_some_and(|earlier| earlier.result.is_none()) {
            return Err(refused(format!("two function calls have the call_id {:?}", bounded(&call.id))));
        }
        self.all.push(Call { id: call.id.clone(), name: call.name.clone(), result: None });
        Ok(())
    }

    fn end(&mut self, mut result: ToolResult) -> Result<(), WireError> {
        let id = bounded(&result.call);
        let call = self.latest.get(&result.call).and_then(|at| self.all.get_mut(*at));
        let missing = || refused(format!("there is no function call with the call_id {id:?} before its output"));
        let call = call.ok_or_else(missing)?;
        if call.result.is_some() {
            return Err(refused(format!("the function call {id:?} has two outputs")));
        }
        result.name.clone_from(&call.name);
        call.result = Some(Part::ToolResult(result));
        Ok(())
    }

    /// The messages with the results.
    fn put(self, kept: Vec<Message>) -> Result<Vec<Message>, WireError> {
        let mut calls = self.all.into_iter();
        let mut settled = Vec::with_capacity(kept.len());
        for message in kept {
            let count = message.parts.iter().filter(|part| matches!(part, Part::ToolCall(_))).count();
            let mut results = Vec::with_capacity(count);
            for call in calls.by_ref().take(count) {
                let missing = || refused(format!("there is no output for the function call {:?}", bounded(&call.id)));
                results.push(call.result.ok_or_else(missing)?);
            }
            settled.push(message);
            if !results.is_empty() {
                settled.push(Message { role: Role::User, parts: results });
            }
        }
        Ok(settled)
    }
}

fn refused(text: String) -> WireError {
    WireError::invalid(text).at("input")
}
