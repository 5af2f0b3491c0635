//! `/api/memory` and `/api/knowledge`: what agents know together.

use atlas_api::LIMIT_MAX;
use atlas_api::types::{Deletion, KnowledgeChange, KnowledgeDraft, MemoryChange};
use atlas_service::{Acl, Caller, KnowledgeError, KnowledgeFilter, MemoryScope, WriteKey, unknown_entry};
use http::StatusCode;

use super::HttpDoor;
use super::answer::{self, Answer, Problem};
use super::request::Request;

/// `GET /api/memory`.
pub(crate) async fn memory(door: &HttpDoor, caller: &Caller, request: &Request) -> Answer {
    let scope = scope(&request.query().get("scope").unwrap_or_default())?;
    let memory = door.service.library().memory(caller, &scope, request.consistency()).await?;
    Ok(answer::body(StatusCode::OK, &memory))
}

/// `GET /api/memory/entries`.
pub(crate) async fn memory_entries(door: &HttpDoor, caller: &Caller, request: &Request) -> Answer {
    let scope = scope(&request.query().get("scope").unwrap_or_default())?;
    let entries = door.service.library().memory_entries(caller, &scope, request.consistency()).await?;
    Ok(answer::body(StatusCode::OK, &entries))
}

/// `POST /api/memory` with `{"content": …, "action": "append" | "write" | "compact"}`.
pub(crate) async fn write_memory(door: &HttpDoor, caller: &Caller, request: &mut Request) -> Answer {
    let MemoryChange { content, action, scope: named, summary_of } = request.read_json(door).await?;
    let scope = scope(&named)?;
    let library = door.service.library();
    match (action.as_str(), summary_of) {
        ("compact", Some(of)) => library.compact_memory(caller, &scope, &content, &of).await?,
        ("compact", None) => return Err(Problem::malformed("a summary needs 'summary_of'")),
        (_, Some(_)) => return Err(Problem::malformed("'summary_of' is only for the action compact")),
        (action @ ("append" | "write"), None) => {
            let replaces = action == "write";
            library.write_memory(caller, &scope, &content, replaces, key(door, caller), None).await?;
        }
        _ => return Err(Problem::malformed("'action' must be append, write or compact")),
    }
    let memory = library.memory(caller, &scope, request.consistency()).await?;
    Ok(answer::body(StatusCode::OK, &memory))
}

/// `DELETE /api/memory`.
pub(crate) async fn clear_memory(door: &HttpDoor, caller: &Caller, request: &Request) -> Answer {
    let scope = scope(&request.query().get("scope").unwrap_or_default())?;
    let deleted = door.service.library().clear_memory(caller, &scope).await?;
    Ok(answer::body(StatusCode::OK, &Deletion { deleted }))
}

/// `GET /api/knowledge/search`.
pub(crate) async fn search(door: &HttpDoor, caller: &Caller, request: &Request) -> Answer {
    let query = request.query();
    let tags = query.filled("tags").unwrap_or_default();
    let wanted = KnowledgeFilter {
        text: query.get("q").unwrap_or_default(),
        domain: query.filled("domain"),
        tags: tags.split(',').filter(|tag| !tag.is_empty()).map(str::to_owned).collect(),
    };
    let limit = query.filled("limit").map_or(atlas_service::SEARCH_LIMIT, |_| query.limit());
    let library = door.service.library();
    let found = library.search(caller, &wanted, &Acl::everything(), limit, request.consistency()).await?;
    Ok(answer::body(StatusCode::OK, &found))
}

/// `GET /api/knowledge/entries`.
pub(crate) async fn entries(door: &HttpDoor, caller: &Caller, request: &Request) -> Answer {
    let query = request.query();
    let (domain, page) = (query.filled("domain"), (query.limit().min(LIMIT_MAX as usize), query.offset()?));
    let entries = door.service.library().entries(caller, domain.as_deref(), page, request.consistency()).await?;
    Ok(answer::body(StatusCode::OK, &entries))
}

/// `GET /api/knowledge/domains`.
pub(crate) async fn domains(door: &HttpDoor, caller: &Caller, request: &Request) -> Answer {
    let domains = door.service.library().domains(caller, request.consistency()).await?;
    Ok(answer::body(StatusCode::OK, &domains))
}

/// `GET /api/knowledge/acl`.
pub(crate) async fn acl(door: &HttpDoor, caller: &Caller, request: &Request) -> Answer {
    let agent = request.query().filled("agent");
    let acl = door.service.knowledge_acl(caller, agent.as_deref(), request.consistency()).await?;
    Ok(answer::body(StatusCode::OK, &acl))
}

/// `GET /api/knowledge/entries/{id}`.
pub(crate) async fn entry(door: &HttpDoor, caller: &Caller, request: &Request, id: &str) -> Answer {
    let library = door.service.library();
    let entry = library.entry(caller, id, &Acl::everything(), request.consistency()).await?;
    Ok(answer::body(StatusCode::OK, &entry.ok_or_else(|| unknown_entry(id))?))
}

/// `POST /api/knowledge/entries`.
pub(crate) async fn store(door: &HttpDoor, caller: &Caller, request: &mut Request) -> Answer {
    let draft: KnowledgeDraft = request.read_json(door).await?;
    let stored = door.service.library().store(caller, draft, &Acl::everything(), key(door, caller), None).await;
    Ok(answer::body(StatusCode::OK, &stored.map_err(problem)?))
}

/// `PUT /api/knowledge/entries/{id}`.
pub(crate) async fn change(door: &HttpDoor, caller: &Caller, request: &mut Request, id: &str) -> Answer {
    let change: KnowledgeChange = request.read_json(door).await?;
    let changed = door.service.library().change(caller, id, change, &Acl::everything(), key(door, caller), None).await;
    let changed = changed.map_err(problem)?.ok_or_else(|| unknown_entry(id))?;
    Ok(answer::body(StatusCode::OK, &changed))
}

/// `DELETE /api/knowledge/entries/{id}`.
pub(crate) async fn delete(door: &HttpDoor, caller: &Caller, id: &str) -> Answer {
    if !door.service.library().delete_entry(caller, id).await? {
        return Err(unknown_entry(id).into());
    }
    Ok(answer::body(StatusCode::OK, &Deletion { deleted: true }))
}

fn scope(text: &str) -> Result<MemoryScope, Problem> {
    text.parse().map_err(|error: atlas_service::ScopeError| Problem::malformed(error.to_string()))
}

/// What the request is known by.
fn key(door: &HttpDoor, caller: &Caller) -> WriteKey {
    match &caller.request_id {
        Some(id) => WriteKey::of_request(caller.principal.as_str(), id.as_str()),
        None => WriteKey::random(door.env.entropy.u128()),
    }
}

fn problem(error: KnowledgeError) -> Problem {
    match error {
        KnowledgeError::Cluster(error) => error.into(),
        // Callers of this door may write every domain.
        KnowledgeError::Domain(_) => Problem::malformed(error.to_string()),
    }
}
