//! What a port serves: the HTTP interface, or an MCP server of its own.

use atlas_gateway::Compatible;
use axum::body::Body;
use http_body_util::BodyExt as _;

use super::HttpDoor;
use super::answer::{Problem, Response};
use super::request::Request;
use crate::identity;

/// What a port serves.
#[derive(Clone)]
pub(crate) enum Front {
    /// The HTTP interface.
    Api,
    /// The MCP server that is compatible with Atlas for Python.
    Compatible {
        server: Compatible,
        /// Whether the port listens on loopback only.
        loopback: bool,
    },
}

impl Front {
    /// Answers one request.
    pub(super) async fn answer(&self, door: &HttpDoor, request: Request) -> Response {
        match self {
            Self::Api => door.answer(request).await,
            Self::Compatible { server, loopback } => match compatible(door, server, *loopback, request).await {
                Ok(response) => response,
                Err(problem) => problem.into_response(false),
            },
        }
    }
}

async fn compatible(
    door: &HttpDoor,
    server: &Compatible,
    loopback: bool,
    mut request: Request,
) -> Result<Response, Problem> {
    if let Some(site) = request.foreign(loopback) {
        return Err(atlas_service::Error::Foreign(site).into());
    }
    let body = request.body(door, door.limits.body_bytes_max).await?;
    let caller = identity::mcp().with_trace(request.trace());
    let (parts, body) = server.answer(&request.parts, &body, caller).await.into_parts();
    Ok(Response::from_parts(parts, Body::from_stream(door.until_stopped(body.into_data_stream()))))
}
