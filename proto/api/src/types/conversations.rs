//! Conversations, and where MCP clients find agents.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(extend("additionalProperties" = false))]
pub struct Conversation {
    /// Continues the conversation as `conversation_id` of `send_message`.
    pub id: String,
    /// The agent that answers.
    pub agent: String,
    /// Who continues it: all, one MCP session, or those who send its id.
    #[schemars(extend("enum" = ["shared", "connection", "named"]))]
    pub scope: String,
    /// The principal that began it.
    pub owner: String,
    /// Messages that were answered.
    #[schemars(range(min = 0))]
    pub turns: u64,
    /// Size of the messages.
    #[schemars(range(min = 0))]
    pub bytes: u64,
    /// Unix time in seconds.
    pub created_at: i64,
    /// Unix time in seconds.
    pub updated_at: i64,
    /// When it is removed if there is no further turn, Unix time in seconds; null for never.
    pub expires_at: Option<i64>,
    /// The job that answers the latest message.
    pub running_job: Option<String>,
    /// What was said, the oldest first; not in lists.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub messages: Option<Vec<ConversationMessage>>,
}

/// One message of a conversation.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(inline)]
pub struct ConversationMessage {
    #[schemars(extend("enum" = ["user", "assistant"]))]
    pub role: String,
    pub content: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub images: Option<Vec<Map<String, Value>>>,
    /// The model and the settings that a message was asked with, if the agent lets its input choose them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub settings: Option<Map<String, Value>>,
}

/// A conversation that begins with turns of another one.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ConversationBranch {
    /// The name of the new conversation.
    pub id: String,
    /// How many turns it begins with; all without it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "u64")]
    pub turns: Option<u64>,
}

/// An MCP server and the issuers of tokens for it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct ProtectedResource {
    /// the address of the server
    pub resource: String,
    /// the addresses of the issuers
    pub authorization_servers: Vec<String>,
    /// how a token is sent
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bearer_methods_supported: Option<Vec<String>>,
    /// the client of `atlasctl login` at each issuer that has one
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub atlasctl_clients: BTreeMap<String, String>,
}

/// The registry document of MCP.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct McpServers {
    /// one for each agent
    #[schemars(extend("items" = {"type": "object", "required": ["server", "_meta"]}))]
    pub servers: Vec<Map<String, Value>>,
}
