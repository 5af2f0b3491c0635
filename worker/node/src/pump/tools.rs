//! Tools of the platform that attempts of this worker call: sent to the leader until it answers, across sessions.

use std::collections::BTreeMap;

use atlas_types::{FencingToken, Spawner, ToolEnd, ToolRequest, is_hidden, level};
use atlas_wire::limits::TOOL_BYTES_MAX;
use atlas_wire::session::ToLeader;

use super::Pump;
use crate::attempt::{Asker, ToolCall};
use crate::mailbox::Answer;

/// The most calls that one attempt may wait for at once.
const CALLS_MAX: usize = 256;

/// All unanswered calls by the number that is sent to the leader.
#[derive(Default)]
pub(crate) struct Tools {
    last: u64,
    open: BTreeMap<u64, Open>,
}

/// One unanswered call.
struct Open {
    asker: Asker,
    request: ToolRequest,
}

impl Pump {
    /// Handles a call of an attempt.
    pub(super) fn on_tool(&mut self, token: FencingToken, call: ToolCall) {
        let Some(job) = self.attempts.get(&token).map(|place| place.job) else { return };
        let ToolCall { tool, arguments, key, again, asker } = call;
        let mine = self.tools.open.values().filter(|open| open.request.caller.token == token).count();
        let bytes = arguments.len();
        let is_program = matches!(asker, Asker::Program { .. });
        let refused = if is_program && is_hidden(&tool) {
            Some(format!("Unknown tool: {tool}"))
        } else if self.welcomed && self.leader_level < level::TOOLS {
            Some("E4007: not all controllers can call tools yet".to_owned())
        } else if mine >= CALLS_MAX {
            Some(format!("a job can wait for at most {CALLS_MAX} tools at once"))
        } else if bytes > TOOL_BYTES_MAX {
            Some(format!("the arguments have {bytes} bytes, more than {TOOL_BYTES_MAX}"))
        } else {
            None
        };
        if let Some(why) = refused {
            return self.answer_call(asker, Answer::Refused(why));
        }
        self.tools.last += 1;
        let number = self.tools.last;
        let request = ToolRequest { caller: Spawner { job, token }, tool, arguments, key, again };
        self.tools.open.insert(number, Open { asker, request });
        self.send_call(number);
    }

    /// Sends all unanswered calls again.
    pub(super) fn resend_calls(&mut self) {
        for number in self.tools.open.keys().copied().collect::<Vec<_>>() {
            self.send_call(number);
        }
    }

    fn send_call(&mut self, number: u64) {
        let Some(open) = self.tools.open.get_mut(&number).filter(|_| self.welcomed) else { return };
        let call = Box::new(open.request.clone());
        // The leader may know of it from now on.
        open.request.again = true;
        self.send(ToLeader::CallTool { number, call });
    }

    /// Handles the answer of the leader.
    pub(super) fn on_tool_called(&mut self, number: u64, end: ToolEnd) {
        let Some(Open { asker, .. }) = self.tools.open.remove(&number) else { return };
        let answer = match end {
            ToolEnd::Result(result) => Answer::Completed(result),
            ToolEnd::Refused(why) => Answer::Refused(why),
        };
        self.answer_call(asker, answer);
    }

    /// Removes the calls of an ended attempt.
    pub(super) fn forget_calls(&mut self, token: FencingToken) {
        self.tools.open.retain(|_, open| open.request.caller.token != token);
    }
}
