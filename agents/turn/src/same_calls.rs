//! The guard of single calls: a call that was made several times in a row is not made again (compatibility §32).

use std::collections::VecDeque;

use atlas_model::ToolCall;
use serde_json::{Value, json};

/// Calls that an alert shows.
const SHOWN_MAX: usize = 10;

/// Remembers the last calls.
#[derive(Debug, Clone)]
pub(crate) struct SameCalls {
    /// Equal calls in a row that are made. Zero disables the guard.
    repeats: usize,
    recent: VecDeque<(String, Value)>,
}

impl SameCalls {
    pub(crate) fn new(repeats: u32) -> Self {
        Self { repeats: usize::try_from(repeats).unwrap_or(usize::MAX), recent: VecDeque::new() }
    }

    pub(crate) fn set_repeats(&mut self, repeats: u32) {
        self.repeats = Self::new(repeats).repeats;
    }

    /// The result of a call that is not made, because the last calls were the same.
    pub(crate) fn alert(&self, call: &ToolCall) -> Option<Value> {
        let same = |made: &&(String, Value)| made.0 == call.name && made.1 == call.arguments;
        let repeats = self.recent.iter().rev().take_while(same).count();
        (self.repeats > 0 && repeats >= self.repeats).then(|| {
            let shown = self.recent.iter().skip(self.recent.len().saturating_sub(SHOWN_MAX));
            let history: Vec<Value> = shown.map(|(name, parameters)| json!({"name": name, "parameters": parameters})).collect();
            json!({"tool_call_loop_alert": {"error": {
                "message": format!("This call was made {repeats} times in a row with the same arguments. It was not made again."),
                "code": 400,
                "param": "Use the result that you have and go on, call with other arguments, call another tool, or ask for help.",
                "call_history": history,
            }}})
        })
    }

    /// Remembers the calls of an answer, also those that were not made.
    pub(crate) fn record(&mut self, calls: impl Iterator<Item = (String, Value)>) {
        let most = self.repeats.max(SHOWN_MAX);
        for call in calls {
            if self.repeats > 0 {
                self.recent.push_back(call);
            }
            if self.recent.len() > most {
                self.recent.pop_front();
            }
        }
    }
}
