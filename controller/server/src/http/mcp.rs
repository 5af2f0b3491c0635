//! `/mcp` and `/agents/{name}/mcp`: requests of the Model Context Protocol, which the gateway answers.

use std::borrow::Cow;
use std::sync::Arc;

use atlas_access::Access;
use atlas_api::types::ProtectedResource;
use atlas_api::{Agents, percent_decoded};
use atlas_gateway::GatewayResponse;
use atlas_service::{Attempted, Caller, Error};
use axum::body::Body;
use bytes::Bytes;
use http::StatusCode;
use http_body_util::BodyExt as _;

use super::answer::{self, Answer, Problem, Response};
use super::request::Request;
use super::{HttpDoor, access};
use crate::identity;

/// The path of the gateway.
const PATH: &str = "/mcp";

/// Whether a path is that of the gateway. Some clients add a slash to the addresses that they are given.
pub(crate) fn is_path(path: &str) -> bool {
    path.strip_suffix('/').unwrap_or(path) == PATH
}

/// The agent in the path of its server.
pub(crate) fn agent_of(path: &str) -> Option<String> {
    let name = path.strip_prefix("/agents/")?;
    let name = name.strip_suffix('/').unwrap_or(name).strip_suffix(PATH)?;
    percent_decoded(name).filter(|name| !name.is_empty()).map(Cow::into_owned)
}

/// Answers a request to [`PATH`]. Its stream ends when the controller stops.
pub(crate) async fn answer(door: &HttpDoor, request: Request) -> Answer {
    let caller = caller(door, &request).await?;
    let request = whole(door, request).await?;
    Ok(streamed(door, door.gateway.answer(request, caller).await))
}

/// Answers a request to the server of an agent.
pub(crate) async fn answer_agent(door: &HttpDoor, request: Request, agent: &str, port: u16) -> Answer {
    let caller = caller(door, &request).await?;
    // Before the agent is looked for: who may not read agents does not learn which there are.
    if let Err(error) = caller.may(Agents::GetAgent.id()) {
        return Err(denied(door, &caller, &request, error).await);
    }
    let request = whole(door, request).await?;
    Ok(streamed(door, door.gateway.answer_agent(request, caller, agent, port).await?))
}

/// The registry document of the agents.
pub(crate) async fn registry(door: &HttpDoor, caller: &Caller, request: &Request) -> Answer {
    let document = door.gateway.registry(caller, &base(door, request), &door.agent_ports).await?;
    Ok(answer::json(StatusCode::OK, &document))
}

/// Which issuers give tokens for an MCP server (RFC 9728), so that its clients can ask a person to log in there.
pub(crate) async fn resource(door: &HttpDoor, request: &Request) -> Answer {
    let issuers = door.service.issuer_addresses().await?;
    if issuers.is_empty() {
        return Err(Error::UnknownObject("no issuer gives tokens for this cluster".to_owned()).into());
    }
    // The server is at the rest of the path.
    let path = request.path().strip_prefix("/.well-known/oauth-protected-resource").unwrap_or(PATH);
    let resource = ProtectedResource {
        resource: format!("{}{path}", base(door, request)),
        authorization_servers: issuers.keys().cloned().collect(),
        bearer_methods_supported: Some(vec!["header".to_owned()]),
        atlasctl_clients: issuers.into_iter().filter_map(|(url, client)| Some((url, client?))).collect(),
    };
    Ok(answer::body(StatusCode::OK, &resource))
}

/// The address by which a client reached this controller, as far as it says so; a proxy may end its TLS.
fn base(door: &HttpDoor, request: &Request) -> String {
    let host = request.header("host").filter(|host| !host.is_empty());
    let encrypted = door.authority.is_some() || request.header("x-forwarded-proto") == Some("https");
    let scheme = if encrypted { "https" } else { "http" };
    format!("{scheme}://{}", host.map_or_else(|| door.address.to_string(), str::to_owned))
}

async fn whole(door: &HttpDoor, mut request: Request) -> Result<http::Request<Bytes>, Problem> {
    let body = request.body(door, door.limits.body_bytes_max).await?;
    Ok(http::Request::from_parts(request.parts, body))
}

fn streamed(door: &HttpDoor, response: GatewayResponse) -> Response {
    let (parts, body) = response.into_parts();
    Response::from_parts(parts, Body::from_stream(door.until_stopped(body.into_data_stream())))
}

async fn caller(door: &HttpDoor, request: &Request) -> Result<Caller, Problem> {
    let caller = identity::mcp(authenticated(door, request).await?).with_trace(request.trace());
    Ok(match request.query().filled("namespace") {
        Some(namespace) => caller.in_namespace(&namespace)?,
        None => caller,
    })
}

/// What a request's token is granted. Whoever shows no valid one is refused, and that is recorded.
pub(crate) async fn authenticated(door: &HttpDoor, request: &Request) -> Result<Option<Arc<Access>>, Problem> {
    match door.service.authenticate(access::authorization(request)).await {
        Ok(access) => Ok(access),
        Err(error) => Err(denied(door, &identity::mcp_nobody(), request, error).await),
    }
}

/// Records a denial.
async fn denied(door: &HttpDoor, caller: &Caller, request: &Request, error: Error) -> Problem {
    door.service.audit().denied(caller, Attempted { verb: "mcp", object: request.path() }, &error).await;
    error.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_names_its_agent() {
        assert_eq!(agent_of("/agents/research/mcp"), Some("research".to_owned()));
        assert_eq!(agent_of("/agents/a%2Fb/mcp"), Some("a/b".to_owned()));
        assert_eq!(agent_of("/agents/a/mcp/"), Some("a".to_owned()));
        for path in [
            "/mcp",
            "/agents/mcp",
            "/agents//mcp",
            "/agents/a",
            "/agents/%ff/mcp",
            "/api/agents/a/mcp",
            "/agents/a/mcp//",
        ] {
            assert_eq!(agent_of(path), None, "{path}");
        }
        assert!(is_path("/mcp") && is_path("/mcp/"));
        assert!(!is_path("/mcp//") && !is_path("/") && !is_path("/mcp/x"));
    }
}
