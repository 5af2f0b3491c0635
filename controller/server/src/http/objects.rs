//! `/api/objects`.

use std::collections::BTreeMap;

use atlas_api::types::{Deletion, ObjectPage};
use atlas_service::{Caller, ObjectChange, ObjectFilter, ShownObject};
use atlas_types::{EventSeq, Expect};
use http::StatusCode;
use http::header::{ETAG, HeaderValue};
use serde::Deserialize;
use serde_json::Value;

use super::HttpDoor;
use super::answer::{Answer, Problem, Response, body};
use super::request::Request;

/// `GET /api/objects`: the kinds.
pub(crate) fn kinds(door: &HttpDoor, caller: &Caller) -> Answer {
    Ok(body(StatusCode::OK, &door.service.object_kinds(caller)))
}

/// `GET /api/objects/{kind}`, ordered by name.
pub(crate) async fn list(door: &HttpDoor, caller: &Caller, request: &Request, kind: &str) -> Answer {
    let query = request.query();
    let label = query.filled("label").map(|label| match label.split_once('=') {
        Some((key, value)) => (key.to_owned(), Some(value.to_owned())),
        None => (label, None),
    });
    let filter = ObjectFilter { label, after: query.filled("after"), limit: query.limit() };
    let (objects, next) = door.service.objects(caller, kind, &filter, request.consistency()).await?;
    Ok(body(StatusCode::OK, &ObjectPage { objects, next }))
}

/// `GET /api/objects/{kind}/{name}`.
pub(crate) async fn get(door: &HttpDoor, caller: &Caller, request: &Request, kind: &str, name: &str) -> Answer {
    Ok(answer(&door.service.object(caller, kind, name, request.consistency()).await?))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PutBody {
    #[serde(default)]
    labels: BTreeMap<String, String>,
    spec: Value,
}

/// `PUT /api/objects/{kind}/{name}` with `{"labels": {}, "spec": {}}`.
pub(crate) async fn put(door: &HttpDoor, caller: &Caller, request: &mut Request, kind: &str, name: &str) -> Answer {
    let PutBody { labels, spec } = request.read_json(door).await?;
    let change = change(request, kind, name)?;
    Ok(answer(&door.service.put_object(caller, &change, labels, &spec).await?))
}

/// `DELETE /api/objects/{kind}/{name}`.
pub(crate) async fn delete(door: &HttpDoor, caller: &Caller, request: &Request, kind: &str, name: &str) -> Answer {
    door.service.delete_object(caller, &change(request, kind, name)?).await?;
    Ok(body(StatusCode::OK, &Deletion { deleted: true }))
}

fn change(request: &Request, kind: &str, name: &str) -> Result<ObjectChange, Problem> {
    let expect = match (request.header("if-match"), request.header("if-none-match")) {
        (None, None) => Expect::Any,
        (None, Some("*")) => Expect::Absent,
        (Some(tag), None) => Expect::Revision(revision(tag)?),
        (None, Some(_)) => return Err(Problem::malformed("'If-None-Match' must be *")),
        (Some(_), Some(_)) => return Err(Problem::malformed("'If-Match' and 'If-None-Match' exclude each other")),
    };
    let (kind, name, dry_run) = (kind.to_owned(), name.to_owned(), request.query().flag("dry_run")?);
    Ok(ObjectChange { kind, name, expect, dry_run })
}

/// The revision of an entity tag, `"12"`.
fn revision(tag: &str) -> Result<EventSeq, Problem> {
    let number = tag.strip_prefix('"').and_then(|tag| tag.strip_suffix('"')).and_then(|tag| tag.parse().ok());
    number
        .map(EventSeq)
        .ok_or_else(|| Problem::malformed("'If-Match' must be one revision in quotation marks, such as \"12\""))
}

fn answer(object: &ShownObject) -> Response {
    let mut response = body(StatusCode::OK, &object.value);
    let tag = HeaderValue::from_str(&format!("\"{}\"", object.revision));
    response.headers_mut().extend(tag.map(|tag| (ETAG, tag)));
    response
}
