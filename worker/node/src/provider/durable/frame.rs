//! What a durable program says to the worker, and what it is told: members of a frame of a host, or of a line of JSON.

use atlas_durable::CallOutcome;
use serde::{Deserialize, Deserializer};
use serde_json::Value;
use serde_json::value::RawValue;

/// What a program says.
#[derive(Debug)]
pub(in crate::provider) enum Said {
    /// It asks for something.
    Call(Box<CallFrame>),
    /// A function of a step has ended.
    Made(MadeFrame),
    /// It no longer waits for a call.
    Forget(u64),
    /// The same, and no function of the call runs any more.
    Over(u64),
}

/// What a program no longer waits for.
#[derive(Debug, Deserialize)]
struct ForgetFrame {
    call: u64,
    #[serde(default)]
    over: bool,
}

impl Said {
    /// Reads what a frame says of that type: `call`, `made` or `forget`.
    pub(in crate::provider) fn read(kind: SaidKind, body: &[u8]) -> Result<Self, serde_json::Error> {
        Ok(match kind {
            SaidKind::Call => Self::Call(serde_json::from_slice(body)?),
            SaidKind::Made => Self::Made(serde_json::from_slice(body)?),
            SaidKind::Forget => match serde_json::from_slice::<ForgetFrame>(body)? {
                ForgetFrame { call, over: true } => Self::Over(call),
                ForgetFrame { call, .. } => Self::Forget(call),
            },
        })
    }
}

/// The types of frames that are about calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::provider) enum SaidKind {
    Call,
    Made,
    Forget,
}

/// A call.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(in crate::provider) struct CallFrame {
    /// The program's number of it.
    pub(super) call: u64,
    /// A step, if it says nothing.
    pub(super) kind: Option<String>,
    pub(super) name: String,
    /// The whole identity, from a program that numbers its calls.
    pub(super) id: Option<String>,
    pub(super) digest: Option<String>,
    /// The arguments, from a program that makes no digest.
    pub(super) args: Option<Value>,
    /// How many records that it was told at the beginning it has taken.
    pub(super) claimed: usize,
    /// The arguments, for people.
    pub(super) given: String,
    pub(super) at: String,
    /// The program does nothing else until it is answered. A line says it by `single`.
    #[serde(alias = "single")]
    pub(super) alone: bool,
    pub(super) effects: Option<String>,
    pub(super) reconcile: bool,
    pub(super) until_us: Option<i64>,
    pub(super) for_us: Option<i64>,
    pub(super) question: Option<Value>,
    pub(super) agent: String,
    pub(super) skill: bool,
    pub(super) input: Option<Box<RawValue>>,
    pub(super) priority: i64,
    /// In seconds.
    pub(super) timeout: Option<f64>,
    pub(super) tool: String,
}

impl CallFrame {
    /// How many bytes it asks with. Arguments do not count: only their digest is kept.
    pub(super) fn bytes(&self) -> usize {
        let question = self.question.as_ref().map_or(0, |question| question.to_string().len());
        let input = self.input.as_deref().map_or(0, |input| input.get().len());
        question + input + self.agent.len() + self.tool.len()
    }

    /// Drops what only told the call from others.
    pub(super) fn drop_arguments(&mut self) {
        (self.args, self.digest) = (None, None);
        (self.given, self.at) = (String::new(), String::new());
    }
}

/// How a function ended.
#[derive(Debug, Deserialize)]
pub(in crate::provider) struct MadeFrame {
    #[serde(alias = "made")]
    pub(super) call: u64,
    #[serde(default, deserialize_with = "present")]
    value: Option<Box<RawValue>>,
    error: Option<Value>,
    /// What a function found that looked whether the step had happened.
    reconciled: Option<String>,
}

/// Keeps `null` apart from no value.
fn present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Box<RawValue>>, D::Error> {
    Box::<RawValue>::deserialize(deserializer).map(Some)
}

/// How a function ended.
pub(super) enum Made {
    Outcome(CallOutcome),
    /// It had not happened before, and is to be made now.
    DidNot,
    /// It was given up, and nobody knows what came of it.
    GivenUp,
}

impl MadeFrame {
    pub(super) fn end(self) -> Made {
        match (self.error, self.reconciled, self.value) {
            (Some(error @ Value::Object(_)), ..) => Made::Outcome(CallOutcome::Error(error)),
            (Some(Value::String(text)), ..) => Made::Outcome(CallOutcome::error("Error", text)),
            (Some(error), ..) => Made::Outcome(CallOutcome::error("Error", error.to_string())),
            (None, Some(_), None) => Made::DidNot,
            (None, _, value) => Made::Outcome(value.map_or_else(CallOutcome::null, CallOutcome::Value)),
        }
    }
}

/// What a program is told about one of its calls.
#[derive(Debug)]
pub(in crate::provider) struct Called {
    pub(super) call: u64,
    pub(super) what: What,
}

#[derive(Debug)]
pub(super) enum What {
    /// What came of it, and when it was recorded.
    Outcome(CallOutcome, Option<i64>),
    /// The function of the step is to run. `doubt`: an earlier attempt began it, and is asked what came of that.
    Make { key: String, again: bool, doubt: bool },
    /// The job cannot go on.
    Stop(String),
}

impl Called {
    pub(super) fn outcome(call: u64, outcome: CallOutcome) -> Self {
        Self { call, what: What::Outcome(outcome, None) }
    }

    pub(in crate::provider) fn stop(call: u64, why: String) -> Self {
        Self { call, what: What::Stop(why) }
    }

    /// The body of a frame.
    pub(in crate::provider) fn frame(&self) -> String {
        self.text(r#""type":"called","#)
    }

    /// A line of JSON.
    pub(in crate::provider) fn line(&self) -> String {
        self.text("") + "\n"
    }

    fn text(&self, first: &str) -> String {
        let call = self.call;
        let (mut text, at_us) = match &self.what {
            What::Outcome(CallOutcome::Value(value), at_us) => {
                (format!(r#"{{{first}"call":{call},"value":{}"#, value.get()), *at_us)
            }
            What::Outcome(CallOutcome::Error(error), at_us) => {
                (format!(r#"{{{first}"call":{call},"error":{error}"#), *at_us)
            }
            What::Make { key, again, doubt } => {
                let doubt = if *doubt { r#","doubt":true"# } else { "" };
                return format!(r#"{{{first}"call":{call},"make":true,"key":"{key}","again":{again}{doubt}}}"#);
            }
            What::Stop(why) => return format!(r#"{{{first}"call":{call},"stop":{}}}"#, Value::from(why.as_str())),
        };
        if let Some(at_us) = at_us {
            text.push_str(&format!(r#","at_us":{at_us}"#));
        }
        text.push('}');
        text
    }
}
