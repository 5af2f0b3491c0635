//! `/api/agents` (compatibility §15.9, and ours).

use atlas_api::types::{Acceptance, Deletion, Deprecation, Registration, Retirement, RolledBack};
use atlas_service::{AgentQuery, Caller, ShownAgent, Versions, View};
use http::StatusCode;
use serde::Deserialize;
use serde_json::Value;

use super::HttpDoor;
use super::answer::{self, Answer, Response, json};
use super::request::Request;

/// `GET /api/agents`: every version that accepts jobs, in the format of `atlas list --json`. `?all=false` returns only
/// the latest version of each name, `?all=true` also retired ones.
pub(crate) async fn list(door: &HttpDoor, caller: &Caller, request: &Request) -> Answer {
    let query = request.query();
    let wanted = AgentQuery {
        versions: match query.get("all").as_deref() {
            Some("true") => Versions::All,
            Some("false") => Versions::Latest,
            _ => Versions::Registered,
        },
        name: query.filled("name"),
        capability: query.filled("capability"),
        text: query.filled("q"),
        limit: query.filled("limit").map(|_| query.limit()),
        offset: query.offset()?,
    };
    let agents = door.service.agents(caller, &wanted, request.consistency()).await?;
    Ok(listed(&agents, request.view()))
}

/// `GET /api/agents/{name}/versions`: the versions of one name, including retired ones.
pub(crate) async fn versions(door: &HttpDoor, caller: &Caller, request: &Request, name: &str) -> Answer {
    let wanted = AgentQuery { versions: Versions::All, name: Some(name.to_owned()), ..AgentQuery::default() };
    let agents = door.service.agents(caller, &wanted, request.consistency()).await?;
    if agents.is_empty() {
        // The error of this call suggests a similar name.
        door.service.agent(caller, name, None, request.consistency()).await?;
    }
    Ok(listed(&agents, View::Full))
}

/// `GET /api/agents/{name}/versions/{version}`.
pub(crate) async fn version(door: &HttpDoor, caller: &Caller, request: &Request, name: &str, version: &str) -> Answer {
    let agent = door.service.agent_version(caller, name, version, request.consistency()).await?;
    Ok(json(StatusCode::OK, &Value::Object(agent.details())))
}

fn listed(agents: &[ShownAgent], view: View) -> Response {
    let agents: Vec<Value> = agents.iter().map(|agent| Value::Object(agent.summary(view))).collect();
    json(StatusCode::OK, &Value::Array(agents))
}

/// `GET /api/agents/{name}[?version=]`.
pub(crate) async fn get(door: &HttpDoor, caller: &Caller, request: &Request, name: &str) -> Answer {
    let version = request.query().filled("version");
    let agent = door.service.agent(caller, name, version.as_deref(), request.consistency()).await?;
    Ok(json(StatusCode::OK, &Value::Object(agent.details())))
}

/// `POST /api/agents[?replace=true]` with a package as its body.
pub(crate) async fn register(door: &HttpDoor, caller: &Caller, request: &mut Request) -> Answer {
    let package = request.body(door, door.limits.package_bytes_max).await?;
    let registered = door.service.register(caller, package, request.query().flag("replace")?).await?;
    let registration = Registration {
        name: registered.name.as_str().to_owned(),
        version: registered.version.to_string(),
        digest: registered.digest.to_string(),
        changed: registered.changed,
    };
    Ok(answer::body(StatusCode::CREATED, &registration))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct DeprecateBody {
    #[serde(default)]
    message: String,
    deprecated: Option<bool>,
}

/// `POST /api/agents/{name}/versions/{version}/deprecate`. `{"deprecated": false}` removes the mark.
pub(crate) async fn deprecate(
    door: &HttpDoor,
    caller: &Caller,
    request: &mut Request,
    name: &str,
    version: &str,
) -> Answer {
    let body: DeprecateBody = request.read_json(door).await?;
    let why = body.deprecated.unwrap_or(true).then_some(&*body.message);
    door.service.deprecate(caller, name, version, why).await?;
    Ok(answer::body(StatusCode::OK, &Deprecation { deprecated: why.map(str::to_owned) }))
}

/// `POST /api/agents/{name}/versions/{version}/resume`: closes its circuit.
pub(crate) async fn resume(door: &HttpDoor, caller: &Caller, name: &str, version: &str) -> Answer {
    door.service.resume_agent(caller, name, version).await?;
    Ok(answer::body(StatusCode::OK, &Acceptance { accepted: true }))
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct RollbackBody {
    revision: Option<u32>,
}

/// `POST /api/agents/{name}/versions/{version}/rollback` with `{"revision": 1}`, or without a body for the revision before.
pub(crate) async fn roll_back(
    door: &HttpDoor,
    caller: &Caller,
    request: &mut Request,
    name: &str,
    version: &str,
) -> Answer {
    let body: RollbackBody = request.read_json(door).await?;
    let back = door.service.roll_back(caller, name, version, body.revision).await?;
    let rollback = RolledBack {
        name: back.registered.name.as_str().to_owned(),
        version: back.registered.version.to_string(),
        digest: back.registered.digest.to_string(),
        from: back.from.into(),
        revision: back.revision.into(),
    };
    Ok(answer::body(StatusCode::OK, &rollback))
}

/// `DELETE /api/agents/{name}/versions/{version}`: retires the version.
pub(crate) async fn retire(door: &HttpDoor, caller: &Caller, name: &str, version: &str) -> Answer {
    door.service.retire(caller, name, version).await?;
    Ok(answer::body(StatusCode::OK, &Retirement { retired: true }))
}

/// `POST /api/agents/{name}/versions/{version}/delete`: deletes a retired version.
pub(crate) async fn delete(door: &HttpDoor, caller: &Caller, name: &str, version: &str) -> Answer {
    door.service.delete_agent(caller, name, version).await?;
    Ok(answer::body(StatusCode::OK, &Deletion { deleted: true }))
}
