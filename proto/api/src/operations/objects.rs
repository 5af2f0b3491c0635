//! Objects.

use atlas_access::Right;

use super::operation::{Body, Content, Kind, Operation};
use super::parts::{
    BODY, CONSISTENCY, DRY_RUN, IDEMPOTENCY_KEY, IF_MATCH, IF_NONE_MATCH, LIMIT, READ, WRITE, delete, get, in_cluster,
    in_namespace, ok, post, put, query,
};
use crate::catalogue::{
    CHAIN_CYCLE, CLUSTER_FULL, LIMIT_REACHED, MALFORMED, MODEL_CALL, NO_LOGIN, NO_SECRETS_KEY, NOT_PRIVATE,
    OBJECT_CHANGED, OBJECT_IN_USE, OBJECT_REFUSED, UNKNOWN_OBJECT, UNKNOWN_OBJECT_KIND,
};
use crate::types::{
    Deletion, LoginProgress, LoginRequest, Object, ObjectKind, ObjectPage, ObjectRequest, SecretRequest,
    ServerLoginProgress, ServerLoginRequest,
};

operation_ids! {
    /// Objects.
    Objects {
        ListObjectKinds = "listObjectKinds",
        ListObjects = "listObjects",
        GetObject = "getObject",
        PutObject = "putObject",
        DeleteObject = "deleteObject",
        SetSecret = "setSecret",
        LogInToModel = "logInToModel",
        LogOutOfModel = "logOutOfModel",
        LogInToMcpServer = "logInToMcpServer",
        LogOutOfMcpServer = "logOutOfMcpServer",
    }
}

pub(super) const OPERATIONS: &[Operation] = &[
    get(Objects::ListObjectKinds.id(), in_cluster(Right::Public), "/api/objects", "The kinds of objects, with the JSON Schema of each.")
        .answers(&[ok("the kinds", &[Content::list::<ObjectKind>()])])
        .refuses(&[&[MALFORMED]]),
    get(Objects::ListObjects.id(), in_namespace(Right::ObjectsRead), "/api/objects/{kind}", "Objects of a kind by name.")
        .takes(&[
            query("label", Kind::Text, "only objects with this label, `KEY` or `KEY=VALUE`"),
            query("after", Kind::Text, "the name after which the page begins, `next` of the page before"),
            LIMIT,
            CONSISTENCY,
        ])
        .answers(&[ok("one page", &[Content::json::<ObjectPage>()])])
        .refuses(&[READ, &[UNKNOWN_OBJECT_KIND]]),
    get(Objects::GetObject.id(), in_namespace(Right::ObjectsRead), "/api/objects/{kind}/{name}", "One object. `ETag` is its revision.")
        .takes(&[CONSISTENCY])
        .answers(&[ok("the object", &[Content::json::<Object>()])])
        .refuses(&[READ, &[UNKNOWN_OBJECT_KIND, UNKNOWN_OBJECT]]),
    put(
        Objects::PutObject.id(),
        in_namespace(Right::ObjectsWrite),
        "/api/objects/{kind}/{name}",
        "Makes an object, or replaces its labels and its spec. The same document again changes nothing.",
    )
    .takes(&[IF_MATCH, IF_NONE_MATCH, DRY_RUN, IDEMPOTENCY_KEY])
    .body(Body::json::<ObjectRequest>())
    .answers(&[ok("the object as it is now, or would be", &[Content::json::<Object>()])])
    .refuses(&[WRITE, BODY, &[UNKNOWN_OBJECT_KIND, UNKNOWN_OBJECT, OBJECT_CHANGED, OBJECT_REFUSED, CHAIN_CYCLE, LIMIT_REACHED, CLUSTER_FULL]]),
    delete(Objects::DeleteObject.id(), in_namespace(Right::ObjectsWrite), "/api/objects/{kind}/{name}", "Deletes an object that nothing uses.")
        .takes(&[IF_MATCH, IF_NONE_MATCH, DRY_RUN, IDEMPOTENCY_KEY])
        .answers(&[ok("the object is deleted", &[Content::json::<Deletion>()])])
        .refuses(&[WRITE, &[UNKNOWN_OBJECT_KIND, UNKNOWN_OBJECT, OBJECT_CHANGED, OBJECT_IN_USE]]),
    put(
        Objects::SetSecret.id(),
        in_namespace(Right::ObjectsWrite),
        "/api/secrets/{name}",
        "Sets the value of a secret as a new version. No answer contains a value; everything else about a secret is the object of the kind `secret`.",
    )
    .body(Body::json::<SecretRequest>())
    .answers(&[ok("the secret as it is now, without values", &[Content::json::<Object>()])])
    .refuses(&[WRITE, BODY, &[NO_SECRETS_KEY, NOT_PRIVATE, UNKNOWN_OBJECT, OBJECT_CHANGED, OBJECT_REFUSED, LIMIT_REACHED, CLUSTER_FULL]]),
    post(
        Objects::LogInToModel.id(),
        in_namespace(Right::ObjectsWrite),
        "/api/models/{name}/login",
        "One step of a login to a model whose provider gives access tokens. The tokens become the secret `NAME.login`; no answer contains one.",
    )
    .body(Body::json::<LoginRequest>())
    .answers(&[ok("how far the login is", &[Content::json::<LoginProgress>()])])
    .refuses(&[WRITE, BODY, &[NO_SECRETS_KEY, NOT_PRIVATE, UNKNOWN_OBJECT, OBJECT_CHANGED, OBJECT_REFUSED, LIMIT_REACHED, CLUSTER_FULL, NO_LOGIN, MODEL_CALL]]),
    delete(Objects::LogOutOfModel.id(), in_namespace(Right::ObjectsWrite), "/api/models/{name}/login", "Forgets the tokens of a model. The issuer is not told.")
        .answers(&[ok("the tokens are deleted", &[Content::json::<LoginProgress>()])])
        .refuses(&[WRITE, &[UNKNOWN_OBJECT, OBJECT_CHANGED, OBJECT_IN_USE]]),
    post(
        Objects::LogInToMcpServer.id(),
        in_namespace(Right::ObjectsWrite),
        "/api/mcp-servers/{name}/login",
        "One step of a login at an MCP server that wants access tokens. The tokens become the secret `NAME.mcp-login`; no answer contains one.",
    )
    .body(Body::json::<ServerLoginRequest>())
    .answers(&[ok("how far the login is", &[Content::json::<ServerLoginProgress>()])])
    .refuses(&[WRITE, BODY, &[NO_SECRETS_KEY, NOT_PRIVATE, UNKNOWN_OBJECT, OBJECT_CHANGED, OBJECT_REFUSED, LIMIT_REACHED, CLUSTER_FULL, NO_LOGIN, MODEL_CALL]]),
    delete(Objects::LogOutOfMcpServer.id(), in_namespace(Right::ObjectsWrite), "/api/mcp-servers/{name}/login", "Forgets the tokens of an MCP server. The issuer is not told.")
        .answers(&[ok("the tokens are deleted", &[Content::json::<ServerLoginProgress>()])])
        .refuses(&[WRITE, &[UNKNOWN_OBJECT, OBJECT_CHANGED, OBJECT_IN_USE]]),
];
