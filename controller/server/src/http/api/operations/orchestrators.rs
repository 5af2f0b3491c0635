//! The selection of orchestrators.

use atlas_service::catalogue::{
    CLUSTER_FULL, LIMIT_REACHED, NOT_AN_ORCHESTRATOR, OBJECT_CHANGED, OBJECT_REFUSED, QUEUE_FULL, UNKNOWN_OBJECT_KIND,
    UNKNOWN_ORCHESTRATOR,
};

use super::super::{Body, Content, Operation};
use super::parts::{BODY, CONSISTENCY, READ, WRITE, get, ok, post};

pub(super) const OPERATIONS: &[Operation] = &[
    get("orchestrator", "/api/orchestrator", "The orchestrator that decides on jobs before they run.")
        .lenient()
        .takes(&[CONSISTENCY])
        .answers(&[ok("the selected orchestrator", &[Content::Json("Orchestrator")])])
        .refuses(&[READ]),
    post(
        "selectOrchestrator",
        "/api/orchestrator",
        "Selects an orchestrator. It decides on every job that gets its first lease after the answer.",
    )
    .lenient()
    .body(Body::Json("OrchestratorName"))
    .answers(&[ok("it is selected", &[Content::Json("SelectedOrchestrator")])])
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
