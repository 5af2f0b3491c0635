//! `/api/bases`: document bases.

use atlas_api::types::{BaseChange, BaseDraft, BaseRebuild, Deletion, DocumentDrafts, DocumentQuery, RemovedDocuments};
use atlas_service::{Caller, DOCUMENTS_BYTES_MAX, DocumentFilter};
use http::StatusCode;
use serde::de::DeserializeOwned;

use super::HttpDoor;
use super::answer::{self, Answer, Problem};
use super::request::Request;

/// `GET /api/bases`.
pub(crate) async fn list(door: &HttpDoor, caller: &Caller, request: &Request) -> Answer {
    let bases = door.service.bases().bases(caller, request.consistency()).await?;
    Ok(answer::body(StatusCode::OK, &bases))
}

/// `POST /api/bases`.
pub(crate) async fn create(door: &HttpDoor, caller: &Caller, request: &mut Request) -> Answer {
    let draft: BaseDraft = request.read_json(door).await?;
    let base = door.service.bases().create(caller, draft).await?;
    Ok(answer::body(StatusCode::OK, &base))
}

/// `GET /api/bases/{name}`.
pub(crate) async fn get(door: &HttpDoor, caller: &Caller, request: &Request, name: &str) -> Answer {
    let base = door.service.bases().base(caller, name, request.consistency()).await?;
    Ok(answer::body(StatusCode::OK, &base))
}

/// `PUT /api/bases/{name}`.
pub(crate) async fn change(door: &HttpDoor, caller: &Caller, request: &mut Request, name: &str) -> Answer {
    let change: BaseChange = request.read_json(door).await?;
    let base = door.service.bases().change(caller, name, change).await?;
    Ok(answer::body(StatusCode::OK, &base))
}

/// `DELETE /api/bases/{name}`.
pub(crate) async fn delete(door: &HttpDoor, caller: &Caller, name: &str) -> Answer {
    door.service.bases().delete(caller, name).await?;
    Ok(answer::body(StatusCode::OK, &Deletion { deleted: true }))
}

/// `POST /api/bases/{name}/rebuild`.
pub(crate) async fn rebuild(door: &HttpDoor, caller: &Caller, request: &mut Request, name: &str) -> Answer {
    let wanted: BaseRebuild = request.read_json(door).await?;
    let rebuilt = door.service.bases().rebuild(caller, name, &wanted).await?;
    Ok(answer::body(StatusCode::OK, &rebuilt))
}

/// `POST /api/bases/{name}/collect`.
pub(crate) async fn collect(door: &HttpDoor, caller: &Caller, name: &str) -> Answer {
    let collecting = door.service.collect_base(caller, name).await?;
    Ok(answer::body(StatusCode::OK, &collecting))
}

/// `GET /api/bases/{name}/documents`.
pub(crate) async fn documents(door: &HttpDoor, caller: &Caller, request: &Request, name: &str) -> Answer {
    let query = request.query();
    let filter = DocumentFilter {
        source: query.get("source").unwrap_or_default(),
        after: query.filled("after"),
        limit: query.limit(),
        text: query.flag("text")?,
    };
    let page = door.service.bases().documents(caller, name, &filter, request.consistency()).await?;
    Ok(answer::body(StatusCode::OK, &page))
}

/// `POST /api/bases/{name}/documents`.
pub(crate) async fn add(door: &HttpDoor, caller: &Caller, request: &mut Request, name: &str) -> Answer {
    let DocumentDrafts { documents } = read_documents(door, request).await?;
    let added = door.service.bases().add(caller, name, documents).await?;
    Ok(answer::body(StatusCode::OK, &added))
}

/// `DELETE /api/bases/{name}/documents`.
pub(crate) async fn remove(door: &HttpDoor, caller: &Caller, request: &Request, name: &str) -> Answer {
    let query = request.query();
    let source = query.get("source").unwrap_or_default();
    let bases = door.service.bases();
    let removed = match query.flag("erase")? {
        true => bases.erase(caller, name, &source).await?,
        false => bases.remove(caller, name, &source).await?,
    };
    Ok(answer::body(StatusCode::OK, &RemovedDocuments { removed }))
}

/// `POST /api/bases/{name}/search`.
pub(crate) async fn search(door: &HttpDoor, caller: &Caller, request: &mut Request, name: &str) -> Answer {
    let query: DocumentQuery = request.read_json(door).await?;
    let found = door.service.search_documents(caller, name, query, request.consistency()).await?;
    Ok(answer::body(StatusCode::OK, &found))
}

/// Reads a body that may be larger than others: it has documents.
async fn read_documents<T: DeserializeOwned>(door: &HttpDoor, request: &mut Request) -> Result<T, Problem> {
    let body = request.json_text(door, door.limits.body_bytes_max.max(DOCUMENTS_BYTES_MAX)).await?;
    serde_json::from_slice(&body).map_err(|error| Problem::malformed(error.to_string()))
}
