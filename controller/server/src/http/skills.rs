//! `/api/skills` (compatibility §15.4, and ours). Labels and revisions of skills are at `/api/objects/skill`.

use atlas_service::{Caller, Error};
use http::StatusCode;
use serde_json::{Value, json};

use super::HttpDoor;
use super::answer::{Answer, json};
use super::request::Request;

/// `GET /api/skills`, the oldest first. Without any skill, the answer is that of an Atlas for Python without skills.
pub(crate) async fn list(door: &HttpDoor, caller: &Caller, request: &Request) -> Answer {
    let skills = door.service.skills(caller, request.consistency()).await?;
    if skills.is_empty() {
        return Err(Error::NotConfigured("Skills not configured").into());
    }
    Ok(json(StatusCode::OK, &Value::Array(skills)))
}

/// `GET /api/skills/{name}`.
pub(crate) async fn get(door: &HttpDoor, caller: &Caller, request: &Request, name: &str) -> Answer {
    Ok(json(StatusCode::OK, &door.service.skill(caller, name, request.consistency()).await?))
}

/// `POST /api/skills` with a package as its body.
pub(crate) async fn deploy(door: &HttpDoor, caller: &Caller, request: &mut Request) -> Answer {
    let package = request.body(door, door.limits.package_bytes_max).await?;
    let deployed = door.service.deploy_skill(caller, package).await?;
    let object = &deployed.object.value;
    let body = json!({
        "name": object["metadata"]["name"],
        "version": object["spec"]["version"],
        "digest": object["spec"]["package"],
        "changed": deployed.changed,
    });
    Ok(json(StatusCode::CREATED, &body))
}
