//! Chains and their runs.

use atlas_access::Right;

use super::operation::{Body, Content, Kind, Operation};
use super::parts::{
    BODY, CONSISTENCY, IDEMPOTENCY_KEY, LIMIT, OWN_OR_CONTROL, READ, STORED, STRICT, VIEW, WRITE, created, get,
    in_namespace, ok, post, query,
};
use crate::catalogue::{CHAIN_CYCLE, CLUSTER_FULL, LIMIT_REACHED, UNKNOWN_OBJECT, UNKNOWN_OBJECT_KIND, UNKNOWN_RUN};
use crate::types::{Cancellation, ChainCheck, ChainId, ChainRun, ChainStart, ChainToCheck, ChainTree};

operation_ids! {
    /// Chains and their runs.
    Chains {
        StartChain = "startChain",
        CheckChain = "checkChain",
        ListChainRuns = "listChainRuns",
        GetChainRun = "getChainRun",
        GetChainTree = "getChainTree",
        CancelChainRun = "cancelChainRun",
    }
}

pub(super) const OPERATIONS: &[Operation] = &[
    post(
        Chains::StartChain.id(),
        in_namespace(Right::JobsSubmit),
        "/api/chains",
        "Runs a chain. The answer is sent once the run is durable.",
    )
    .compatible()
    .takes(&[
        query("wait", Kind::Number, "seconds to wait for the end of the run, which is then the answer"),
        VIEW,
        STRICT,
        IDEMPOTENCY_KEY,
    ])
    .body(Body::json::<ChainStart>())
    .answers(&[
        created("the run is pending", &[Content::json::<ChainId>()]),
        ok("with `wait`: the run", &[Content::json::<ChainRun>()]),
    ])
    .refuses(&[WRITE, BODY, STORED, &[UNKNOWN_OBJECT, LIMIT_REACHED, CLUSTER_FULL, UNKNOWN_RUN]]),
    post(
        Chains::CheckChain.id(),
        in_namespace(Right::JobsRead),
        "/api/chains/check",
        "Shows how each step of a chain gets its input from the step before. Nothing runs.",
    )
    .body(Body::json::<ChainToCheck>())
    .answers(&[ok("the steps and the joins between them", &[Content::json::<ChainCheck>()])])
    .refuses(&[READ, BODY, STORED, &[UNKNOWN_OBJECT, UNKNOWN_OBJECT_KIND, CHAIN_CYCLE]]),
    get(
        Chains::ListChainRuns.id(),
        in_namespace(Right::JobsRead),
        "/api/chains",
        "Runs of chains, newest first. Those that ended last are kept.",
    )
    .compatible()
    .takes(&[query("status", Kind::Text, "only runs with this status"), LIMIT, VIEW, CONSISTENCY])
    .answers(&[ok("the runs", &[Content::list::<ChainRun>()])])
    .refuses(&[READ, STORED]),
    get(Chains::GetChainRun.id(), in_namespace(Right::JobsRead), "/api/chains/{id}", "One run of a chain.")
        .compatible()
        .takes(&[query("wait", Kind::Number, "seconds to wait for the end of the run"), VIEW, CONSISTENCY])
        .answers(&[ok("the run", &[Content::json::<ChainRun>()])])
        .refuses(&[READ, STORED, &[UNKNOWN_RUN]]),
    get(
        Chains::GetChainTree.id(),
        in_namespace(Right::JobsRead),
        "/api/chains/{id}/tree",
        "One run of a chain with the jobs of its steps, their retries and the jobs that they spawned.",
    )
    .takes(&[CONSISTENCY])
    .answers(&[ok("the run in its full view, with the jobs", &[Content::json::<ChainTree>()])])
    .refuses(&[READ, STORED, &[UNKNOWN_RUN]]),
    post(
        Chains::CancelChainRun.id(),
        OWN_OR_CONTROL,
        "/api/chains/{id}/cancel",
        "Cancels a run and the job of its current step.",
    )
    .takes(&[IDEMPOTENCY_KEY])
    .answers(&[ok("whether it was cancelled; false if it had ended", &[Content::json::<Cancellation>()])])
    .refuses(&[WRITE, &[UNKNOWN_RUN]]),
];
