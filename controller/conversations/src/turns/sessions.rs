//! Jobs that continue a conversation: those that name one, and those of agents whose definition names one for all their jobs.

use std::time::Duration;

use atlas_desk::{Caller, Consistency, Error, on_behalf};
use atlas_jobs::{Draft, Submission, relations};
use atlas_records::View;
use atlas_registry::{find_version, unknown_agent};
use atlas_state::State;
use atlas_types::{AgentName, JobId, LEFT_METADATA, Object, ObjectKey, ObjectName};
use serde_json::{Map, Value};

use super::mapping::{CONVERSATION, IMAGES, MESSAGE};
use super::{Asked, ClaimedTurn, ConversationScope, LOOK, Mapping, Message, key, not_with, short, spec_of};
use crate::Conversations;

/// The name of a conversation that is never kept.
const FRESH: &str = "temp";
/// The pause after a failed look at the job of a turn.
const PAUSE: Duration = Duration::from_secs(1);

/// A job as a turn of a conversation.
pub struct Turn {
    key: ObjectKey,
    scope: ConversationScope,
    mapping: Mapping,
    text: String,
    images: Vec<Value>,
    /// The input without the text and the images.
    others: Map<String, Value>,
}

impl Conversations {
    /// The conversation that a job continues or begins: the one that it names, or else the session of its agent. A state that was read for
    /// that is left in `read`, because a follower asks the leader for each.
    pub async fn turn_of(
        &self,
        caller: &Caller,
        submission: &Submission,
        read: &mut Option<State>,
    ) -> Result<Option<Turn>, Error> {
        match submission.continues.as_deref() {
            Some(FRESH) => Ok(None),
            Some(name) => Box::pin(self.named_turn(caller, name, submission)).await.map(Some),
            // The turns after it would wait for its time.
            None if submission.not_before.is_some() => Ok(None),
            None => {
                let read = read.insert(self.desk.current().await?);
                Box::pin(self.session_turn(caller, submission, read)).await
            }
        }
    }

    async fn named_turn(&self, caller: &Caller, name: &str, submission: &Submission) -> Result<Turn, Error> {
        let key = key(caller, name)?;
        if submission.not_before.is_some() {
            let text = "a job of a conversation cannot have 'at': the turns after it would wait";
            return Err(Error::Malformed(text.to_owned()));
        }
        let (agent, version) = (&submission.agent, submission.version.as_deref());
        let state = self.desk.current().await?;
        let Some(found) = find_version(&state, caller, agent, version)? else {
            return Err(unknown_agent(&state, caller, agent.as_str(), version));
        };
        // Said at once, without a wait for its turns.
        if let Some(with) = state.object(&key).and_then(|object| Some(spec_of(object).ok()?.agent))
            && with != agent.as_str()
        {
            return Err(not_with(&key, &with, agent));
        }
        let known = self.registry.contract(&found).await?;
        let refused = |why: &str| Error::Malformed(format!("{agent} takes no conversation: {why}"));
        if known.value["provider"]["type"] == "graph" {
            return Err(refused("a graph manages its own state; leave 'conversation' out"));
        }
        let mapping = Mapping::of(&known.value).map_err(|why| refused(&why))?;
        if !mapping.remembers() {
            return Err(refused("its input has no member for messages"));
        }
        let Some((text, mut others)) = message(submission) else {
            return Err(Error::Malformed(format!(
                "the input of a job of a conversation is an object with a text '{MESSAGE}'"
            )));
        };
        let images = images(&mapping, &mut others);
        Ok(Turn { key, scope: ConversationScope::Named, mapping, text, images, others })
    }

    /// The turn of a job in the session of its agent. A job that cannot be one is left alone: it is refused as without a session.
    async fn session_turn(
        &self,
        caller: &Caller,
        submission: &Submission,
        state: &State,
    ) -> Result<Option<Turn>, Error> {
        let Some(agent) = find_version(state, caller, &submission.agent, submission.version.as_deref())? else {
            return Ok(None);
        };
        let known = self.registry.contract(&agent).await?;
        let provider = &known.value["provider"];
        let session = provider["session"].as_str().filter(|name| *name != FRESH && provider["type"] != "graph");
        let Some(session) = session else { return Ok(None) };
        let mapping = Mapping::of(&known.value).ok().filter(Mapping::remembers);
        let (Some(mapping), Some((text, mut others))) = (mapping, message(submission)) else { return Ok(None) };
        let images = images(&mapping, &mut others);
        let key = key(caller, &session_name(&submission.agent, session))?;
        Ok(Some(Turn { key, scope: ConversationScope::Shared, mapping, text, images, others }))
    }

    /// Submits a job as a turn. Its answer is added when it has ended.
    pub async fn submit_turn(&self, caller: &Caller, turn: Turn, submission: Submission) -> Result<JobId, Error> {
        let submission = Submission { refuse: true, ..submission };
        let mut submission = relations::in_conversation(submission, turn.key.name.as_str());
        if submission.request_id.is_some() {
            let state = self.desk.current().await?;
            if let Some(first) = Draft::new(caller, &submission, self.jobs.draw_id()).remembered(&state) {
                return first;
            }
        }
        let job = self.jobs.draw_id();
        let asked = turn.asked(Some(self.desk.limits.turn_wait_max));
        let claimed = self.claim(caller, asked, &mut submission, job).await?;
        let job = self.submit_claimed(caller, &claimed, &submission).await?;
        self.watch_turn(caller, claimed, job);
        Ok(job)
    }

    /// Makes a job that another one spawns a turn of the session of its agent. If the session is answering, or takes no more messages, the
    /// job goes on without it: its parent did not ask for the session.
    pub async fn child_turn(
        &self,
        caller: &Caller,
        submission: &mut Submission,
        id: JobId,
    ) -> Result<Option<ClaimedTurn>, Error> {
        let state = self.desk.current().await?;
        let Some(turn) = self.session_turn(caller, submission, &state).await? else { return Ok(None) };
        let mut in_turn = relations::in_conversation(submission.clone(), turn.key.name.as_str());
        match self.claim(caller, turn.asked(Some(Duration::ZERO)), &mut in_turn, id).await {
            Ok(claimed) => {
                *submission = in_turn;
                Ok(Some(claimed))
            }
            // These pass. The child is asked for again, and finds its own turn.
            Err(error) if error.is_transient() => Err(error),
            Err(error) => {
                relations::note(submission, LEFT_METADATA, error.to_string());
                Ok(None)
            }
        }
    }

    /// Adds the answer of a turn when its job has ended. If this controller is lost, the next turn does so, or whoever reads the conversation.
    pub fn watch_turn(&self, caller: &Caller, claimed: ClaimedTurn, job: JobId) {
        let (service, caller) = (self.clone(), caller.clone());
        drop(self.desk.env.spawn("end-turn", async move {
            service.follow_turn(&caller, &claimed.key, job).await;
            drop(claimed);
        }));
    }

    async fn follow_turn(&self, caller: &Caller, key: &ObjectKey, job: JobId) {
        loop {
            let ended = match self.records.wait_family(caller, job, View::Plain, LOOK).await {
                Ok(shown) => shown.job().status.is_terminal(),
                Err(Error::UnknownJob) => return,
                Err(_) => false,
            };
            if ended {
                match self.settle_turn(caller, key, job).await {
                    Ok(_) => return,
                    Err(error) => {
                        tracing::debug!(error = &error as &dyn std::error::Error, %job, "could not end a turn");
                    }
                }
            } else if !self.desk.handle.applied().object(key).is_some_and(|object| is_turn(object, job)) {
                // Somebody else ended it, or the conversation was deleted: its place is free.
                return;
            }
            self.desk.env.clock.sleep(PAUSE).await;
        }
    }

    /// Ends the turn of a conversation if its job has ended and nobody has done so. A reader who is content with less gets what there is.
    pub(super) async fn settle_ended(&self, key: &ObjectKey, consistency: Consistency) -> Result<(), Error> {
        let state = self.desk.state(consistency).await?;
        let Some(turn) = state.object(key).and_then(|object| spec_of(object).ok()?.turn) else { return Ok(()) };
        let Ok(job) = turn.job.parse::<JobId>() else { return Ok(()) };
        let caller = on_behalf::cluster_in(key.namespace.clone());
        match self.settle_turn(&caller, key, job).await {
            Err(_) if matches!(consistency, Consistency::Stale) => Ok(()),
            settled => settled.map(drop),
        }
    }
}

impl Turn {
    fn asked(self, patience: Option<Duration>) -> Asked {
        let Self { key, scope, mapping, text, images, others } = self;
        Asked { key, scope, mapping, message: Message::user(text, images), others, patience }
    }
}

/// Whether a job is the turn of a conversation.
fn is_turn(object: &Object, job: JobId) -> bool {
    spec_of(object).is_ok_and(|spec| spec.turn.is_some_and(|turn| turn.job == job.to_string()))
}

/// The text of the message in the input of a job, and the other members.
fn message(submission: &Submission) -> Option<(String, Map<String, Value>)> {
    let mut members: Map<String, Value> = serde_json::from_slice(&submission.input).ok()?;
    let Value::String(text) = members.shift_remove(MESSAGE)? else { return None };
    members.shift_remove(CONVERSATION);
    Some((text, members))
}

/// The images of the message: those in the member `images`, if messages of the agent can have some.
fn images(mapping: &Mapping, others: &mut Map<String, Value>) -> Vec<Value> {
    if !mapping.sees() || !others.get(IMAGES).is_some_and(Value::is_array) {
        return Vec::new();
    }
    let Some(Value::Array(images)) = others.shift_remove(IMAGES) else { return Vec::new() };
    images
}

/// The beginning of the conversations of sessions.
const SESSION: &str = "session:";

/// The conversation of a session. Each agent has its own sessions, so a name that could be that of another agent is not put together from both.
fn session_name(agent: &AgentName, session: &str) -> String {
    let name = format!("{SESSION}{agent}:{session}");
    let is_plain = !agent.as_str().contains(':') && !session.contains(':');
    if is_plain && ObjectName::new(&name).is_ok() {
        name
    } else {
        format!("{SESSION}:{}", short(&format!("{agent}\0{session}")))
    }
}

/// Refuses to begin a conversation under a name that is for the sessions of other agents.
pub(super) fn check_name(name: &ObjectName, agent: &AgentName, scope: ConversationScope) -> Result<(), Error> {
    let is_free = name
        .as_str()
        .strip_prefix(SESSION)
        .is_none_or(|rest| rest.strip_prefix(agent.as_str()).is_some_and(|rest| rest.starts_with(':')));
    if is_free || scope != ConversationScope::Named {
        return Ok(());
    }
    Err(Error::Malformed(format!(
        "the conversation \"{name}\" would be a session of another agent than {agent}; choose a name that does not begin with \"{SESSION}\""
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn agent(name: &str) -> AgentName {
        name.parse().expect("a name")
    }

    #[test]
    fn sessions_have_names_that_are_possible_and_their_own() {
        let name = |name: &str, session: &str| session_name(&agent(name), session);
        assert_eq!(name("coder", "work"), "session:coder:work");
        assert_ne!(name("a-b", "c"), name("a", "b-c"));
        for (one, session) in [("team/coder", "work"), ("a:b", "c"), ("a", "b:c")] {
            let hashed = name(one, session);
            assert!(hashed.starts_with("session::") && ObjectName::new(&hashed).is_ok(), "{hashed}");
        }
        assert_ne!(name("a:b", "c"), name("a", "b:c"));
        assert_ne!(name("team/coder", "work"), name("team/coder", "other"));
    }

    #[test]
    fn nobody_begins_the_session_of_another_agent() {
        let check =
            |name: &str, scope| check_name(&ObjectName::new(name).expect("a name"), &agent("coder"), scope).is_ok();
        for name in ["session:coder:work", "trip", "session", "a:b"] {
            assert!(check(name, ConversationScope::Named), "{name}");
        }
        for name in ["session:clerk:work", "session::0123", "session:coders:work"] {
            assert!(!check(name, ConversationScope::Named), "{name}");
            assert!(check(name, ConversationScope::Shared), "{name}");
        }
    }
}
