//! `/api/agents` (spec §15.9, and ours).

use atlas_service::{Caller, Versions};
use http::StatusCode;
use serde_json::{Value, json};

use super::HttpDoor;
use super::answer::{Answer, json};
use super::request::Request;

/// `GET /api/agents`: every version that takes jobs; `?all=false` the latest of each name, `?all=true` retired ones too.
pub(crate) async fn list(door: &HttpDoor, caller: &Caller, request: &Request) -> Answer {
    let versions = match request.query().get("all").as_deref() {
        Some("true") => Versions::All,
        Some("false") => Versions::Latest,
        _ => Versions::Registered,
    };
    let agents = door.service.agents(caller, versions, request.consistency()).await?;
    let agents: Vec<Value> = agents.iter().map(|agent| Value::Object(agent.summary())).collect();
    Ok(json(StatusCode::OK, &Value::Array(agents)))
}

/// `GET /api/agents/{name}[?version=]`.
pub(crate) async fn get(door: &HttpDoor, caller: &Caller, request: &Request, name: &str) -> Answer {
    let version = request.query().filled("version");
    let agent = door.service.agent(caller, name, version.as_deref(), request.consistency()).await?;
    Ok(json(StatusCode::OK, &Value::Object(agent.details())))
}

/// `POST /api/agents` with a package as its body.
pub(crate) async fn register(door: &HttpDoor, caller: &Caller, request: &mut Request) -> Answer {
    let package = request.body(door, door.limits.package_bytes_max).await?;
    let registered = door.service.register(caller, package).await?;
    let body = json!({
        "name": registered.name.as_str(),
        "version": registered.version.to_string(),
        "digest": registered.digest.to_string(),
        "changed": registered.changed,
    });
    Ok(json(StatusCode::CREATED, &body))
}

/// `DELETE /api/agents/{name}/versions/{version}`: takes it out of service.
pub(crate) async fn retire(door: &HttpDoor, caller: &Caller, name: &str, version: &str) -> Answer {
    door.service.retire(caller, name, version).await?;
    Ok(json(StatusCode::OK, &json!({ "retired": true })))
}
