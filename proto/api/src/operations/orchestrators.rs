//! The selection of orchestrators.

use atlas_access::Right;

use super::operation::{Body, Content, Operation};
use super::parts::{BODY, CONSISTENCY, READ, STRICT, WRITE, get, in_namespace, ok, post};
use crate::catalogue::{
    CLUSTER_FULL, LIMIT_REACHED, NOT_AN_ORCHESTRATOR, OBJECT_CHANGED, OBJECT_REFUSED, QUEUE_FULL, UNKNOWN_OBJECT_KIND,
    UNKNOWN_ORCHESTRATOR,
};
use crate::types::{Orchestrator, OrchestratorName, SelectedOrchestrator};

operation_ids! {
    /// The selection of orchestrators.
    Orchestrators {
        Orchestrator = "orchestrator",
        SelectOrchestrator = "selectOrchestrator",
    }
}

pub(super) const OPERATIONS: &[Operation] = &[
    get(
        Orchestrators::Orchestrator.id(),
        in_namespace(Right::ObjectsRead),
        "/api/orchestrator",
        "The orchestrator that decides on jobs before they run.",
    )
    .compatible()
    .takes(&[CONSISTENCY])
    .answers(&[ok("the selected orchestrator", &[Content::json::<Orchestrator>()])])
    .refuses(&[READ]),
    post(
        Orchestrators::SelectOrchestrator.id(),
        in_namespace(Right::ObjectsWrite),
        "/api/orchestrator",
        "Selects an orchestrator. It decides on every job that gets its first lease after the answer.",
    )
    .compatible()
    .takes(&[STRICT])
    .body(Body::json::<OrchestratorName>())
    .answers(&[ok("it is selected", &[Content::json::<SelectedOrchestrator>()])])
    .refuses(&[
        WRITE,
        BODY,
        &[
            UNKNOWN_ORCHESTRATOR,
            NOT_AN_ORCHESTRATOR,
            UNKNOWN_OBJECT_KIND,
            OBJECT_CHANGED,
            OBJECT_REFUSED,
            LIMIT_REACHED,
            CLUSTER_FULL,
            QUEUE_FULL,
        ],
    ]),
];
