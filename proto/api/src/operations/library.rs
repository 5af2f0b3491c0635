//! Memory and knowledge that agents share.

use atlas_access::Right;

use super::operation::{Body, Content, Kind, Operation, Parameter};
use super::parts::{
    BODY, CONSISTENCY, IDEMPOTENCY_KEY, LIMIT, OFFSET, READ, WRITE, delete, get, in_namespace, ok, post, put, query,
};
use crate::catalogue::{
    CLUSTER_FULL, LIMIT_REACHED, OBJECT_CHANGED, STORE_FAILED, UNKNOWN_AGENT, UNKNOWN_JOB, UNKNOWN_OBJECT,
    UNKNOWN_OBJECT_KIND,
};
use crate::types::{
    Deletion, KnowledgeAcl, KnowledgeChange, KnowledgeDomain, KnowledgeDraft, KnowledgeEntry, Memory, MemoryChange,
    MemoryEntry,
};

operation_ids! {
    /// Memory and knowledge that agents share.
    Library {
        GetMemory = "getMemory",
        ListMemoryEntries = "listMemoryEntries",
        WriteMemory = "writeMemory",
        ClearMemory = "clearMemory",
        SearchKnowledge = "searchKnowledge",
        ListKnowledge = "listKnowledge",
        StoreKnowledge = "storeKnowledge",
        GetKnowledge = "getKnowledge",
        ChangeKnowledge = "changeKnowledge",
        DeleteKnowledge = "deleteKnowledge",
        ListKnowledgeDomains = "listKnowledgeDomains",
        GetKnowledgeAcl = "getKnowledgeAcl",
    }
}

const SCOPE: Parameter =
    query("scope", Kind::Text, "whose memory: `namespace`, `agent:NAME`, `user:NAME` or `conversation:ID`");
const DOMAIN: Parameter = query("domain", Kind::Text, "only entries of this domain");
/// What a store outside of the cluster does.
const STORE: &[crate::Entry] = &[STORE_FAILED];
const FULL: &[crate::Entry] = &[UNKNOWN_OBJECT_KIND, LIMIT_REACHED, CLUSTER_FULL];

pub(super) const OPERATIONS: &[Operation] = &[
    get(Library::GetMemory.id(), in_namespace(Right::ObjectsRead), "/api/memory", "The text of a shared memory.")
        .takes(&[SCOPE, CONSISTENCY])
        .answers(&[ok("the memory", &[Content::json::<Memory>()])])
        .refuses(&[READ, STORE]),
    post(
        Library::WriteMemory.id(),
        in_namespace(Right::ObjectsWrite),
        "/api/memory",
        "Appends a line to a shared memory, or replaces its text or its oldest entries.",
    )
    .takes(&[IDEMPOTENCY_KEY])
    .body(Body::json::<MemoryChange>())
    .answers(&[ok("the memory", &[Content::json::<Memory>()])])
    .refuses(&[WRITE, BODY, FULL, STORE, &[OBJECT_CHANGED, UNKNOWN_JOB]]),
    delete(
        Library::ClearMemory.id(),
        in_namespace(Right::ObjectsWrite),
        "/api/memory",
        "Removes a shared memory with its history.",
    )
    .takes(&[SCOPE])
    .answers(&[ok("whether there was one", &[Content::json::<Deletion>()])])
    .refuses(&[WRITE, STORE, &[UNKNOWN_OBJECT_KIND]]),
    get(
        Library::ListMemoryEntries.id(),
        in_namespace(Right::ObjectsRead),
        "/api/memory/entries",
        "What was written to a shared memory and by whom, the oldest first; also the latest that was replaced.",
    )
    .takes(&[SCOPE, CONSISTENCY])
    .answers(&[ok("the entries", &[Content::list::<MemoryEntry>()])])
    .refuses(&[READ, STORE]),
    get(
        Library::SearchKnowledge.id(),
        in_namespace(Right::ObjectsRead),
        "/api/knowledge/search",
        "The entries that contain a text, by domain and id.",
    )
    .takes(&[
        query("q", Kind::Text, "compared without case with content and tags; all entries if it is empty"),
        DOMAIN,
        query("tags", Kind::Text, "only entries with one of these tags, with commas between them"),
        LIMIT,
        CONSISTENCY,
    ])
    .answers(&[ok("the entries", &[Content::list::<KnowledgeEntry>()])])
    .refuses(&[READ, STORE]),
    get(
        Library::ListKnowledge.id(),
        in_namespace(Right::ObjectsRead),
        "/api/knowledge/entries",
        "The entries, by domain and id.",
    )
    .takes(&[DOMAIN, LIMIT, OFFSET, CONSISTENCY])
    .answers(&[ok("the entries", &[Content::list::<KnowledgeEntry>()])])
    .refuses(&[READ, STORE]),
    post(
        Library::StoreKnowledge.id(),
        in_namespace(Right::ObjectsWrite),
        "/api/knowledge/entries",
        "Stores an entry. One with the same id is replaced.",
    )
    .takes(&[IDEMPOTENCY_KEY])
    .body(Body::json::<KnowledgeDraft>())
    .answers(&[ok("the entry", &[Content::json::<KnowledgeEntry>()])])
    .refuses(&[WRITE, BODY, FULL, STORE, &[UNKNOWN_OBJECT]]),
    get(Library::GetKnowledge.id(), in_namespace(Right::ObjectsRead), "/api/knowledge/entries/{id}", "One entry.")
        .takes(&[CONSISTENCY])
        .answers(&[ok("the entry", &[Content::json::<KnowledgeEntry>()])])
        .refuses(&[READ, STORE, &[UNKNOWN_OBJECT]]),
    put(
        Library::ChangeKnowledge.id(),
        in_namespace(Right::ObjectsWrite),
        "/api/knowledge/entries/{id}",
        "Changes members of an entry.",
    )
    .body(Body::json::<KnowledgeChange>())
    .answers(&[ok("the entry", &[Content::json::<KnowledgeEntry>()])])
    .refuses(&[WRITE, BODY, FULL, STORE, &[UNKNOWN_OBJECT, OBJECT_CHANGED]]),
    delete(
        Library::DeleteKnowledge.id(),
        in_namespace(Right::ObjectsWrite),
        "/api/knowledge/entries/{id}",
        "Deletes an entry.",
    )
    .answers(&[ok("the entry is deleted", &[Content::json::<Deletion>()])])
    .refuses(&[WRITE, STORE, &[UNKNOWN_OBJECT_KIND, UNKNOWN_OBJECT]]),
    get(
        Library::ListKnowledgeDomains.id(),
        in_namespace(Right::ObjectsRead),
        "/api/knowledge/domains",
        "The domains that have entries, by name.",
    )
    .takes(&[CONSISTENCY])
    .answers(&[ok("the domains", &[Content::list::<KnowledgeDomain>()])])
    .refuses(&[READ, STORE]),
    get(
        Library::GetKnowledgeAcl.id(),
        in_namespace(Right::ObjectsRead),
        "/api/knowledge/acl",
        "Which domains agents read and write.",
    )
    .takes(&[query("agent", Kind::Text, "only this agent"), CONSISTENCY])
    .answers(&[ok("what they may do", &[Content::json::<KnowledgeAcl>()])])
    .refuses(&[READ, &[UNKNOWN_AGENT]]),
];
