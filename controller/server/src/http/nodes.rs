//! `/api/nodes`, `/api/health`, `/api/ready`.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use atlas_api::types::{Acceptance, Ready, Removal};
use atlas_service::{Caller, Error, NodeAction};
use atlas_types::Micros;
use http::StatusCode;
use serde::Deserialize;
use serde_json::Value;

use super::HttpDoor;
use super::answer::{self, Answer, Problem, json};
use super::request::Request;

/// The longest deadline of a drain in seconds: 30 days.
const DEADLINE_S_MAX: f64 = 30.0 * 24.0 * 3_600.0;

/// `GET /api/nodes`, ordered by name.
pub(crate) async fn list(door: &HttpDoor, caller: &Caller, request: &Request) -> Answer {
    let (offset, limit) = request.query().page()?;
    let nodes = door.service.nodes(caller, offset, limit, request.consistency()).await?;
    Ok(json(StatusCode::OK, &Value::Array(nodes)))
}

/// `GET /api/nodes/{name}`.
pub(crate) async fn get(door: &HttpDoor, caller: &Caller, request: &Request, name: &str) -> Answer {
    Ok(json(StatusCode::OK, &door.service.node(caller, name, request.consistency()).await?))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct DrainBody {
    deadline_s: Option<f64>,
}

/// `POST /api/nodes/{name}/drain|cordon|uncordon|resume`. The body of a drain may be `{"deadline_s": 300}`.
pub(crate) async fn act(
    door: &HttpDoor,
    caller: &Caller,
    request: &mut Request,
    name: &str,
    mut action: NodeAction,
) -> Answer {
    if let NodeAction::Drain { deadline } = &mut action {
        let DrainBody { deadline_s } = request.read_json(door).await?;
        if deadline_s.is_some_and(|seconds| !(0.0..=DEADLINE_S_MAX).contains(&seconds)) {
            return Err(Problem::malformed(format!("'deadline_s' must be from 0 to {DEADLINE_S_MAX}")));
        }
        *deadline = deadline_s.map(|seconds| Micros((seconds * 1e6) as u64));
    }
    door.service.act_on_node(caller, name, action).await?;
    Ok(answer::body(StatusCode::OK, &Acceptance { accepted: true }))
}

#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct LabelBody {
    set: BTreeMap<String, String>,
    remove: BTreeSet<String>,
}

/// `POST /api/nodes/{name}/labels` with `{"set": {"zone": "b"}, "remove": ["rack"]}`.
pub(crate) async fn label(door: &HttpDoor, caller: &Caller, request: &mut Request, name: &str) -> Answer {
    let LabelBody { set, remove } = request.read_json(door).await?;
    door.service.label_node(caller, name, set, remove).await?;
    Ok(answer::body(StatusCode::OK, &Acceptance { accepted: true }))
}

/// `DELETE /api/nodes/{name}`.
pub(crate) async fn remove(door: &HttpDoor, caller: &Caller, name: &str) -> Answer {
    door.service.act_on_node(caller, name, NodeAction::Remove).await?;
    Ok(answer::body(StatusCode::OK, &Removal { removed: true }))
}

/// `GET /api/health` (compatibility §15.1).
pub(crate) async fn health(door: &HttpDoor, caller: &Caller, request: &Request) -> Answer {
    Ok(json(StatusCode::OK, &door.service.health(caller, request.consistency()).await?))
}

/// How long the others get to answer before this controller asks whether there are any. Kubernetes waits for a second in all.
const OTHERS_ANSWER: Duration = Duration::from_millis(400);

/// `GET /api/ready`: tells load balancers whether this controller can serve requests. With `alone=true` it succeeds as well while no other
/// member runs: who starts members one after the other must not wait for the first, which waits for the second.
pub(crate) async fn ready(door: &HttpDoor, request: &Request) -> Answer {
    let alone_will_do = request.query().flag("alone")?;
    let ready = door.service.ready();
    tokio::pin!(ready);
    let is_ready = match tokio::time::timeout(OTHERS_ANSWER, &mut ready).await {
        Ok(is_ready) => is_ready,
        Err(_) if alone_will_do && door.cluster.is_alone(&door.env).await => {
            return Ok(answer::body(StatusCode::OK, &Ready { ready: false }));
        }
        Err(_) => ready.await,
    };
    if is_ready { Ok(answer::body(StatusCode::OK, &Ready { ready: true })) } else { Err(Error::NoLeader.into()) }
}
