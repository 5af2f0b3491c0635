//! `/api/nodes`, `/api/health`, `/api/ready`.

use atlas_service::{Caller, Error, NodeAction};
use http::StatusCode;
use serde_json::{Value, json};

use super::HttpDoor;
use super::answer::{Answer, json};
use super::request::Request;

/// `GET /api/nodes`: by name.
pub(crate) async fn list(door: &HttpDoor, request: &Request) -> Answer {
    let (offset, limit) = request.query().page()?;
    let nodes = door.service.nodes(offset, limit, request.consistency()).await?;
    Ok(json(StatusCode::OK, &Value::Array(nodes)))
}

/// `GET /api/nodes/{name}`.
pub(crate) async fn get(door: &HttpDoor, request: &Request, name: &str) -> Answer {
    Ok(json(StatusCode::OK, &door.service.node(name, request.consistency()).await?))
}

/// `POST /api/nodes/{name}/drain|cordon|uncordon`.
pub(crate) async fn act(door: &HttpDoor, caller: &Caller, name: &str, action: NodeAction) -> Answer {
    door.service.act_on_node(caller, name, action).await?;
    Ok(json(StatusCode::OK, &json!({ "accepted": true })))
}

/// `DELETE /api/nodes/{name}`.
pub(crate) async fn remove(door: &HttpDoor, caller: &Caller, name: &str) -> Answer {
    door.service.act_on_node(caller, name, NodeAction::Remove).await?;
    Ok(json(StatusCode::OK, &json!({ "removed": true })))
}

/// `GET /api/health` (spec §15.1).
pub(crate) async fn health(door: &HttpDoor, request: &Request) -> Answer {
    Ok(json(StatusCode::OK, &door.service.health(request.consistency()).await?))
}

/// `GET /api/ready`: whether this controller can serve, for load balancers.
pub(crate) async fn ready(door: &HttpDoor) -> Answer {
    if door.service.ready().await {
        Ok(json(StatusCode::OK, &json!({ "ready": true })))
    } else {
        Err(Error::NoLeader.into())
    }
}
