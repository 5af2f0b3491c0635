//! Nodes.

use atlas_access::Right;

use super::operation::{Body, Content, Operation};
use super::parts::{
    BODY, CONSISTENCY, IDEMPOTENCY_KEY, LIMIT_OF_ALL, OFFSET, READ, WRITE, delete, get, in_cluster, ok, post,
};
use crate::catalogue::{CLUSTER_FULL, LABEL_OF_WORKER, LIMIT_REACHED, NODE_BUSY, UNKNOWN_NODE};
use crate::types::{Acceptance, DrainRequest, LabelRequest, Node, Removal};

operation_ids! {
    /// Nodes.
    Nodes {
        ListNodes = "listNodes",
        GetNode = "getNode",
        RemoveNode = "removeNode",
        DrainNode = "drainNode",
        CordonNode = "cordonNode",
        UncordonNode = "uncordonNode",
        ResumeNode = "resumeNode",
        LabelNode = "labelNode",
    }
}

pub(super) const OPERATIONS: &[Operation] = &[
    get(
        Nodes::ListNodes.id(),
        in_cluster(Right::NodesRead),
        "/api/nodes",
        "Nodes by name, with their hardware and free resources.",
    )
    .takes(&[LIMIT_OF_ALL, OFFSET, CONSISTENCY])
    .answers(&[ok("the nodes", &[Content::list::<Node>()])])
    .refuses(&[READ]),
    get(Nodes::GetNode.id(), in_cluster(Right::NodesRead), "/api/nodes/{name}", "One node.")
        .takes(&[CONSISTENCY])
        .answers(&[ok("the node", &[Content::json::<Node>()])])
        .refuses(&[READ, &[UNKNOWN_NODE]]),
    delete(
        Nodes::RemoveNode.id(),
        in_cluster(Right::NodesOperate),
        "/api/nodes/{name}",
        "Removes a node that holds no lease.",
    )
    .takes(&[IDEMPOTENCY_KEY])
    .answers(&[ok("the node is removed", &[Content::json::<Removal>()])])
    .refuses(&[WRITE, &[UNKNOWN_NODE, NODE_BUSY]]),
    post(
        Nodes::DrainNode.id(),
        in_cluster(Right::NodesOperate),
        "/api/nodes/{name}/drain",
        "Drains a node: no new leases until it is empty.",
    )
    .takes(&[IDEMPOTENCY_KEY])
    .body(Body::maybe_json::<DrainRequest>())
    .answers(&[ok("it drains", &[Content::json::<Acceptance>()])])
    .refuses(&[WRITE, BODY, &[UNKNOWN_NODE]]),
    post(
        Nodes::CordonNode.id(),
        in_cluster(Right::NodesOperate),
        "/api/nodes/{name}/cordon",
        "Stops new leases on a node.",
    )
    .takes(&[IDEMPOTENCY_KEY])
    .answers(&[ok("it is cordoned", &[Content::json::<Acceptance>()])])
    .refuses(&[WRITE, &[UNKNOWN_NODE]]),
    post(
        Nodes::UncordonNode.id(),
        in_cluster(Right::NodesOperate),
        "/api/nodes/{name}/uncordon",
        "Allows new leases on a node again; ends a drain.",
    )
    .takes(&[IDEMPOTENCY_KEY])
    .answers(&[ok("the node accepts leases", &[Content::json::<Acceptance>()])])
    .refuses(&[WRITE, &[UNKNOWN_NODE]]),
    post(
        Nodes::ResumeNode.id(),
        in_cluster(Right::NodesOperate),
        "/api/nodes/{name}/resume",
        "Closes the circuit of a node: it takes jobs as usual again.",
    )
    .takes(&[IDEMPOTENCY_KEY])
    .answers(&[ok("the node accepts leases", &[Content::json::<Acceptance>()])])
    .refuses(&[WRITE, &[UNKNOWN_NODE]]),
    post(
        Nodes::LabelNode.id(),
        in_cluster(Right::NodesOperate),
        "/api/nodes/{name}/labels",
        "Sets or removes labels of a node; they override those of its worker.",
    )
    .takes(&[IDEMPOTENCY_KEY])
    .body(Body::json::<LabelRequest>())
    .answers(&[ok("the labels are changed", &[Content::json::<Acceptance>()])])
    .refuses(&[WRITE, BODY, &[UNKNOWN_NODE, LABEL_OF_WORKER, LIMIT_REACHED, CLUSTER_FULL]]),
];
