//! Health, figures and pages.

use atlas_service::catalogue::{
    CLUSTER_FULL, LIMIT_REACHED, MALFORMED, NAMESPACE_FULL, NAMESPACE_LIMIT, OBJECT_CHANGED, OBJECT_IN_USE,
    OBJECT_REFUSED, PACKAGE_REFUSED, PEERS_AWAY, QUEUE_FULL, UNKNOWN_AGENT, UNKNOWN_OBJECT, UNKNOWN_OBJECT_KIND,
    VERSION_TAKEN,
};

use super::super::{Body, Content, Operation};
use super::parts::{
    BODY, CONSISTENCY, DRY_RUN, IDEMPOTENCY_KEY, IF_MATCH, IF_NONE_MATCH, READ, STORED, WRITE, created, delete, get,
    ok, post, word,
};

pub(super) const OPERATIONS: &[Operation] = &[
    get("health", "/api/health", "Numbers of waiting and running jobs, and declared hardware.")
        .lenient()
        .takes(&[CONSISTENCY])
        .answers(&[ok("the controller is healthy", &[Content::Json("Health")])])
        .refuses(&[READ]),
    get("ready", "/api/ready", "Whether this controller can serve requests.")
        .takes(&[word("alone", &["true", "false"], "`true` succeeds as well while no other member runs")])
        .answers(&[ok("it can", &[Content::Json("Ready")])])
        .refuses(&[READ, &[MALFORMED]]),
    get("version", "/api/version", "The program and the cluster.")
        .answers(&[ok("the versions", &[Content::Json("Version")])])
        .refuses(&[&[MALFORMED]]),
    get("figures", "/api/metrics", "Statistics of all agents.")
        .lenient()
        .answers(&[ok("the figures", &[Content::Json("Figures")])])
        .refuses(&[&[MALFORMED]]),
    get("figuresOfAgent", "/api/metrics/{agent}", "Statistics of one agent.")
        .lenient()
        .answers(&[ok("the figures", &[Content::Json("AgentFigures")])])
        .refuses(&[&[MALFORMED, UNKNOWN_AGENT]]),
    get("metrics", "/metrics", "All instruments in the OpenMetrics text form.")
        .answers(&[ok("the instruments", &[Content::Other(atlas_telemetry::CONTENT_TYPE)])])
        .refuses(&[&[MALFORMED]]),
    get(
        "errorPage",
        "/errors/{code}",
        "The page of an error code: cause and what to try. The `type` of a problem document is its path.",
    )
    .answers(&[ok("the page, Markdown", &[Content::Other("text/plain")])])
    .refuses(&[&[MALFORMED]]),
    get("openApi", "/api/openapi.json", "This interface as an OpenAPI document.")
        .answers(&[ok("the document", &[Content::Json("Document")])])
        .refuses(&[&[MALFORMED]]),
    get("skills", "/api/skills", "The skills, the oldest first, then the platform's tools.")
        .lenient()
        .takes(&[CONSISTENCY])
        .answers(&[ok("the skills", &[Content::List("Skill")])])
        .refuses(&[READ]),
    post("deploySkill", "/api/skills", "Deploys a skill from its package. It replaces one of the same name.")
        .takes(&[word("replace", &["true", "false"], "`true` replaces another package of the same version")])
        .body(Body::Package)
        .answers(&[created("the skill is deployed", &[Content::Json("Registered")])])
        .refuses(&[
            WRITE,
            BODY,
            &[
                PACKAGE_REFUSED,
                UNKNOWN_OBJECT_KIND,
                UNKNOWN_OBJECT,
                OBJECT_CHANGED,
                OBJECT_REFUSED,
                VERSION_TAKEN,
                LIMIT_REACHED,
                CLUSTER_FULL,
                PEERS_AWAY,
            ],
        ]),
    get("getSkill", "/api/skills/{name}", "One skill.")
        .takes(&[CONSISTENCY])
        .answers(&[ok("the skill", &[Content::Json("Skill")])])
        .refuses(&[READ, &[UNKNOWN_OBJECT]]),
    post("testSkill", "/api/skills/{name}/test", "Calls a skill as an agent would, and waits for its end.")
        .body(Body::MaybeJson("SkillTest"))
        .answers(&[ok("how the call ended", &[Content::Json("SkillTested")])])
        .refuses(&[
            WRITE,
            BODY,
            STORED,
            &[
                UNKNOWN_OBJECT,
                PACKAGE_REFUSED,
                QUEUE_FULL,
                LIMIT_REACHED,
                CLUSTER_FULL,
                NAMESPACE_LIMIT,
                NAMESPACE_FULL,
            ],
        ]),
    delete("removeSkill", "/api/skills/{name}", "Removes a skill. Its package is kept as long as something uses it.")
        .takes(&[IF_MATCH, IF_NONE_MATCH, DRY_RUN, IDEMPOTENCY_KEY])
        .answers(&[ok("the skill is removed", &[Content::Json("Deleted")])])
        .refuses(&[WRITE, &[UNKNOWN_OBJECT_KIND, UNKNOWN_OBJECT, OBJECT_CHANGED, OBJECT_IN_USE]]),
    get("listConversations", "/api/conversations", "The conversations with agents, by id, without their messages.")
        .takes(&[CONSISTENCY])
        .answers(&[ok("the conversations", &[Content::List("Conversation")])])
        .refuses(&[READ]),
    get("getConversation", "/api/conversations/{id}", "A conversation with its messages, the oldest first.")
        .takes(&[CONSISTENCY])
        .answers(&[ok("the conversation", &[Content::Json("Conversation")])])
        .refuses(&[READ, &[UNKNOWN_OBJECT]]),
    delete(
        "deleteConversation",
        "/api/conversations/{id}",
        "Deletes a conversation. The answer of a turn under way is not kept.",
    )
    .answers(&[ok("the conversation is deleted", &[Content::Json("Deleted")])])
    .refuses(&[WRITE, &[UNKNOWN_OBJECT_KIND, UNKNOWN_OBJECT, OBJECT_CHANGED, OBJECT_IN_USE]]),
    get(
        "mcpRegistry",
        "/.well-known/mcp/server.json",
        "The agents as MCP servers: names, titles, addresses and models.",
    )
    .answers(&[ok("the servers", &[Content::Json("McpServers")])])
    .refuses(&[READ]),
];
