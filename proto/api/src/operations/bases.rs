//! Document bases.

use atlas_access::Right;

use super::operation::{Body, Content, Kind, Operation, Parameter};
use super::parts::{
    BODY, CONSISTENCY, LIMIT, READ, STORED, WRITE, delete, get, in_namespace, ok, post, put, query, word,
};
use crate::catalogue::{CLUSTER_FULL, LIMIT_REACHED, OBJECT_CHANGED, OBJECT_REFUSED, UNKNOWN_OBJECT};
use crate::types::{
    AddedDocuments, Base, BaseChange, BaseCollecting, BaseDraft, BaseRebuild, Deletion, DocumentDrafts, DocumentPage,
    DocumentQuery, FoundDocuments, RebuiltBase, RemovedDocuments,
};

operation_ids! {
    /// Document bases.
    Bases {
        ListBases = "listBases",
        CreateBase = "createBase",
        GetBase = "getBase",
        ChangeBase = "changeBase",
        DeleteBase = "deleteBase",
        RebuildBase = "rebuildBase",
        CollectBase = "collectBase",
        ListDocuments = "listDocuments",
        AddDocuments = "addDocuments",
        RemoveDocuments = "removeDocuments",
        SearchDocuments = "searchDocuments",
    }
}

const SOURCE: Parameter = query("source", Kind::Text, "only documents whose sources begin with it");
const PATTERN: Parameter = query(
    "source",
    Kind::Text,
    "the source; if no document has it, a pattern in which `*` is any text, such as `docs/*.md`",
);
const ERASE: Parameter =
    word("erase", &["true", "false"], "`true` writes the base anew, so that no segment has removed documents");
const AFTER_SOURCE: Parameter = query("after", Kind::Text, "the `next` of the page before");
const TEXT: Parameter = word("text", &["true", "false"], "`true` adds the texts; a page then has up to 8 MiB of them");
const FULL: &[crate::Entry] = &[LIMIT_REACHED, CLUSTER_FULL];
const CHANGED: &[crate::Entry] = &[UNKNOWN_OBJECT, OBJECT_CHANGED];

pub(super) const OPERATIONS: &[Operation] = &[
    get(Bases::ListBases.id(), in_namespace(Right::ObjectsRead), "/api/bases", "The document bases by name.")
        .takes(&[CONSISTENCY])
        .answers(&[ok("the bases", &[Content::list::<Base>()])])
        .refuses(&[READ]),
    post(
        Bases::CreateBase.id(),
        in_namespace(Right::ObjectsWrite),
        "/api/bases",
        "Makes a document base. A repeat with the same settings finds it.",
    )
    .body(Body::json::<BaseDraft>())
    .answers(&[ok("the base", &[Content::json::<Base>()])])
    .refuses(&[WRITE, BODY, FULL, &[OBJECT_CHANGED, OBJECT_REFUSED]]),
    get(Bases::GetBase.id(), in_namespace(Right::ObjectsRead), "/api/bases/{name}", "One document base.")
        .takes(&[CONSISTENCY])
        .answers(&[ok("the base", &[Content::json::<Base>()])])
        .refuses(&[READ, &[UNKNOWN_OBJECT]]),
    put(
        Bases::ChangeBase.id(),
        in_namespace(Right::ObjectsWrite),
        "/api/bases/{name}",
        "Changes settings of a base. Documents are cut anew by them.",
    )
    .body(Body::json::<BaseChange>())
    .answers(&[ok("the base", &[Content::json::<Base>()])])
    .refuses(&[WRITE, BODY, FULL, CHANGED, &[OBJECT_REFUSED]]),
    delete(
        Bases::DeleteBase.id(),
        in_namespace(Right::ObjectsWrite),
        "/api/bases/{name}",
        "Deletes a base with its documents.",
    )
    .answers(&[ok("the base is deleted", &[Content::json::<Deletion>()])])
    .refuses(&[WRITE, &[UNKNOWN_OBJECT]]),
    post(
        Bases::RebuildBase.id(),
        in_namespace(Right::ObjectsWrite),
        "/api/bases/{name}/rebuild",
        "Writes the documents of a base anew: removed ones leave its segments.",
    )
    .body(Body::json::<BaseRebuild>())
    .answers(&[ok("the base", &[Content::json::<RebuiltBase>()])])
    .refuses(&[WRITE, BODY, STORED, FULL, CHANGED]),
    post(
        Bases::CollectBase.id(),
        in_namespace(Right::ObjectsWrite),
        "/api/bases/{name}/collect",
        "Reads the sources of a base by a job. If one does so already, the answer is that job.",
    )
    .answers(&[ok("the job", &[Content::json::<BaseCollecting>()])])
    .refuses(&[WRITE, FULL, CHANGED]),
    get(
        Bases::ListDocuments.id(),
        in_namespace(Right::ObjectsRead),
        "/api/bases/{name}/documents",
        "The documents of a base by source.",
    )
    .takes(&[SOURCE, AFTER_SOURCE, LIMIT, TEXT, CONSISTENCY])
    .answers(&[ok("a page", &[Content::json::<DocumentPage>()])])
    .refuses(&[READ, STORED, &[UNKNOWN_OBJECT]]),
    post(
        Bases::AddDocuments.id(),
        in_namespace(Right::ObjectsWrite),
        "/api/bases/{name}/documents",
        "Adds documents. One with the same source is replaced; one that is there already changes nothing.",
    )
    .body(Body::json::<DocumentDrafts>())
    .answers(&[ok("what happened to each", &[Content::json::<AddedDocuments>()])])
    .refuses(&[WRITE, BODY, STORED, FULL, CHANGED]),
    delete(
        Bases::RemoveDocuments.id(),
        in_namespace(Right::ObjectsWrite),
        "/api/bases/{name}/documents",
        "Removes documents. They are in no answer from then on.",
    )
    .takes(&[PATTERN, ERASE])
    .answers(&[ok("how many were removed", &[Content::json::<RemovedDocuments>()])])
    .refuses(&[WRITE, STORED, CHANGED]),
    post(
        Bases::SearchDocuments.id(),
        in_namespace(Right::ObjectsRead),
        "/api/bases/{name}/search",
        "The parts of documents that fit a question, the best first.",
    )
    .takes(&[CONSISTENCY])
    .body(Body::json::<DocumentQuery>())
    .answers(&[ok("what was found", &[Content::json::<FoundDocuments>()])])
    .refuses(&[READ, BODY, STORED, &[UNKNOWN_OBJECT]]),
];
