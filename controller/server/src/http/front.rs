//! What a port serves: the HTTP interface, or an MCP server of its own.

use std::sync::Arc;

use atlas_gateway::Compatible;
use axum::body::Body;
use http_body_util::BodyExt as _;

use super::answer::{Problem, Response};
use super::request::{Pages, Request};
use super::{HttpDoor, mcp};
use crate::identity;

/// What a port serves.
#[derive(Clone)]
pub(crate) enum Front {
    /// The HTTP interface.
    Api,
    /// The MCP server that is compatible with Atlas for Python.
    Compatible(Compatible),
    /// The MCP server of one agent, at `/mcp`; every other path is that of the HTTP interface.
    Agent { agent: Arc<str>, port: u16 },
}

impl Front {
    /// Answers one request.
    pub(super) async fn answer(&self, door: &HttpDoor, request: Request) -> Response {
        match self {
            Self::Api => door.answer(request).await,
            Self::Compatible(server) => match compatible(door, server, request).await {
                Ok(response) => response,
                Err(problem) => problem.into_response(false),
            },
            Self::Agent { agent, port } if mcp::is_path(request.path()) => {
                let answer = match request.check_site(Pages::None) {
                    Ok(()) => mcp::answer_agent(door, request, agent, *port).await,
                    Err(problem) => Err(problem),
                };
                answer.unwrap_or_else(|problem| problem.into_response(true))
            }
            Self::Agent { .. } => door.answer(request).await,
        }
    }
}

async fn compatible(door: &HttpDoor, server: &Compatible, mut request: Request) -> Result<Response, Problem> {
    request.check_site(Pages::None)?;
    let body = request.body(door, door.limits.body_bytes_max).await?;
    // A server with a token of its own lets in whoever shows that one.
    let access = if server.has_token() { None } else { mcp::authenticated(door, &request).await? };
    let caller = identity::mcp(access).with_trace(request.trace());
    let (parts, body) = server.answer(&request.parts, &body, caller).await.into_parts();
    Ok(Response::from_parts(parts, Body::from_stream(door.until_stopped(body.into_data_stream()))))
}
