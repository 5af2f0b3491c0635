//! Branches: conversations that begin with the first turns of another one. Pieces that both have are stored once.

use atlas_desk::{Caller, Consistency, Error};
use atlas_objects::{ConversationSpec, Piece};
use atlas_types::{AgentName, Expect};
use serde_json::Value;

use super::{ConversationScope, Message, Role, key, may_control, sessions, spec_of, unknown};
use crate::Conversations;

impl Conversations {
    /// Begins a conversation under another name with the first turns of a conversation, or with all of them. A turn under way is not among them.
    pub async fn branch(&self, caller: &Caller, name: &str, id: &str, turns: Option<u64>) -> Result<Value, Error> {
        let (from, to) = (key(caller, name)?, key(caller, id)?);
        self.settle_ended(&from, Consistency::Linearizable).await?;
        let state = self.desk.state(Consistency::Linearizable).await?;
        let object = state.object(&from).ok_or_else(|| unknown(name))?;
        let old = spec_of(object)?;
        if old.scope == ConversationScope::Connection.as_str() {
            may_control(caller, object)?;
        }
        let agent: AgentName = old.agent.parse().map_err(|_| Error::Internal)?;
        sessions::check_name(&to.name, &agent, ConversationScope::Named)?;
        let all = old.turns();
        let turns = turns.unwrap_or(all);
        if turns > all {
            return Err(Error::Malformed(format!("the conversation {name} has {all} turns, not {turns}")));
        }
        if state.object(&to).is_some() {
            return Err(Error::Malformed(format!("there is a conversation {id} already; choose another name")));
        }
        let now = self.seconds();
        self.make_room(caller, &state, now).await?;
        let spec = ConversationSpec {
            agent: old.agent.clone(),
            scope: ConversationScope::Named.as_str().to_owned(),
            owner: caller.principal.to_string(),
            created_at: now,
            updated_at: now,
            pieces: self.first_pieces(&old, turns).await?,
            ..ConversationSpec::default()
        };
        self.write_conversation(caller, &to, &spec, Expect::Absent).await?;
        let state = self.desk.state(Consistency::Linearizable).await?;
        let object = state.object(&to).ok_or_else(|| unknown(id))?;
        Ok(self.shown_conversation(object, &spec))
    }

    /// The pieces of the first turns. One that goes beyond them is stored again without the rest.
    async fn first_pieces(&self, spec: &ConversationSpec, turns: u64) -> Result<Vec<Piece>, Error> {
        let (mut pieces, mut left) = (Vec::new(), turns);
        for piece in spec.pieces.iter() {
            if left == 0 {
                break;
            }
            if piece.turns <= left {
                left -= piece.turns;
                pieces.push(piece.clone());
                continue;
            }
            let messages = first_turns(self.read_messages(&piece.digest).await?, left);
            pieces.push(Piece { turns: left, ..self.store_messages(&messages).await? });
            left = 0;
        }
        Ok(pieces)
    }
}

/// The messages of the first turns. A turn ends with an answer.
fn first_turns(messages: Vec<Message>, turns: u64) -> Vec<Message> {
    let mut left = turns;
    let within = |message: &Message| {
        let is_within = left > 0;
        left = left.saturating_sub(u64::from(message.role == Role::Assistant));
        is_within
    };
    messages.into_iter().take_while(within).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_turn_ends_with_its_answer() {
        let said = |role, text: &str| Message { role, ..Message::user(text.to_owned(), Vec::new()) };
        let all = vec![
            said(Role::User, "a"),
            said(Role::Assistant, "A"),
            said(Role::User, "b"),
            said(Role::User, "c"),
            said(Role::Assistant, "C"),
        ];
        let texts =
            |turns| -> String { first_turns(all.clone(), turns).into_iter().map(|message| message.content).collect() };
        assert_eq!(texts(0), "");
        assert_eq!(texts(1), "aA");
        assert_eq!(texts(2), "aAbcC");
        assert_eq!(texts(9), "aAbcC");
    }
}
