//! Conversations: the turns of one run one after the other, and each sees what was said before (ADR 25).
//!
//! The object of a conversation names artifacts with messages and the turn under way. A turn is claimed in the object before its job
//! is submitted, and its answer is added by whoever finds the job ended: the caller who waits for it, or the next turn.

mod expiry;
mod history;
mod mapping;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use atlas_objects::{ConversationSpec, TurnUnderWay};
use atlas_types::{AgentName, Command, Expect, JobId, JobStatus, Object, ObjectKey, ObjectKind, ObjectName, PutObject};
use bytes::Bytes;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::sync::OwnedMutexGuard;

use crate::{Caller, Consistency, Error, ObjectChange, Service, Submission, View};

pub(crate) use expiry::expire;
pub use mapping::{Mapping, reply_of};

/// The kind of their objects.
const KIND: &str = "conversation";
/// The most bytes of messages in one conversation.
const BYTES_MAX: u64 = 2 << 20;
/// The most conversations in a namespace.
const CONVERSATIONS_MAX: usize = 10_000;
/// After how many seconds without a turn a conversation of a connection is removed.
const FORGOTTEN_AFTER: u64 = 24 * 3_600;
/// How many forgotten conversations are removed when one begins.
const FORGOTTEN_AT_ONCE: usize = 8;
/// How long a claim without a job is respected, in seconds: its controller may be about to submit the job.
const CLAIM_MAX: u64 = 30;
/// How often the turn under way is looked at by those who wait for it.
const LOOK: Duration = Duration::from_secs(5);

/// Who wrote a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    User,
    Assistant,
}

/// One message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Message {
    pub role: Role,
    pub content: String,
    /// Objects with `data` and `mime_type`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub images: Vec<Value>,
}

/// Who continues a conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ConversationScope {
    /// All callers of the agent in a namespace.
    Shared,
    /// The callers of one MCP session.
    Connection,
    /// Those who send its id.
    Named,
}

impl ConversationScope {
    fn as_str(self) -> &'static str {
        match self {
            Self::Shared => "shared",
            Self::Connection => "connection",
            Self::Named => "named",
        }
    }
}

/// A turn that has begun.
pub struct BegunTurn {
    /// The job that answers.
    pub job: JobId,
    /// Keeps later turns of this controller in order until the answer is added.
    _place: OwnedMutexGuard<()>,
}

/// The places of the conversations that this controller serves. A place is taken in the order of arrival.
#[derive(Default)]
pub(crate) struct Places(Mutex<HashMap<ObjectKey, Arc<tokio::sync::Mutex<()>>>>);

impl Places {
    async fn take(&self, key: &ObjectKey) -> OwnedMutexGuard<()> {
        let place = {
            let mut places = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            places.retain(|_, place| Arc::strong_count(place) > 1);
            places.entry(key.clone()).or_default().clone()
        };
        place.lock_owned().await
    }
}

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
        let key = key(caller, name)?;
        let place = self.shared.conversations.take(&key).await;
        let said = self.store_messages(std::slice::from_ref(&message)).await?;
        let (job, spec) = self.claim_turn(caller, &key, scope, agent, &said.digest).await?;
        let begun = async {
            let mut messages = self.messages(&spec).await?;
            messages.push(message);
            let mut submission = Submission::new(agent.clone(), Bytes::from(mapping.input(&messages).to_string()));
            submission.refuse = true;
            self.submit_as(caller, &submission, Some(job)).await
        };
        match begun.await {
            Ok(job) => Ok(BegunTurn { job, _place: place }),
            Err(error) => {
                self.end_turn(caller, &key, job, Vec::new()).await?;
                Err(error)
            }
        }
    }

    /// Adds the answer of a turn whose job has ended. A turn without an answer leaves the conversation as it was.
    pub async fn finish_turn(&self, caller: &Caller, name: &str, turn: BegunTurn) -> Result<(), Error> {
        self.settle_turn(caller, &key(caller, name)?, turn.job).await.map(drop)
    }

    /// Takes the turn of a conversation for a job that does not exist yet.
    async fn claim_turn(
        &self,
        caller: &Caller,
        key: &ObjectKey,
        scope: ConversationScope,
        agent: &AgentName,
        message: &str,
    ) -> Result<(JobId, ConversationSpec), Error> {
        let job = self.draw_id();
        loop {
            let now = self.seconds();
            let state = self.state(Consistency::Linearizable).await?;
            let old = state.object(key);
            let mut spec = match old {
                Some(object) => spec_of(object)?,
                None => {
                    self.make_room(caller, &state, now).await?;
                    ConversationSpec {
                        agent: agent.to_string(),
                        scope: scope.as_str().to_owned(),
                        owner: caller.principal.to_string(),
                        created_at: now,
                        ..ConversationSpec::default()
                    }
                }
            };
            if spec.agent != agent.as_str() {
                return Err(Error::Malformed(format!(
                    "the conversation {} is with {}, not {agent}",
                    key.name, spec.agent
                )));
            }
            if spec.bytes() > BYTES_MAX {
                let limit = BYTES_MAX;
                return Err(Error::Malformed(format!(
                    "the conversation {} has more than {limit} bytes; begin another one",
                    key.name
                )));
            }
            if let Some(turn) = &spec.turn {
                self.await_turn(caller, key, turn, now).await?;
                continue;
            }
            spec.turn = Some(TurnUnderWay { job: job.to_string(), message: message.to_owned(), since: now });
            spec.updated_at = now;
            let expect = old.map_or(Expect::Absent, |object| Expect::Revision(object.revision));
            match self.write_conversation(caller, key, &spec, expect).await {
                Ok(()) => return Ok((job, spec)),
                Err(Error::ObjectChanged { .. }) => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Waits for a turn of somebody else, and ends it if nobody did.
    async fn await_turn(&self, caller: &Caller, key: &ObjectKey, turn: &TurnUnderWay, now: u64) -> Result<(), Error> {
        let job: JobId = turn.job.parse().map_err(|_| Error::Internal)?;
        match self.wait_family(caller, job, View::Plain, LOOK).await {
            Ok(_) => {}
            Err(Error::UnknownJob) if now.saturating_sub(turn.since) <= CLAIM_MAX => {
                self.shared.env.clock.sleep(Duration::from_millis(100)).await;
                return Ok(());
            }
            Err(Error::UnknownJob) => return self.end_turn(caller, key, job, Vec::new()).await,
            Err(error) => return Err(error),
        }
        self.settle_turn(caller, key, job).await.map(drop)
    }

    /// Ends the turn of a job that has ended. Returns whether it had.
    async fn settle_turn(&self, caller: &Caller, key: &ObjectKey, job: JobId) -> Result<bool, Error> {
        let shown = match self.wait_family(caller, job, View::Plain, Duration::ZERO).await {
            Ok(shown) => shown,
            Err(Error::UnknownJob) => return Ok(false),
            Err(error) => return Err(error),
        };
        if !shown.job().status.is_terminal() {
            return Ok(false);
        }
        let answer = (shown.job().status == JobStatus::Completed).then(|| shown.output()).flatten();
        let answer =
            answer.map(|output| Message { role: Role::Assistant, content: reply_of(&output), images: Vec::new() });
        self.end_turn(caller, key, job, answer.into_iter().collect()).await?;
        Ok(true)
    }

    /// Removes the claim of a job, and adds the message that was sent and its answer if there is one.
    async fn end_turn(&self, caller: &Caller, key: &ObjectKey, job: JobId, answer: Vec<Message>) -> Result<(), Error> {
        loop {
            let state = self.state(Consistency::Linearizable).await?;
            let Some(object) = state.object(key) else { return Ok(()) };
            let mut spec = spec_of(object)?;
            let Some(turn) = spec.turn.take_if(|turn| turn.job == job.to_string()) else { return Ok(()) };
            if !answer.is_empty() {
                let mut messages = self.read_messages(&turn.message).await?;
                messages.extend(answer.iter().cloned());
                let mut piece = self.store_messages(&messages).await?;
                piece.turns = 1;
                spec.pieces.push(piece);
                self.join_pieces(&mut spec).await?;
            }
            spec.updated_at = self.seconds();
            match self.write_conversation(caller, key, &spec, Expect::Revision(object.revision)).await {
                Err(Error::ObjectChanged { .. }) => {}
                done => return done,
            }
        }
    }

    /// Makes room for one more conversation of a namespace.
    async fn make_room(&self, caller: &Caller, state: &atlas_state::State, now: u64) -> Result<(), Error> {
        let all: Vec<_> = state.objects(&caller.namespace, &ObjectKind::new(KIND)?, None).collect();
        let forgotten = all.iter().filter(|object| {
            let spec = spec_of(object).unwrap_or_default();
            spec.scope == "connection" && spec.turn.is_none() && now.saturating_sub(spec.updated_at) > FORGOTTEN_AFTER
        });
        let mut left = all.len();
        for object in forgotten.take(FORGOTTEN_AT_ONCE) {
            let name = object.key.name.as_str();
            match self.delete_conversation_at(caller, name, Expect::Revision(object.revision)).await {
                Ok(()) => left -= 1,
                Err(Error::ObjectChanged { .. } | Error::UnknownObject(_)) => {}
                Err(error) => return Err(error),
            }
        }
        if left >= CONVERSATIONS_MAX {
            return Err(Error::Malformed(format!(
                "the namespace has {left} conversations; delete some: atlasctl conversation delete ID"
            )));
        }
        Ok(())
    }

    async fn write_conversation(
        &self,
        caller: &Caller,
        key: &ObjectKey,
        spec: &ConversationSpec,
        expect: Expect,
    ) -> Result<(), Error> {
        let value = serde_json::to_value(spec).map_err(|error| Error::internal("write a conversation", &error))?;
        let spec = atlas_objects::canonical(&value).map_err(|error| Error::internal("write a conversation", &error))?;
        let command = Command::PutObject(PutObject {
            kind: key.kind.clone(),
            name: key.name.clone(),
            labels: Default::default(),
            spec: spec.into(),
            spec_version: 1,
            expect,
        });
        self.propose(caller.clone().with_request_id(None).request(command)).await.map(drop)
    }

    fn seconds(&self) -> u64 {
        u64::try_from(self.shared.env.clock.wall().0 / 1_000_000).unwrap_or(0)
    }

    /// The conversations of a namespace by id.
    pub async fn conversations(&self, caller: &Caller, consistency: Consistency) -> Result<Vec<Value>, Error> {
        let state = self.state(consistency).await?;
        let all = state.objects(&caller.namespace, &ObjectKind::new(KIND)?, None);
        Ok(all.filter_map(|object| Some(self.shown_conversation(object, &spec_of(object).ok()?))).collect())
    }

    /// A conversation with its messages.
    pub async fn conversation(&self, caller: &Caller, name: &str, consistency: Consistency) -> Result<Value, Error> {
        let key = key(caller, name)?;
        let state = self.state(consistency).await?;
        let object = state.object(&key).ok_or_else(|| unknown(name))?;
        let spec = spec_of(object)?;
        let messages = self.messages(&spec).await?;
        let mut value = self.shown_conversation(object, &spec);
        value["messages"] = json!(messages);
        Ok(value)
    }

    fn shown_conversation(&self, object: &Object, spec: &ConversationSpec) -> Value {
        let kept = self.shared.limits.conversations_kept.map(|kept| kept.as_secs());
        let mut value = shown(object, spec);
        value["expires_at"] = json!(expiry::expires_at(spec, kept));
        value
    }

    /// Deletes a conversation with its messages. A turn under way goes on; its answer is not kept.
    pub async fn delete_conversation(&self, caller: &Caller, name: &str) -> Result<(), Error> {
        self.delete_conversation_at(caller, name, Expect::Any).await
    }

    async fn delete_conversation_at(&self, caller: &Caller, name: &str, expect: Expect) -> Result<(), Error> {
        let change = ObjectChange { kind: KIND.to_owned(), name: name.to_owned(), expect, dry_run: false };
        self.delete_object(caller, &change).await.map_err(|error| match error {
            Error::UnknownObject(_) => unknown(name),
            other => other,
        })
    }
}

fn key(caller: &Caller, name: &str) -> Result<ObjectKey, Error> {
    let name = ObjectName::new(name)?;
    Ok(ObjectKey { namespace: caller.namespace.clone(), kind: ObjectKind::new(KIND)?, name })
}

fn spec_of(object: &Object) -> Result<ConversationSpec, Error> {
    ConversationSpec::read(&object.spec).map_err(|error| Error::internal("read a conversation", &error))
}

fn unknown(name: &str) -> Error {
    Error::UnknownObject(format!("no such conversation: \"{}\"", name.chars().take(255).collect::<String>()))
}

fn shown(object: &Object, spec: &ConversationSpec) -> Value {
    json!({
        "id": object.key.name.as_str(),
        "agent": spec.agent,
        "scope": spec.scope,
        "owner": spec.owner,
        "turns": spec.turns(),
        "bytes": spec.bytes(),
        "created_at": spec.created_at,
        "updated_at": spec.updated_at,
        "running_job": spec.turn.as_ref().map(|turn| turn.job.as_str()),
    })
}
