//! Conversations with agents: what was said is in artifacts, which the object names. The conversation functions of the service write it.

use atlas_types::{Digest, Level, ObjectKey, level};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::kind::{Kind, Refusal, read};

/// Most pieces of one conversation. Their numbers of turns fall by half at least, so there are never more.
const PIECES_MAX: usize = 65;

/// The document of a conversation.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct ConversationSpec {
    /// The agent that answers.
    pub agent: String,
    /// `shared`, `connection` or `named`.
    pub scope: String,
    /// The principal that began it.
    pub owner: String,
    /// Unix time in seconds.
    pub created_at: u64,
    /// Unix time in seconds.
    pub updated_at: u64,
    /// What was said, the oldest first.
    pub pieces: Vec<Piece>,
    /// The turn under way.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub turn: Option<TurnUnderWay>,
}

/// Some turns in a row: a message of the user and the answer each.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Piece {
    /// The artifact with the messages.
    pub digest: String,
    pub turns: u64,
    pub bytes: u64,
}

/// A turn whose answer is awaited. As long as there is one, no other begins.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct TurnUnderWay {
    /// The job that answers.
    pub job: String,
    /// The artifact with the message of the user.
    pub message: String,
    /// Unix time in seconds.
    pub since: u64,
}

impl ConversationSpec {
    /// Reads the spec of a conversation.
    pub fn read(spec: &[u8]) -> Result<Self, Refusal> {
        read(spec)
    }

    /// How many turns have ended.
    pub fn turns(&self) -> u64 {
        self.pieces.iter().map(|piece| piece.turns).sum()
    }

    /// The size of what was said.
    pub fn bytes(&self) -> u64 {
        self.pieces.iter().map(|piece| piece.bytes).sum()
    }

    fn digests(&self) -> impl Iterator<Item = &str> {
        let pieces = self.pieces.iter().map(|piece| piece.digest.as_str());
        pieces.chain(self.turn.iter().map(|turn| turn.message.as_str()))
    }

    fn check(&self) -> Result<(), Refusal> {
        if self.agent.is_empty() {
            return Err(Refusal::new("spec.agent", "is missing: a conversation begins with a message to an agent"));
        }
        if !["shared", "connection", "named"].contains(&self.scope.as_str()) {
            return Err(Refusal::new("spec.scope", "is none of shared, connection and named"));
        }
        if self.pieces.len() > PIECES_MAX {
            return Err(Refusal::new("spec.pieces", format!("has more than {PIECES_MAX} elements")));
        }
        if self.digests().any(|digest| digest.parse::<Digest>().is_err()) {
            return Err(Refusal::new("spec.pieces", "names something that is not a digest"));
        }
        Ok(())
    }
}

pub(crate) struct ConversationKind;

impl Kind for ConversationKind {
    fn name(&self) -> &'static str {
        "conversation"
    }

    fn about(&self) -> &'static str {
        "A conversation with an agent. Its spec comes from the messages that were sent."
    }

    fn level(&self) -> Level {
        level::CONVERSATIONS
    }

    fn right(&self) -> &'static str {
        "jobs.submit"
    }

    fn schema(&self) -> Value {
        json!({ "type": "object", "additionalProperties": false, "properties": {} })
    }

    fn admit(&self, _: &ObjectKey, spec: &[u8]) -> Result<(), Refusal> {
        ConversationSpec::read(spec)?.check()
    }

    fn artifacts(&self, spec: &[u8]) -> Vec<Digest> {
        let spec = ConversationSpec::read(spec).unwrap_or_default();
        spec.digests().filter_map(|digest| digest.parse().ok()).collect()
    }

    fn kept(&self) -> &'static [&'static str] {
        &["agent", "scope", "owner", "created_at", "updated_at", "pieces", "turn"]
    }
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;
    use crate::tests::check;

    #[test]
    fn documents() {
        let digest = "ab".repeat(32);
        let piece = format!(r#"{{"bytes":10,"digest":"{digest}","turns":1}}"#);
        let many = vec![piece.as_str(); 66].join(",");
        check(
            "conversation",
            &[
                "{}",
                r#"{"agent":"a","scope":"all"}"#,
                &format!(r#"{{"agent":"a","pieces":[{piece}],"scope":"shared"}}"#),
                r#"{"agent":"a","pieces":[{"digest":"x"}],"scope":"named"}"#,
                r#"{"agent":"a","scope":"named","turn":{"job":"job-1","message":"x","since":1}}"#,
            ],
            &expect![[r#"
                ! `spec.agent` is missing: a conversation begins with a message to an agent
                ! `spec.scope` is none of shared, connection and named
                ok {"agent":"a","pieces":[{"bytes":10,"digest":"abababababababababababababababababababababababababababababababab","turns":1}],"scope":"shared"}
                ! `spec.pieces` names something that is not a digest
                ! `spec.pieces` names something that is not a digest
            "#]],
        );
        let many = format!(r#"{{"agent":"a","pieces":[{many}],"scope":"shared"}}"#);
        assert!(ConversationSpec::read(many.as_bytes()).expect("a spec").check().is_err());
    }

    #[test]
    fn the_golden_document_names_its_artifacts() {
        let golden = include_bytes!("../golden/conversation.json");
        assert_eq!(ConversationKind.artifacts(golden), [Digest([0xab; 32]), Digest([0xcd; 32]), Digest([0xef; 32])]);
        let spec = ConversationSpec::read(golden).expect("a spec");
        assert_eq!((spec.turns(), spec.bytes()), (3, 700));
    }
}
