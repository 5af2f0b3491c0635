//! The MCP server of Atlas for Python (compatibility §19): its tools under their own names, plain JSON answers, sessions, and the older
//! transport with events, on an address of its own.
//!
//! It does not use `rmcp`: its transport differs from that of `/mcp` where existing clients see it, and the part of the protocol that
//! it needs is small.

mod auth;
mod calls;
mod events;
mod http;
mod message;
mod sessions;
mod tools;

use std::sync::Arc;
use std::time::Duration;

use atlas_env::Env;
use atlas_service::Service;

pub use auth::Token;
use calls::Calls;
use sessions::Sessions;

use crate::GatewayResponse;

/// The options of the server.
#[derive(Debug, Clone)]
pub struct CompatibleOptions {
    /// What a client must show; none if everyone may call.
    pub token: Option<Token>,
    /// Whether jobs can be submitted, asked for and cancelled.
    pub pool: bool,
    /// Whether each agent is a tool as well.
    pub all_agents: bool,
    /// The most open sessions.
    pub sessions_max: usize,
    /// After how long an idle session ends.
    pub session_idle: Duration,
}

/// The server. Copies share its sessions.
#[derive(Clone)]
pub struct Compatible {
    service: Service,
    options: Arc<CompatibleOptions>,
    sessions: Arc<Sessions>,
    calls: Calls,
    env: Env,
}

impl Compatible {
    /// A server of the caller's namespace.
    pub fn new(service: Service, options: CompatibleOptions, env: Env) -> Self {
        let sessions = Sessions::new(options.sessions_max, options.session_idle, env.clone());
        Self { service, options: Arc::new(options), sessions: Arc::new(sessions), calls: Calls::default(), env }
    }

    /// Whether clients must show a token that this server alone knows.
    pub fn has_token(&self) -> bool {
        self.options.token.is_some()
    }
}
