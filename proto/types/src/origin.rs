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

impl TraceContext {
    /// Reads a W3C `traceparent`. None if it is malformed, which the standard asks to be ignored.
    pub fn read(text: &str) -> Option<Self> {
        let hex = |text: &str, len: usize| {
            text.len() == len && text.bytes().all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte))
        };
        let mut parts = text.split('-');
        let (version, trace, span, flags) = (parts.next()?, parts.next()?, parts.next()?, parts.next()?);
        if !hex(version, 2) || version == "ff" || !hex(trace, 32) || !hex(span, 16) || !hex(flags, 2) {
            return None;
        }
        // Later versions may add parts.
        if version == "00" && parts.next().is_some() {
            return None;
        }
        let trace_id = u128::from_str_radix(trace, 16).ok().filter(|id| *id != 0)?;
        let span_id = u64::from_str_radix(span, 16).ok().filter(|id| *id != 0)?;
        Some(Self { trace_id, span_id, flags: u8::from_str_radix(flags, 16).ok()? })
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trace_contexts_are_read_as_the_standard_says() {
        let (trace, span) = ("0af7651916cd43dd8448eb211c80319c", "00f067aa0ba902b7");
        let context = |version: &str, rest: &str| TraceContext::read(&format!("{version}-{trace}-{span}-01{rest}"));
        let known = TraceContext {
            trace_id: 0x0af7_6519_16cd_43dd_8448_eb21_1c80_319c,
            span_id: 0x00f0_67aa_0ba9_02b7,
            flags: 1,
        };
        assert_eq!(context("00", ""), Some(known));
        assert_eq!(context("cc", "-what-comes-later"), Some(known));
        let zero = format!("00-{}-{span}-01", "0".repeat(32));
        let upper = format!("00-{}-{span}-01", trace.to_uppercase());
        let shorter = format!("00-{trace}-{span}");
        let strange = ["", "-", "00", zero.as_str(), upper.as_str(), shorter.as_str()];
        assert_eq!(strange.map(TraceContext::read), [None; 6]);
        assert_eq!([context("ff", ""), context("00", "-x"), context("0", ""), context("00", "0")], [None; 4]);
    }
}
