//! The spec of an MCP server: how it is reached, what it gets, and which of its tools agents may call.

mod check;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use atlas_model::SpecError;
use serde::{Deserialize, Serialize};

use crate::pin::Pins;

/// Most tools of one server, most names in its allow-list, and most pins.
pub const TOOLS_MAX: usize = 256;
/// Most arguments of a command.
pub const ARGUMENTS_MAX: usize = 64;
/// Most variables of a command.
pub const VARIABLES_MAX: usize = 64;
/// Most headers.
pub const HEADERS_MAX: usize = 32;
/// Most bytes of an argument, of a variable's value and of a path.
pub const TEXT_BYTES_MAX: usize = 4_096;

/// How a server is reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Transport {
    /// Streamable HTTP.
    Http,
    /// The older transport with an event stream and a second address for messages.
    Sse,
    /// A program on the worker, over its standard input and output.
    Stdio,
}

impl Transport {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Http, Self::Sse, Self::Stdio];

    /// Its word.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Http => "http",
            Self::Sse => "sse",
            Self::Stdio => "stdio",
        }
    }
}

/// What the operator knows about the calls of a tool. Nothing is believed of what a server says about itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum CallEffects {
    /// It changes nothing.
    Pure,
    /// Made twice, it has the effect of one.
    Idempotent,
}

/// An MCP server. Texts with credentials are references to secrets, because everybody may read a spec.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServerSpec {
    pub transport: Transport,
    /// One sentence for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// `http` and `sse`: the address.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// `http` and `sse`: headers of every request. Values may contain references.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, String>,
    /// `http` and `sse`: the credential of the job's caller is passed on, unless `headers` has an `Authorization` of its own.
    #[serde(default, skip_serializing_if = "is_false")]
    pub forward_inbound_auth: bool,
    /// `http` and `sse`: requests may go to other machines without encryption.
    #[serde(default, skip_serializing_if = "is_false")]
    pub plain_http: bool,
    /// `stdio`: the program.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub args: Vec<String>,
    /// `stdio`: its environment beside the machine's path and home. Values may contain references.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub env: BTreeMap<String, String>,
    /// `stdio`: its directory; an empty one of its own if there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cwd: Option<String>,
    /// The tools that agents may call, `*` at the end of a name for any rest; none allows all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tools: Option<Vec<String>>,
    /// What is known of the tool calls. After a lost worker, only calls named here are made again.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub effects: BTreeMap<String, CallEffects>,
    /// Whether a tool is offered only as it was accepted.
    #[serde(default, skip_serializing_if = "is_false")]
    pub pinned: bool,
    /// The accepted definitions.
    #[serde(default, skip_serializing_if = "Pins::is_empty")]
    pub pins: Pins,
    /// Longest time of one call.
    #[serde(default = "timeout_default")]
    pub timeout_seconds: u32,
    /// Longest time until the server has said which tools it has.
    #[serde(default = "start_default")]
    pub start_timeout_seconds: u32,
    /// After how long without a call a connection is closed.
    #[serde(default = "idle_default")]
    pub idle_timeout_seconds: u32,
}

pub(crate) fn timeout_default() -> u32 {
    60
}

pub(crate) fn start_default() -> u32 {
    30
}

pub(crate) fn idle_default() -> u32 {
    300
}

fn is_false(flag: &bool) -> bool {
    !flag
}

impl ServerSpec {
    /// A server over HTTP with nothing but its address.
    pub fn http(url: impl Into<String>) -> Self {
        Self { url: Some(url.into()), ..Self::of(Transport::Http) }
    }

    /// A program with its arguments.
    pub fn stdio(command: impl Into<String>, args: Vec<String>) -> Self {
        Self { command: Some(command.into()), args, ..Self::of(Transport::Stdio) }
    }

    /// An empty spec, which is refused until it says where the server is.
    pub fn of(transport: Transport) -> Self {
        Self {
            transport,
            description: None,
            url: None,
            headers: BTreeMap::new(),
            forward_inbound_auth: false,
            plain_http: false,
            command: None,
            args: Vec::new(),
            env: BTreeMap::new(),
            cwd: None,
            tools: None,
            effects: BTreeMap::new(),
            pinned: false,
            pins: Pins::default(),
            timeout_seconds: timeout_default(),
            start_timeout_seconds: start_default(),
            idle_timeout_seconds: idle_default(),
        }
    }

    /// Reads and checks a spec. Unknown members are accepted: a newer program wrote them.
    pub fn read(spec: &[u8]) -> Result<Self, SpecError> {
        let read: Self =
            serde_json::from_slice(spec).map_err(|error| SpecError::new("spec", format!("cannot be read: {error}")))?;
        read.check()?;
        Ok(read)
    }

    /// Whether agents may call a tool.
    pub fn allows(&self, tool: &str) -> bool {
        let matches = |pattern: &String| match pattern.strip_suffix('*') {
            Some(start) => tool.starts_with(start),
            None => pattern == tool,
        };
        self.tools.as_ref().is_none_or(|allowed| allowed.iter().any(matches))
    }

    /// Whether the credential of a caller is passed on to it.
    pub fn forwards(&self) -> bool {
        self.forward_inbound_auth && !self.headers.keys().any(|name| name.eq_ignore_ascii_case("authorization"))
    }

    /// Why it can have no login, whose tokens would be its credential.
    pub fn login_refused(&self) -> Option<&'static str> {
        if self.transport == Transport::Stdio {
            return Some("is a program");
        }
        if self.forward_inbound_auth {
            return Some("gets the credentials of callers");
        }
        let own = self.headers.keys().any(|name| name.eq_ignore_ascii_case("authorization"));
        own.then_some("has an Authorization header of its own")
    }

    /// The texts in which references may be.
    pub fn templates(&self) -> impl Iterator<Item = &str> {
        let values = self.headers.values().chain(self.env.values()).chain(&self.args);
        values.map(String::as_str)
    }
}
