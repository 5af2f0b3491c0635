//! The turns of one run one after the other, and each sees what was said before (ADR 25).
//!
//! The object of a conversation names artifacts with messages and the turn under way. A turn is claimed in the object before its job
//! is submitted, and its answer is added by whoever finds the job ended: the caller who waits for it, or the next turn.

mod branch;
mod expiry;
mod history;
mod mapping;
mod sessions;

use std::time::Duration;

use atlas_artifacts::{ArtifactError, digest_of};
use atlas_desk::{Caller, Consistency, Error, ownership, requests};
use atlas_jobs::{Submission, relations};
use atlas_objects::{ConversationSpec, TurnUnderWay};
use atlas_records::View;
use atlas_types::{
    AgentName, Command, DeleteObject, Expect, Job, JobId, JobStatus, KEPT_METADATA, Object, ObjectKey, ObjectKind,
    ObjectName, Principal, PutObject,
};
use bytes::Bytes;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use tokio::sync::OwnedMutexGuard;

use crate::Conversations;

pub use expiry::expire;
pub use mapping::{Mapping, reply_of};
pub use sessions::Turn;

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
    /// What the agent keeps for the next turn; only in its own messages.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kept: Option<Value>,
    /// What its job was asked with besides: the model and its settings, if the agent lets its input choose them; only in messages of the user.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub settings: Map<String, Value>,
}

impl Message {
    /// A message of the user.
    pub fn user(content: String, images: Vec<Value>) -> Self {
        Self { role: Role::User, content, images, kept: None, settings: Map::new() }
    }
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
    /// As its object has it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Shared => "shared",
            Self::Connection => "connection",
            Self::Named => "named",
        }
    }
}

/// Refuses a caller that may not change or delete a conversation. One that all callers of an agent share is nobody's.
pub fn may_control(caller: &Caller, object: &Object) -> Result<(), Error> {
    let owned =
        ConversationSpec::read(&object.spec).ok().filter(|spec| spec.scope != ConversationScope::Shared.as_str());
    let owner = owned.and_then(|spec| Principal::new(&spec.owner).ok());
    ownership::may_control(caller, owner.as_ref())
}

/// A turn that has begun.
pub struct BegunTurn {
    /// The job that answers.
    pub job: JobId,
    /// Keeps later turns of this controller in order until the answer is added.
    _place: OwnedMutexGuard<()>,
}

/// A turn that is to begin.
struct Asked {
    key: ObjectKey,
    scope: ConversationScope,
    mapping: Mapping,
    message: Message,
    /// Other members of the input.
    others: Map<String, Value>,
    /// How long it waits for the turns before it; without one, until they have ended.
    patience: Option<Duration>,
}

/// A turn that is written into its conversation, before its job exists.
pub struct ClaimedTurn {
    key: ObjectKey,
    job: JobId,
    place: OwnedMutexGuard<()>,
}

impl Conversations {
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
        let submission = Submission { refuse: true, ..Submission::new(agent.clone(), Bytes::from_static(b"{}")) };
        let mut submission = relations::in_conversation(submission, key.name.as_str());
        let (mapping, others) = (mapping.clone(), Map::new());
        let asked = Asked { key, scope, mapping, message, others, patience: None };
        let claimed = self.claim(caller, asked, &mut submission, self.jobs.draw_id()).await?;
        let job = self.submit_claimed(caller, &claimed, &submission).await?;
        Ok(BegunTurn { job, _place: claimed.place })
    }

    /// Waits until earlier turns have ended, takes the next one for a job, and makes its input.
    async fn claim(
        &self,
        caller: &Caller,
        asked: Asked,
        submission: &mut Submission,
        job: JobId,
    ) -> Result<ClaimedTurn, Error> {
        let Asked { key, scope, mapping, mut message, mut others, patience } = asked;
        message.settings = mapping.settings(&others);
        let clock = &self.desk.env.clock;
        let until = patience.map(|patience| clock.monotonic() + patience);
        let place = match patience {
            None => self.places.take(&key).await,
            Some(patience) => tokio::select! {
                biased;
                place = self.places.take(&key) => place,
                () = clock.sleep(patience) => return Err(Error::ConversationBusy(key.name.to_string())),
            },
        };
        let spec = self.claim_turn(caller, &key, (scope, &submission.agent), (job, &message), until).await?;
        match self.said(&spec).await {
            Ok((mut messages, kept)) => {
                messages.push(message);
                mapping.keep_settings(&mut messages, &mut others);
                submission.input = mapping.continued(&messages, kept.as_ref(), others).to_string().into();
                Ok(ClaimedTurn { key, job, place })
            }
            Err(error) => {
                self.end_turn(caller, &key, job, Vec::new()).await?;
                Err(error)
            }
        }
    }

    /// Submits the job of a turn. The turn ends at once if there is no such job. While that is not known, the job has its turn, and the
    /// next one looks for it.
    async fn submit_claimed(
        &self,
        caller: &Caller,
        claimed: &ClaimedTurn,
        submission: &Submission,
    ) -> Result<JobId, Error> {
        let submitted = self.jobs.submit_as(caller, submission, Some(claimed.job)).await;
        let is_missing = match &submitted {
            // The idempotency key may have been used before; then the job is an earlier one.
            Ok(job) => *job != claimed.job,
            Err(Error::OutcomeUnknown) => false,
            Err(error) => !error.is_transient(),
        };
        if is_missing {
            self.release(caller, claimed).await?;
        }
        submitted
    }

    /// Gives back a turn that has no job.
    pub async fn release(&self, caller: &Caller, claimed: &ClaimedTurn) -> Result<(), Error> {
        self.end_turn(caller, &claimed.key, claimed.job, Vec::new()).await
    }

    /// Adds the answer of a turn whose job has ended. A turn without an answer leaves the conversation as it was.
    pub async fn finish_turn(&self, caller: &Caller, name: &str, turn: BegunTurn) -> Result<(), Error> {
        self.settle_turn(caller, &key(caller, name)?, turn.job).await.map(drop)
    }

    /// Writes a turn into a conversation, for a job that does not exist yet. Turns before it are waited for.
    async fn claim_turn(
        &self,
        caller: &Caller,
        key: &ObjectKey,
        (scope, agent): (ConversationScope, &AgentName),
        (job, message): (JobId, &Message),
        until: Option<Duration>,
    ) -> Result<ConversationSpec, Error> {
        let job = job.to_string();
        loop {
            let now = self.seconds();
            let state = self.desk.state(Consistency::Linearizable).await?;
            let old = state.object(key);
            let mut spec = match old {
                Some(object) => {
                    let spec = spec_of(object)?;
                    // Its name is in lists, and does not let others into the session.
                    if spec.scope == ConversationScope::Connection.as_str() {
                        may_control(caller, object)?;
                    }
                    spec
                }
                None => {
                    sessions::check_name(&key.name, agent, scope)?;
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
                return Err(not_with(key, &spec.agent, agent));
            }
            if spec.bytes() > BYTES_MAX {
                let limit = BYTES_MAX;
                return Err(Error::Malformed(format!(
                    "the conversation {0} has more than {limit} bytes; name another one, or delete it: atlasctl conversation delete {0}",
                    key.name
                )));
            }
            if let Some(earlier) = &spec.turn {
                // A spawned job has the same id however often it is asked for.
                if earlier.job == job {
                    return Ok(spec);
                }
                let left = until.map(|until| until.saturating_sub(self.desk.env.clock.monotonic()));
                let ended = self.await_turn(caller, key, earlier, left.map_or(LOOK, |left| left.min(LOOK))).await?;
                if !ended && left == Some(Duration::ZERO) {
                    return Err(Error::ConversationBusy(key.name.to_string()));
                }
                continue;
            }
            // Nothing refers to the message until it is in the conversation, and it is kept for a limited time only until then. So it is
            // stored after the wait.
            let said = self.store_messages(&[self.with_news(&spec, message).await?]).await?;
            spec.turn = Some(TurnUnderWay { job: job.clone(), message: said.digest, since: now });
            spec.updated_at = now;
            let expect = old.map_or(Expect::Absent, |object| Expect::Revision(object.revision));
            match self.write_conversation(caller, key, &spec, expect).await {
                Ok(()) => return Ok(spec),
                Err(Error::ObjectChanged { .. }) => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Waits for a turn of somebody else, and ends it if nobody did. Returns whether it has ended.
    async fn await_turn(
        &self,
        caller: &Caller,
        key: &ObjectKey,
        turn: &TurnUnderWay,
        look: Duration,
    ) -> Result<bool, Error> {
        let job: JobId = turn.job.parse().map_err(|_| Error::Internal)?;
        match self.records.wait_family(caller, job, View::Plain, look).await {
            Ok(_) => self.settle_turn(caller, key, job).await,
            Err(Error::UnknownJob) if self.seconds().saturating_sub(turn.since) <= CLAIM_MAX => {
                self.desk.env.clock.sleep(look.min(Duration::from_millis(100))).await;
                Ok(false)
            }
            Err(Error::UnknownJob) => self.end_turn(caller, key, job, Vec::new()).await.map(|()| true),
            Err(error) => Err(error),
        }
    }

    /// Ends the turn of a job that has ended. Returns whether it had.
    async fn settle_turn(&self, caller: &Caller, key: &ObjectKey, job: JobId) -> Result<bool, Error> {
        let shown = match self.records.wait_family(caller, job, View::Plain, Duration::ZERO).await {
            Ok(shown) => shown,
            Err(Error::UnknownJob) => return Ok(false),
            Err(error) => return Err(error),
        };
        if !shown.job().status.is_terminal() {
            return Ok(false);
        }
        let answer = (shown.job().status == JobStatus::Completed).then(|| shown.output()).flatten();
        let kept = kept_of(shown.job());
        let answer = answer.map(|output| {
            let (content, images) = (reply_of(&output), Vec::new());
            Message { role: Role::Assistant, content, images, kept, settings: Map::new() }
        });
        self.end_turn(caller, key, job, answer.into_iter().collect()).await?;
        Ok(true)
    }

    /// Removes the claim of a job, and adds the message that was sent and its answer if there is one.
    async fn end_turn(&self, caller: &Caller, key: &ObjectKey, job: JobId, answer: Vec<Message>) -> Result<(), Error> {
        loop {
            let state = self.desk.state(Consistency::Linearizable).await?;
            let Some(object) = state.object(key) else { return Ok(()) };
            let mut spec = spec_of(object)?;
            let Some(turn) = spec.turn.take_if(|turn| turn.job == job.to_string()) else { return Ok(()) };
            if !answer.is_empty() {
                let earlier = spec.pieces.clone();
                match self.add_turn(&mut spec, &turn.message, &answer).await {
                    // No controller has what was said, so no repetition helps. The turn ends without its answer, and the next one may begin.
                    Err(error) if is_lost(&error) => {
                        tracing::error!(%job, conversation = %key.name, "the messages of a conversation are lost");
                        spec.pieces = earlier;
                    }
                    added => added?,
                }
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
        let (mut left, caller) = (all.len(), caller.clone().with_request_id(None));
        for object in forgotten.take(FORGOTTEN_AT_ONCE) {
            let name = object.key.name.as_str();
            match self.remove_conversation(&caller, name, Expect::Revision(object.revision)).await {
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
        self.desk.propose(requests::of(&caller.clone().with_request_id(None), command)).await.map(drop)
    }

    fn seconds(&self) -> u64 {
        u64::try_from(self.desk.env.clock.wall().0 / 1_000_000).unwrap_or(0)
    }

    /// The conversations of a namespace by id.
    pub async fn conversations(&self, caller: &Caller, consistency: Consistency) -> Result<Vec<Value>, Error> {
        let state = self.desk.state(consistency).await?;
        let all = state.objects(&caller.namespace, &ObjectKind::new(KIND)?, None);
        Ok(all.filter_map(|object| Some(self.shown_conversation(object, &spec_of(object).ok()?))).collect())
    }

    /// A conversation with its messages.
    pub async fn conversation(&self, caller: &Caller, name: &str, consistency: Consistency) -> Result<Value, Error> {
        let key = key(caller, name)?;
        self.settle_ended(&key, consistency).await?;
        let state = self.desk.state(consistency).await?;
        let object = state.object(&key).ok_or_else(|| unknown(name))?;
        let spec = spec_of(object)?;
        let (messages, _) = self.said(&spec).await?;
        let mut value = self.shown_conversation(object, &spec);
        value["messages"] = json!(messages);
        Ok(value)
    }

    fn shown_conversation(&self, object: &Object, spec: &ConversationSpec) -> Value {
        let kept = self.desk.limits.conversations_kept.map(|kept| kept.as_secs());
        let mut value = shown(object, spec);
        value["expires_at"] = json!(expiry::expires_at(spec, kept));
        value
    }

    /// Deletes a conversation with its messages. A turn under way goes on; its answer is not kept.
    pub async fn delete_conversation(&self, caller: &Caller, name: &str) -> Result<(), Error> {
        ownership::may_control_own(caller)?;
        let state = self.desk.state(Consistency::Linearizable).await?;
        if let Some(object) = state.object(&key(caller, name)?) {
            may_control(caller, object)?;
        }
        self.remove_conversation(caller, name, Expect::Any).await
    }

    /// Removes a conversation, whoever began it.
    async fn remove_conversation(&self, caller: &Caller, name: &str, expect: Expect) -> Result<(), Error> {
        let ObjectKey { kind, name: key, .. } = key(caller, name)?;
        let command = Command::DeleteObject(DeleteObject { kind, name: key, expect });
        match self.desk.propose(requests::of(caller, command)).await {
            Err(Error::UnknownObject(_)) => Err(unknown(name)),
            removed => removed.map(drop),
        }
    }
}

/// What the agent of a job keeps for the next turn.
fn kept_of(job: &Job) -> Option<Value> {
    let metadata: Map<String, Value> = serde_json::from_slice(&job.metadata).ok()?;
    metadata.get(KEPT_METADATA).cloned()
}

fn key(caller: &Caller, name: &str) -> Result<ObjectKey, Error> {
    let name = ObjectName::new(name)?;
    Ok(ObjectKey { namespace: caller.namespace.clone(), kind: ObjectKind::new(KIND)?, name })
}

fn spec_of(object: &Object) -> Result<ConversationSpec, Error> {
    ConversationSpec::read(&object.spec).map_err(|error| Error::internal("read a conversation", &error))
}

fn not_with(key: &ObjectKey, with: &str, agent: &AgentName) -> Error {
    Error::Malformed(format!("the conversation {} is with {with}, not {agent}", key.name))
}

/// Sixteen digits that follow from a text.
fn short(text: &str) -> String {
    digest_of(text.as_bytes()).0.iter().take(8).map(|byte| format!("{byte:02x}")).collect()
}

/// Whether an artifact is gone at every controller.
fn is_lost(error: &Error) -> bool {
    matches!(error, Error::Artifact(ArtifactError::Missing(_) | ArtifactError::Damaged(_)))
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
