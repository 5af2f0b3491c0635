//! Nodes.

use atlas_service::catalogue::{CLUSTER_FULL, LABEL_OF_WORKER, LIMIT_REACHED, NODE_BUSY, UNKNOWN_NODE};

use super::super::{Body, Content, Operation};
use super::parts::{BODY, CONSISTENCY, IDEMPOTENCY_KEY, LIMIT_OF_ALL, OFFSET, READ, WRITE, delete, get, ok, post};

pub(super) const OPERATIONS: &[Operation] = &[
    get("listNodes", "/api/nodes", "Nodes by name, with their hardware and free resources.")
        .takes(&[LIMIT_OF_ALL, OFFSET, CONSISTENCY])
        .answers(&[ok("the nodes", &[Content::List("Node")])])
        .refuses(&[READ]),
    get("getNode", "/api/nodes/{name}", "One node.")
        .takes(&[CONSISTENCY])
        .answers(&[ok("the node", &[Content::Json("Node")])])
        .refuses(&[READ, &[UNKNOWN_NODE]]),
    delete("removeNode", "/api/nodes/{name}", "Removes a node that holds no lease.")
        .takes(&[IDEMPOTENCY_KEY])
        .answers(&[ok("the node is removed", &[Content::Json("Removed")])])
        .refuses(&[WRITE, &[UNKNOWN_NODE, NODE_BUSY]]),
    post("drainNode", "/api/nodes/{name}/drain", "Drains a node: no new leases until it is empty.")
        .takes(&[IDEMPOTENCY_KEY])
        .body(Body::MaybeJson("DrainRequest"))
        .answers(&[ok("it drains", &[Content::Json("Accepted")])])
        .refuses(&[WRITE, BODY, &[UNKNOWN_NODE]]),
    post("cordonNode", "/api/nodes/{name}/cordon", "Stops new leases on a node.")
        .takes(&[IDEMPOTENCY_KEY])
        .answers(&[ok("it is cordoned", &[Content::Json("Accepted")])])
        .refuses(&[WRITE, &[UNKNOWN_NODE]]),
    post("uncordonNode", "/api/nodes/{name}/uncordon", "Allows new leases on a node again; ends a drain.")
        .takes(&[IDEMPOTENCY_KEY])
        .answers(&[ok("the node accepts leases", &[Content::Json("Accepted")])])
        .refuses(&[WRITE, &[UNKNOWN_NODE]]),
    post("resumeNode", "/api/nodes/{name}/resume", "Closes the circuit of a node: it takes jobs as usual again.")
        .takes(&[IDEMPOTENCY_KEY])
        .answers(&[ok("the node accepts leases", &[Content::Json("Accepted")])])
        .refuses(&[WRITE, &[UNKNOWN_NODE]]),
    post(
        "labelNode",
        "/api/nodes/{name}/labels",
        "Sets or removes labels of a node; they override those of its worker.",
    )
    .takes(&[IDEMPOTENCY_KEY])
    .body(Body::Json("LabelRequest"))
    .answers(&[ok("the labels are changed", &[Content::Json("Accepted")])])
    .refuses(&[WRITE, BODY, &[UNKNOWN_NODE, LABEL_OF_WORKER, LIMIT_REACHED, CLUSTER_FULL]]),
];
