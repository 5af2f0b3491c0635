//! What a call is known by: its kind, its name, a digest of its arguments, and which of equal calls it is. The order of calls is no part
//! of it, so a program may do several things at a time.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest as _, Sha256};

/// The longest name of a call.
pub const NAME_BYTES_MAX: usize = 200;

/// The longest digest.
const DIGEST_BYTES_MAX: usize = 64;

/// What a program can ask for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum CallKind {
    /// A function of its own.
    #[default]
    Step,
    /// A time.
    Sleep,
    /// The answer of people.
    Ask,
    /// A message.
    Receive,
    /// The end of another job.
    Spawn,
    /// A tool of the platform.
    Tool,
    /// The answer of a model.
    Model,
    /// Whether a change of its code counts for this job.
    Version,
}

impl CallKind {
    /// The first part of an identity.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Step => "step",
            Self::Sleep => "sleep",
            Self::Ask => "ask",
            Self::Receive => "receive",
            Self::Spawn => "spawn",
            Self::Tool => "tool",
            Self::Model => "model",
            Self::Version => "version",
        }
    }

    /// A call of that name, in a text for people.
    pub fn shown(self, name: &str) -> String {
        let what = match self {
            Self::Step => "the step",
            Self::Sleep => "the sleep",
            Self::Ask => "the question",
            Self::Receive => "a message",
            Self::Spawn => "a job of",
            Self::Tool => "the tool",
            Self::Model => "the model call",
            Self::Version => "the version",
        };
        if name.is_empty() { what.to_owned() } else { format!("{what} '{name}'") }
    }
}

/// An identity that does not belong to its call.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadIdentity {
    /// Too long a name.
    #[error("the name of a call has {0} bytes, more than {NAME_BYTES_MAX}")]
    LongName(usize),
    /// A name that would break lines.
    #[error("the name of a call has a control character: {0:?}")]
    Control(String),
    /// A call that cannot be told from others.
    #[error("{0} has no name")]
    NoName(&'static str),
    /// Not of the form that [`identity`] makes.
    #[error("{0:?} is not the identity of this call: KIND:NAME:DIGEST:NUMBER")]
    Form(String),
    /// No digest.
    #[error("{0:?} is not a digest: at most {DIGEST_BYTES_MAX} hexadecimal digits")]
    Digest(String),
}

/// The identity of a call.
pub fn identity(kind: CallKind, name: &str, digest: &str, number: u32) -> String {
    format!("{}:{name}:{digest}:{number}", kind.as_str())
}

/// Whether an identity that a program states is one of a call of that kind and name.
pub fn check_identity(id: Option<&str>, kind: CallKind, name: &str) -> Result<(), BadIdentity> {
    if name.len() > NAME_BYTES_MAX {
        return Err(BadIdentity::LongName(name.len()));
    }
    if name.chars().any(char::is_control) {
        return Err(BadIdentity::Control(name.to_owned()));
    }
    if name.is_empty() && matches!(kind, CallKind::Step | CallKind::Spawn | CallKind::Tool | CallKind::Version) {
        return Err(BadIdentity::NoName(kind.as_str()));
    }
    let Some(id) = id else { return Ok(()) };
    let rest = id.strip_prefix(kind.as_str()).and_then(|rest| rest.strip_prefix(':'));
    let rest = rest.and_then(|rest| rest.strip_prefix(name)).and_then(|rest| rest.strip_prefix(':'));
    let is_one = |(digest, number): (&str, &str)| is_digest(digest) && number.parse::<u32>().is_ok();
    match rest.and_then(|rest| rest.split_once(':')) {
        Some(parts) if is_one(parts) => Ok(()),
        _ => Err(BadIdentity::Form(id.chars().take(NAME_BYTES_MAX).collect())),
    }
}

/// Checks the digest of a call that its program does not number.
pub fn check_digest(digest: &str) -> Result<(), BadIdentity> {
    match is_digest(digest) {
        true => Ok(()),
        false => Err(BadIdentity::Digest(digest.chars().take(DIGEST_BYTES_MAX).collect())),
    }
}

fn is_digest(digest: &str) -> bool {
    digest.len() <= DIGEST_BYTES_MAX && digest.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// Numbers equal calls, for programs that do not do it themselves.
#[derive(Debug, Default)]
pub struct Numbers(BTreeMap<String, u32>);

impl Numbers {
    /// The identity of the next call of that kind and name with those arguments.
    pub fn next(&mut self, kind: CallKind, name: &str, digest: &str) -> String {
        let number = self.0.entry(format!("{}:{name}:{digest}", kind.as_str())).or_default();
        *number = number.saturating_add(1);
        identity(kind, name, digest, *number)
    }
}

/// The digest of the arguments of a call: of their JSON with sorted members.
pub fn digest(arguments: &Value) -> String {
    let mut text = String::new();
    write_canonical(arguments, &mut text);
    let hash: [u8; 32] = Sha256::digest(text).into();
    hash[..8].iter().fold(String::new(), |mut hex, byte| {
        // Writing into a text never fails.
        let _ = write!(hex, "{byte:02x}");
        hex
    })
}

fn write_canonical(value: &Value, text: &mut String) {
    match value {
        Value::Object(members) => {
            let sorted: BTreeMap<&String, &Value> = members.iter().collect();
            text.push('{');
            for (place, (name, value)) in sorted.into_iter().enumerate() {
                text.push_str(if place == 0 { "" } else { "," });
                text.push_str(&Value::from(name.as_str()).to_string());
                text.push(':');
                write_canonical(value, text);
            }
            text.push('}');
        }
        Value::Array(items) => {
            text.push('[');
            for (place, value) in items.iter().enumerate() {
                text.push_str(if place == 0 { "" } else { "," });
                write_canonical(value, text);
            }
            text.push(']');
        }
        plain => text.push_str(&plain.to_string()),
    }
}
