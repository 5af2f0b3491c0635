//! Where a command came from: the same six facts on every client command.

use crate::{Namespace, Principal, RequestId};

/// The interface through which a command came.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Door {
    /// HTTP/JSON.
    Http,
    /// The workers' gRPC stream.
    Worker,
    /// A leader task.
    Duty,
    /// A peer controller.
    Peer,
    /// The MCP gateway.
    Mcp,
    /// A person on the controller's own machine (`atlasctl dev`, break-glass).
    Local,
}

impl Door {
    /// The word that clients see.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Http => "http",
            Self::Worker => "worker",
            Self::Duty => "duty",
            Self::Peer => "peer",
            Self::Mcp => "mcp",
            Self::Local => "local",
        }
    }
}

/// W3C trace context of the request that caused a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct TraceContext {
    /// The trace's id; never 0.
    pub trace_id: u128,
    /// The span that caused the command; never 0.
    pub span_id: u64,
    /// The flags byte (bit 0: sampled).
    pub flags: u8,
}

/// Who asked for a command, for which namespace, through which door.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Origin {
    /// The namespace that the command acts in.
    pub namespace: Namespace,
    /// Who asked.
    pub principal: Principal,
    /// The face it came in by.
    pub door: Door,
    /// The caller's name for the request; a repeat within the retention gets the first answer again.
    pub request_id: Option<RequestId>,
    /// Hash of the request's body: the same request id with another body is a conflict.
    pub body_hash: u64,
    /// The caller's trace.
    pub trace: Option<TraceContext>,
}

impl Origin {
    /// The leader's own duties, acting on `namespace`.
    pub fn duty(namespace: Namespace) -> Self {
        Self {
            namespace,
            principal: Principal::cluster(),
            door: Door::Duty,
            request_id: None,
            body_hash: 0,
            trace: None,
        }
    }
}
