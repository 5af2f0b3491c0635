//! Agents and skills.

use atlas_access::Right;

use super::operation::{Body, Content, Kind, Operation};
use super::parts::{
    BODY, CONSISTENCY, IDEMPOTENCY_KEY, LIMIT_OF_ALL, OFFSET, READ, STORED, VIEW, WRITE, created, delete, get,
    in_namespace, ok, post, query, word,
};
use crate::catalogue::{
    AGENT_IN_USE, CHAIN_CYCLE, CLUSTER_FULL, CONTRACT_REFUSED, LIMIT_REACHED, NAMESPACE_FULL, NAMESPACE_LIMIT,
    PACKAGE_REFUSED, PEERS_AWAY, POLICY_DENIED, UNKNOWN_AGENT, UNKNOWN_REVISION, VERSION_TAKEN,
};
use crate::types::{
    Acceptance, Agent, Deletion, DeprecateRequest, Deprecation, Registration, Retirement,
    RollbackRequest, RolledBack,
};

operation_ids! {
    /// Agents and skills.
    Agents {
        ListAgents = "listAgents",
        RegisterAgent = "registerAgent",
        GetAgent = "getAgent",
        ListVersions = "listVersions",
        GetVersion = "getVersion",
        ResumeAgent = "resumeAgent",
        RollBackAgent = "rollBackAgent",
        RetireAgent = "retireAgent",
        DeleteAgent = "deleteAgent",
        DeprecateAgent = "deprecateAgent",
    }
}

pub(super) const OPERATIONS: &[Operation] = &[
    get(Agents::ListAgents.id(), in_namespace(Right::AgentsRead), "/api/agents", "Agent versions by name and version.")
    .plain_errors()
        .takes(&[
            word(
                "all",
                &["true", "false"],
                "`true` for all versions including retired ones, `false` for only the latest of each name",
            ),
            query("name", Kind::Text, "only versions of this agent"),
            query("capability", Kind::Text, "only versions with exactly this capability"),
            query("q", Kind::Text, "only versions with this text in name, description or capabilities, ignoring case"),
            LIMIT_OF_ALL,
            OFFSET,
            VIEW,
            CONSISTENCY,
        ])
        .answers(&[ok("the versions", &[Content::list::<Agent>()])])
        .refuses(&[READ, STORED]),
    post(
        Agents::RegisterAgent.id(),
        in_namespace(Right::AgentsPublish),
        "/api/agents",
        "Registers an agent from its package.",
    )
    .takes(&[
        word("replace", &["true", "false"], "`true` replaces another package of the same version"),
        IDEMPOTENCY_KEY,
    ])
    .body(Body::Package)
    .answers(&[created("the version is registered", &[Content::json::<Registration>()])])
    .refuses(&[
        WRITE,
        BODY,
        &[
            PACKAGE_REFUSED,
            CONTRACT_REFUSED,
            CHAIN_CYCLE,
            VERSION_TAKEN,
            POLICY_DENIED,
            LIMIT_REACHED,
            CLUSTER_FULL,
            NAMESPACE_LIMIT,
            NAMESPACE_FULL,
            PEERS_AWAY,
        ],
    ]),
    get(
        Agents::GetAgent.id(),
        in_namespace(Right::AgentsRead),
        "/api/agents/{name}",
        "One version with its schemas and its contract.",
    )
    .takes(&[query("version", Kind::Text, "a requirement such as `^1.2.0`; defaults to the latest"), CONSISTENCY])
    .answers(&[ok("the version", &[Content::json::<Agent>()])])
    .refuses(&[READ, STORED, &[UNKNOWN_AGENT]]),
    get(
        Agents::ListVersions.id(),
        in_namespace(Right::AgentsRead),
        "/api/agents/{name}/versions",
        "The versions of one agent, including retired ones.",
    )
    .takes(&[CONSISTENCY])
    .answers(&[ok("the versions", &[Content::list::<Agent>()])])
    .refuses(&[READ, STORED, &[UNKNOWN_AGENT]]),
    get(
        Agents::GetVersion.id(),
        in_namespace(Right::AgentsRead),
        "/api/agents/{name}/versions/{version}",
        "One version, retired or not.",
    )
    .takes(&[CONSISTENCY])
    .answers(&[ok("the version", &[Content::json::<Agent>()])])
    .refuses(&[READ, STORED, &[UNKNOWN_AGENT]]),
    post(
        Agents::ResumeAgent.id(),
        in_namespace(Right::AgentsPublish),
        "/api/agents/{name}/versions/{version}/resume",
        "Closes the circuit of a version: its jobs start as usual again.",
    )
    .takes(&[IDEMPOTENCY_KEY])
    .answers(&[ok("it is closed", &[Content::json::<Acceptance>()])])
    .refuses(&[WRITE, &[UNKNOWN_AGENT]]),
    post(
        Agents::RollBackAgent.id(),
        in_namespace(Right::AgentsPublish),
        "/api/agents/{name}/versions/{version}/rollback",
        "Registers an earlier package of a version again: that of a revision, or the one before the package of now.",
    )
    .takes(&[IDEMPOTENCY_KEY])
    .body(Body::maybe_json::<RollbackRequest>())
    .answers(&[ok("the version has the earlier package", &[Content::json::<RolledBack>()])])
    .refuses(&[
        WRITE,
        BODY,
        STORED,
        &[
            UNKNOWN_AGENT,
            UNKNOWN_REVISION,
            PACKAGE_REFUSED,
            CONTRACT_REFUSED,
            CHAIN_CYCLE,
            POLICY_DENIED,
            LIMIT_REACHED,
            PEERS_AWAY,
        ],
    ]),
    delete(
        Agents::RetireAgent.id(),
        in_namespace(Right::AgentsPublish),
        "/api/agents/{name}/versions/{version}",
        "Retires a version: it accepts no new jobs; its existing jobs finish.",
    )
    .takes(&[IDEMPOTENCY_KEY])
    .answers(&[ok("the version is retired", &[Content::json::<Retirement>()])])
    .refuses(&[WRITE, &[UNKNOWN_AGENT]]),
    post(
        Agents::DeleteAgent.id(),
        in_namespace(Right::AgentsPublish),
        "/api/agents/{name}/versions/{version}/delete",
        "Deletes a retired version that no waiting or running job uses.",
    )
    .takes(&[IDEMPOTENCY_KEY])
    .answers(&[ok("the version is deleted", &[Content::json::<Deletion>()])])
    .refuses(&[WRITE, &[UNKNOWN_AGENT, AGENT_IN_USE]]),
    post(
        Agents::DeprecateAgent.id(),
        in_namespace(Right::AgentsPublish),
        "/api/agents/{name}/versions/{version}/deprecate",
        "Marks a version as deprecated; it still accepts jobs.",
    )
    .takes(&[IDEMPOTENCY_KEY])
    .body(Body::maybe_json::<DeprecateRequest>())
    .answers(&[ok("the version is marked", &[Content::json::<Deprecation>()])])
    .refuses(&[WRITE, BODY, &[UNKNOWN_AGENT]]),
];
