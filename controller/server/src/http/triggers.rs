//! `/api/triggers` and `/api/hooks` (compatibility §15.3, and ours).

use atlas_api::types::{self, BackfillTime, Deletion, Deliveries, FiredJob, NextFirings};
use atlas_service::{Backfill, Caller, Error, HOOK_HEADERS, HookAnswer, HookCall, HookSender, Service, TriggerFilter};
use http::StatusCode;
use serde::Deserialize;
use serde_json::Value;

use super::HttpDoor;
use super::answer::{self, Answer, Problem, json, with_warnings};
use super::request::{Request, client_key};

/// The largest body of a call (compatibility §14.5).
const CALL_BYTES_MAX: usize = 1 << 20;
/// How many triggers a list has without `limit`.
const LISTED: usize = 100;

/// `POST /api/triggers?strict=`: the members, or an object that has them under `trigger`.
pub(crate) async fn create(door: &HttpDoor, caller: &Caller, request: &mut Request) -> Answer {
    let new = match request.header("if-none-match") {
        None => false,
        Some("*") => true,
        Some(_) => return Err(Problem::malformed("'If-None-Match' must be *")),
    };
    let strict = request.query().flag("strict")?;
    let document = document(door, request).await?;
    let made = door.service.create_trigger(caller, &document, new, strict).await?;
    Ok(with_warnings(json(StatusCode::CREATED, &made), warnings(&document, &made)))
}

/// `GET /api/triggers?type=&enabled=&limit=`, the newest first.
pub(crate) async fn list(door: &HttpDoor, caller: &Caller, request: &Request) -> Answer {
    let query = request.query();
    let limit = match query.get("limit") {
        None => Some(LISTED),
        // Atlas for Python passes the number to SQLite, for which a negative one is no limit.
        Some(text) => match text.trim().parse::<i64>() {
            Ok(limit) => usize::try_from(limit).ok(),
            Err(_) => return Err(Problem::malformed("'limit' must be a whole number")),
        },
    };
    let enabled = query.get("enabled").map(|text| ["true", "1", "yes"].contains(&text.to_lowercase().as_str()));
    let filter = TriggerFilter { trigger_type: query.filled("type"), enabled, limit };
    let triggers = door.service.triggers(caller, &filter, request.view(), request.consistency()).await?;
    Ok(json(StatusCode::OK, &Value::Array(triggers)))
}

/// `GET /api/triggers/{id}`.
pub(crate) async fn get(door: &HttpDoor, caller: &Caller, request: &Request, id: &str) -> Answer {
    Ok(json(StatusCode::OK, &door.service.trigger(caller, id, request.view(), request.consistency()).await?))
}

/// `PUT /api/triggers/{id}?strict=` with the members that change.
pub(crate) async fn change(door: &HttpDoor, caller: &Caller, request: &mut Request, id: &str) -> Answer {
    let strict = request.query().flag("strict")?;
    let document = document(door, request).await?;
    let changed = door.service.change_trigger(caller, id, &document, strict).await?;
    Ok(with_warnings(json(StatusCode::OK, &changed), warnings(&document, &changed)))
}

/// `DELETE /api/triggers/{id}`.
pub(crate) async fn delete(door: &HttpDoor, caller: &Caller, id: &str) -> Answer {
    door.service.delete_trigger(caller, id).await?;
    Ok(answer::body(StatusCode::OK, &Deletion { deleted: true }))
}

/// `POST /api/triggers/{id}/fire`. Atlas for Python does not read its body.
pub(crate) async fn fire(door: &HttpDoor, caller: &Caller, request: &mut Request, id: &str) -> Answer {
    let said = request.says_something_short(door).await;
    let job = door.service.fire_trigger(caller, id).await?;
    let warning = said.then(|| "the body is ignored: the job gets the input of the trigger".to_owned());
    Ok(with_warnings(answer::body(StatusCode::CREATED, &FiredJob { job_id: job }), warning))
}

/// `GET /api/triggers/{id}/next?count=`.
pub(crate) async fn next(door: &HttpDoor, caller: &Caller, request: &Request, id: &str) -> Answer {
    let count = request.query().count("count")?.map_or(5, |count| usize::try_from(count).unwrap_or(usize::MAX));
    let times = door.service.next_firings(caller, id, count).await?;
    let (next, local): (Vec<f64>, Vec<String>) = times.into_iter().map(|at| (at.time, at.local)).unzip();
    Ok(answer::body(StatusCode::OK, &NextFirings { next, local }))
}

/// `GET /api/triggers/{id}/deliveries?limit=`.
pub(crate) async fn deliveries(door: &HttpDoor, caller: &Caller, request: &Request, id: &str) -> Answer {
    let limit = request.query().count("limit")?.map_or(20, |count| usize::try_from(count).unwrap_or(usize::MAX));
    let deliveries = door.service.deliveries(caller, id, limit).await?;
    Ok(answer::body(StatusCode::OK, &Deliveries { deliveries }))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct TestBody {
    #[serde(default)]
    body: Value,
}

/// `POST /api/triggers/{id}/test` with `{"body": {}}`: what a call would start.
pub(crate) async fn test(door: &HttpDoor, caller: &Caller, request: &mut Request, id: &str) -> Answer {
    let TestBody { body } = request.read_json(door).await?;
    Ok(json(StatusCode::OK, &door.service.test_trigger(caller, id, &body).await?))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct BackfillBody {
    from: f64,
    to: f64,
    #[serde(default)]
    dry_run: bool,
}

/// `POST /api/triggers/{id}/backfill` with `{"from": 0, "to": 0, "dry_run": false}`.
pub(crate) async fn backfill(door: &HttpDoor, caller: &Caller, request: &mut Request, id: &str) -> Answer {
    let BackfillBody { from, to, dry_run } = request.read_json(door).await?;
    let done = door.service.backfill_trigger(caller, id, Backfill { from, to, dry_run }).await?;
    let times = done.into_iter().map(|one| BackfillTime { time: one.at.time, local: one.at.local, job_id: one.job });
    Ok(answer::body(StatusCode::OK, &types::Backfill { times: times.collect(), dry_run }))
}

/// `POST /api/hooks/{id}`.
pub(crate) async fn call(door: &HttpDoor, caller: &Caller, request: &mut Request, id: &str) -> Answer {
    door.service.check_hook(caller, id).await?;
    let sender = HookSender {
        address: Some(request.peer()),
        program: request.header("user-agent").unwrap_or_default().to_owned(),
    };
    let body = match request.body(door, CALL_BYTES_MAX).await {
        Err(Problem::Service(Error::TooLarge { .. })) => {
            let name = request.header("x-atlas-delivery");
            door.service.note_delivery(caller, id, &sender, name, Err(&Error::CallTooLarge));
            return Err(Error::CallTooLarge.into());
        }
        body => body?,
    };
    let delivery = match (request.header("x-atlas-delivery"), &caller.request_id) {
        (Some(delivery), _) => Some(client_key(delivery)?.to_string()),
        (None, Some(key)) => Some(key.to_string()),
        (None, None) => None,
    };
    let call = HookCall {
        body,
        headers: HOOK_HEADERS.iter().filter_map(|name| Some((*name, request.joined_header(name)?))).collect(),
        delivery,
    };
    let answer = door.service.call_hook(caller, id, &call).await;
    let named =
        ["x-github-delivery", "x-shopify-event-id", "webhook-id"].iter().find_map(|name| call.headers.get(name));
    let named = call.delivery.as_deref().or(named.map(String::as_str));
    door.service.note_delivery(caller, id, &sender, named, answer.as_ref());
    Ok(match answer? {
        HookAnswer::Started(job) => answer::body(StatusCode::CREATED, &FiredJob { job_id: job }),
        HookAnswer::Greeted(answer) => json(StatusCode::OK, &answer),
    })
}

/// What is odd about a trigger, and which members of its document are ignored.
fn warnings(document: &Value, trigger: &Value) -> impl Iterator<Item = String> {
    Service::trigger_warnings(trigger).into_iter().chain(Service::ignored_trigger_members(document))
}

async fn document(door: &HttpDoor, request: &mut Request) -> Result<Value, Problem> {
    let body = request.body(door, door.limits.body_bytes_max).await?;
    serde_json::from_slice(&body).map_err(|_| Problem::malformed("Invalid JSON"))
}
