//! Conversations with agents, and the agents as MCP servers.

use atlas_access::Right;

use super::operation::{Body, Content, Operation};
use super::parts::{BODY, CONSISTENCY, IDEMPOTENCY_KEY, OWN_OR_CONTROL, READ, WRITE, created, delete, get, in_namespace, ok, post};
use crate::catalogue::{
    ARTIFACT_MISSING, CLUSTER_FULL, LIMIT_REACHED, OBJECT_CHANGED, OBJECT_IN_USE, PEERS_AWAY, UNKNOWN_OBJECT, UNKNOWN_OBJECT_KIND,
};
use crate::types::{Conversation, ConversationBranch, Deletion, McpServers};

operation_ids! {
    /// Conversations with agents, and the agents as MCP servers.
    Conversations {
        ListConversations = "listConversations",
        GetConversation = "getConversation",
        BranchConversation = "branchConversation",
        DeleteConversation = "deleteConversation",
        McpRegistry = "mcpRegistry",
    }
}

pub(super) const OPERATIONS: &[Operation] = &[
    get(
        Conversations::ListConversations.id(),
        in_namespace(Right::JobsRead),
        "/api/conversations",
        "The conversations with agents, by id, without their messages.",
    )
    .takes(&[CONSISTENCY])
    .answers(&[ok("the conversations", &[Content::list::<Conversation>()])])
    .refuses(&[READ]),
    get(
        Conversations::GetConversation.id(),
        in_namespace(Right::JobsRead),
        "/api/conversations/{id}",
        "A conversation with its messages, the oldest first.",
    )
    .takes(&[CONSISTENCY])
    .answers(&[ok("the conversation", &[Content::json::<Conversation>()])])
    .refuses(&[READ, &[UNKNOWN_OBJECT]]),
    post(
        Conversations::BranchConversation.id(),
        in_namespace(Right::JobsSubmit),
        "/api/conversations/{id}/branch",
        "Begins another conversation with the first turns of this one. Both go on independently of each other.",
    )
    .takes(&[IDEMPOTENCY_KEY])
    .body(Body::json::<ConversationBranch>())
    .answers(&[created("the new conversation, without its messages", &[Content::json::<Conversation>()])])
    .refuses(&[WRITE, BODY, &[UNKNOWN_OBJECT, OBJECT_CHANGED, LIMIT_REACHED, CLUSTER_FULL, ARTIFACT_MISSING, PEERS_AWAY]]),
    delete(
        Conversations::DeleteConversation.id(),
        OWN_OR_CONTROL,
        "/api/conversations/{id}",
        "Deletes a conversation. The answer of a turn under way is not kept.",
    )
    .answers(&[ok("the conversation is deleted", &[Content::json::<Deletion>()])])
    .refuses(&[WRITE, &[UNKNOWN_OBJECT_KIND, UNKNOWN_OBJECT, OBJECT_CHANGED, OBJECT_IN_USE]]),
    get(
        Conversations::McpRegistry.id(),
        in_namespace(Right::Public),
        "/.well-known/mcp/server.json",
        "The agents as MCP servers: names, titles, addresses and models.",
    )
    .answers(&[ok("the servers", &[Content::json::<McpServers>()])])
    .refuses(&[READ]),
];
