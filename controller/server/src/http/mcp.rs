//! `/mcp`: requests of the Model Context Protocol, which the gateway answers.

use atlas_service::Caller;
use axum::body::Body;
use http_body_util::{BodyExt as _, Full};

use super::HttpDoor;
use super::answer::{Answer, Problem, Response};
use super::request::Request;
use crate::identity;

/// The path of the gateway.
pub(crate) const PATH: &str = "/mcp";

/// Answers a request to [`PATH`]. Its stream ends when the controller stops.
pub(crate) async fn answer(door: &HttpDoor, mut request: Request) -> Answer {
    let caller = caller(&request)?;
    let body = request.body(door, door.limits.body_bytes_max).await?;
    let request = http::Request::from_parts(request.parts, Full::new(body));
    let (parts, body) = door.gateway.answer(request, caller).await.into_parts();
    Ok(Response::from_parts(parts, Body::from_stream(door.until_stopped(body.into_data_stream()))))
}

fn caller(request: &Request) -> Result<Caller, Problem> {
    let caller = identity::mcp().with_trace(request.trace());
    Ok(match request.query().filled("namespace") {
        Some(namespace) => caller.in_namespace(&namespace)?,
        None => caller,
    })
}
