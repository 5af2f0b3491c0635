//! Conversations.

use atlas_conversations::{BegunTurn, ConversationScope, Mapping, Message};
use atlas_types::AgentName;
use serde_json::Value;

use crate::{Caller, Consistency, Error, Service};

impl Service {
    /// Sends a message: waits until earlier turns have ended, then submits the job that answers.
    pub async fn begin_turn(
        &self,
        caller: &Caller,
        name: &str,
        scope: ConversationScope,
        agent: &AgentName,
        mapping: &Mapping,
        message: Message,
    ) -> Result<BegunTurn, Error> {
        self.shared.conversations.begin_turn(caller, name, scope, agent, mapping, message).await
    }

    /// Adds the answer of a turn whose job has ended. A turn without an answer leaves the conversation as it was.
    pub async fn finish_turn(&self, caller: &Caller, name: &str, turn: BegunTurn) -> Result<(), Error> {
        self.shared.conversations.finish_turn(caller, name, turn).await
    }

    /// The conversations of a namespace by id.
    pub async fn conversations(&self, caller: &Caller, consistency: Consistency) -> Result<Vec<Value>, Error> {
        self.shared.conversations.conversations(caller, consistency).await
    }

    /// A conversation with its messages.
    pub async fn conversation(&self, caller: &Caller, name: &str, consistency: Consistency) -> Result<Value, Error> {
        self.shared.conversations.conversation(caller, name, consistency).await
    }

    /// Begins a conversation with the first turns of another one, or with all of them.
    pub async fn branch_conversation(
        &self,
        caller: &Caller,
        name: &str,
        id: &str,
        turns: Option<u64>,
    ) -> Result<Value, Error> {
        self.shared.conversations.branch(caller, name, id, turns).await
    }

    /// Deletes a conversation with its messages. A turn under way goes on; its answer is not kept.
    pub async fn delete_conversation(&self, caller: &Caller, name: &str) -> Result<(), Error> {
        self.shared.conversations.delete_conversation(caller, name).await
    }
}
