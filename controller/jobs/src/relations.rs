//! How a job is related to what is there already. Doors cannot say it: functions behind them find it out, and make such submissions here.

use atlas_types::{Job, Namespace, Spawner};
use bytes::Bytes;
use serde_json::{Map, Value};

use crate::Submission;

/// The member of a job's metadata that says that a controller made it for a search in a document base. Clients cannot set it.
pub(crate) const SEARCH_METADATA: &str = "_search";

/// How a job is related to others: as a child, as a call of a skill, as a turn, and as the user of a credential.
#[derive(Debug, Clone, Default)]
pub struct Relations {
    /// Whether the credential of the caller is held for it.
    pub(crate) bearer: bool,
    /// The parent, for a spawned job.
    pub(crate) family: Option<Family>,
    /// The namespace that calls, for a run of a skill.
    pub(crate) called_from: Option<Namespace>,
    /// The conversation of which the job is a turn.
    pub(crate) conversation: Option<InConversation>,
    /// Whether a controller asks a model by it for a search in a document base.
    pub(crate) search: bool,
}

/// The conversation of which a job is a turn.
#[derive(Debug, Clone)]
pub(crate) struct InConversation {
    pub(crate) name: String,
    /// The input as the caller sent it, without what was said before.
    pub(crate) asked: Bytes,
}

/// The data that a spawned job gets from its parent.
#[derive(Debug, Clone)]
pub struct Family {
    /// The attempt that spawns it.
    pub spawner: Spawner,
    pub metadata: Map<String, Value>,
}

/// The same as a child.
pub fn spawned(mut submission: Submission, family: Family) -> Submission {
    submission.relations.family = Some(family);
    submission
}

/// The same for a search in a document base whose caller may search there.
pub fn for_search(mut submission: Submission) -> Submission {
    submission.relations.search = true;
    submission
}

/// Whether a controller made a job for a search in a document base.
pub fn is_for_search(job: &Job) -> bool {
    let metadata: Map<String, Value> = serde_json::from_slice(&job.metadata).unwrap_or_default();
    metadata.get(SEARCH_METADATA) == Some(&Value::Bool(true))
}

/// The same as a run of a skill that this namespace calls.
pub fn called_from(mut submission: Submission, namespace: Namespace) -> Submission {
    submission.relations.called_from = Some(namespace);
    submission
}

/// The same as a turn of a conversation, before what was said is known.
pub fn in_conversation(mut submission: Submission, name: &str) -> Submission {
    let asked = submission.input.clone();
    submission.relations.conversation = Some(InConversation { name: name.to_owned(), asked });
    submission
}

/// The same with a credential of the caller, which is held for it.
pub(crate) fn with_credential(mut submission: Submission) -> Submission {
    submission.relations.bearer = true;
    submission
}

/// Tells a spawned job something about how it began.
pub fn note(submission: &mut Submission, member: &str, text: String) {
    if let Some(family) = &mut submission.relations.family {
        family.metadata.insert(member.to_owned(), text.into());
    }
}
