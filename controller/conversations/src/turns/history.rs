//! What was said, in artifacts: each has some turns in a row. Two neighbours become one when the later has at least as many turns as the
//! earlier, so that a conversation of n turns has at most about log n artifacts.

use atlas_desk::Error;
use atlas_objects::{ConversationSpec, Piece};
use atlas_types::Digest;
use serde_json::{Map, Value};

use super::Message;
use crate::Conversations;

impl Conversations {
    /// All messages of a conversation, the oldest first, and what its agent keeps.
    pub(super) async fn said(&self, spec: &ConversationSpec) -> Result<(Vec<Message>, Option<Value>), Error> {
        let mut messages = Vec::new();
        for piece in &spec.pieces {
            messages.extend(self.read_messages(&piece.digest).await?);
        }
        let kept = only_last_kept(&mut messages);
        Ok((messages, kept))
    }

    /// A message with the settings that are others than before, so that long instructions are not stored with each message.
    pub(super) async fn with_news(&self, spec: &ConversationSpec, message: &Message) -> Result<Message, Error> {
        let mut message = message.clone();
        if !message.settings.is_empty() {
            let (messages, _) = self.said(spec).await?;
            only_news(&messages, &mut message.settings);
        }
        Ok(message)
    }

    /// Stores messages; the number of turns is left to the caller.
    pub(super) async fn store_messages(&self, messages: &[Message]) -> Result<Piece, Error> {
        let text = serde_json::to_vec(messages).map_err(|error| Error::internal("write messages", &error))?;
        let bytes = text.len() as u64;
        let stored = self.desk.artifacts.store(text.into()).await;
        let digest = stored.map_err(|error| Error::storing("the messages", error))?;
        Ok(Piece { digest: digest.to_string(), turns: 0, bytes })
    }

    pub(super) async fn read_messages(&self, digest: &str) -> Result<Vec<Message>, Error> {
        let digest: Digest = digest.parse().map_err(|_| Error::Internal)?;
        let bytes = self.desk.artifact(digest).await?;
        serde_json::from_slice(&bytes).map_err(|error| Error::internal("read messages", &error))
    }

    /// Adds a turn: the message in an artifact, and the answer to it.
    pub(super) async fn add_turn(
        &self,
        spec: &mut ConversationSpec,
        message: &str,
        answer: &[Message],
    ) -> Result<(), Error> {
        let mut messages = self.read_messages(message).await?;
        messages.extend(answer.iter().cloned());
        spec.pieces.push(Piece { turns: 1, ..self.store_messages(&messages).await? });
        self.join_pieces(spec).await
    }

    /// Joins the latest pieces as long as they have to be.
    pub(super) async fn join_pieces(&self, spec: &mut ConversationSpec) -> Result<(), Error> {
        while let Some(at) = to_join(&spec.pieces) {
            let (earlier, later) = (&spec.pieces[at], &spec.pieces[at + 1]);
            let mut messages = self.read_messages(&earlier.digest).await?;
            messages.extend(self.read_messages(&later.digest).await?);
            if let Some(kept) = only_last_kept(&mut messages)
                && let Some(last) = messages.last_mut()
            {
                last.kept = Some(kept);
            }
            let joined = Piece { turns: earlier.turns + later.turns, ..self.store_messages(&messages).await? };
            spec.pieces.splice(at.., [joined]);
        }
        Ok(())
    }
}

/// Takes what is kept out of messages. What was kept last counts.
fn only_last_kept(messages: &mut [Message]) -> Option<Value> {
    messages.iter_mut().filter_map(|message| message.kept.take()).last()
}

/// Leaves the settings that are others than the latest ones.
fn only_news(messages: &[Message], settings: &mut Map<String, Value>) {
    let latest = |name: &str| messages.iter().rev().find_map(|message| message.settings.get(name));
    let known: Vec<String> =
        settings.iter().filter(|(name, value)| latest(name) == Some(value)).map(|(name, _)| name.clone()).collect();
    for name in known {
        settings.shift_remove(&name);
    }
}

/// The place of the piece that becomes one with the last.
fn to_join(pieces: &[Piece]) -> Option<usize> {
    let at = pieces.len().checked_sub(2)?;
    (pieces[at].turns <= pieces[at + 1].turns).then_some(at)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn settings_are_stored_when_they_change() {
        let settings = |value: Value| value.as_object().cloned().unwrap_or_default();
        let asked = |value: Value| Message { settings: settings(value), ..Message::user("a".to_owned(), Vec::new()) };
        let before = [asked(json!({"model": "m", "chosen": {"top_k": 1}})), asked(json!({"model": "n"}))];
        let mut now = settings(json!({"model": "n", "chosen": {"top_k": 1}, "other": 5}));
        only_news(&before, &mut now);
        assert_eq!(Value::Object(now), json!({"other": 5}));
        let mut back = settings(json!({"model": "m", "chosen": {}}));
        only_news(&before, &mut back);
        assert_eq!(Value::Object(back), json!({"model": "m", "chosen": {}}));
    }

    #[test]
    fn pieces_stay_few() {
        let mut turns: Vec<u64> = Vec::new();
        for count in 1..=1_000 {
            turns.push(u64::from(count > 0));
            let pieces = |turns: &[u64]| -> Vec<Piece> {
                turns.iter().map(|turns| Piece { turns: *turns, ..Piece::default() }).collect()
            };
            while let Some(at) = to_join(&pieces(&turns)) {
                let joined = turns[at] + turns[at + 1];
                turns.splice(at.., [joined]);
            }
        }
        assert_eq!(turns.iter().sum::<u64>(), 1_000);
        assert_eq!(turns, [512, 256, 128, 64, 32, 8]);
    }
}
