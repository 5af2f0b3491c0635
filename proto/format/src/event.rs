//! Single events that are not a job's, for a history that keeps them. A job's event is kept with [`encode_job`](crate::encode_job).

use std::sync::Arc;

use atlas_types::{AgentVersion, Event, JobId, MessageId, Namespace, NodeId, Object, Payload, Step};
use prost::Message as _;

use crate::convert::{name, run};
use crate::proto::cluster_event::Event as Stored;
use crate::{FormatError, proto};

/// The bytes of an event; none for a job's.
pub fn encode_event(event: &Event) -> Option<Vec<u8>> {
    let stored = match event {
        Event::Job { .. } => return None,
        Event::Agent { agent } => Stored::Agent(without_contract(agent)),
        Event::AgentDeleted { agent } => Stored::AgentDeleted(without_contract(agent)),
        Event::Node { node } => Stored::Node((&**node).into()),
        Event::NodeRemoved { node } => Stored::NodeRemoved(node.to_string()),
        Event::Configured { config } => Stored::Configured((&**config).into()),
        Event::StepsRecorded { job, from, steps } => Stored::StepsRecorded(proto::StepsRecorded {
            job_id: job.0,
            from: *from,
            steps: steps.iter().map(|step| without_outcome(step)).collect(),
        }),
        Event::ObjectPut { object } => Stored::ObjectPut(without_status(object)),
        Event::ObjectDeleted { object } => Stored::ObjectDeleted(without_status(object)),
        Event::Run { change, run } => Stored::RunChanged(run::change_out(*change, run)),
        Event::StepsFolded { job, upto, .. } => Stored::StepsFolded(proto::StepsFolded { job_id: job.0, upto: *upto }),
        Event::MessageDelivered { job, message, number } => Stored::MessageDelivered(proto::MessageDelivered {
            job_id: job.0,
            message_id: message.to_string(),
            number: *number,
        }),
        Event::Erased { namespace, job } => Stored::PayloadsErased(proto::PayloadsErased {
            namespace: namespace.to_string(),
            job_id: job.map(|job| job.0),
        }),
        Event::QuestionAsked { question } => Stored::QuestionAsked((&**question).into()),
        Event::QuestionEnded { question } => Stored::QuestionEnded((&**question).into()),
    };
    Some(proto::ClusterEvent { event: Some(stored) }.encode_to_vec())
}

/// Reads an event.
pub fn decode_event(bytes: &[u8]) -> Result<Event, FormatError> {
    let message = proto::ClusterEvent::decode(bytes).map_err(|source| FormatError::Malformed { source })?;
    let understood = message.encoded_len();
    if understood != bytes.len() {
        return Err(FormatError::UnknownField { found: bytes.len(), understood });
    }
    Ok(match message.event.ok_or(FormatError::Missing { field: "event" })? {
        Stored::Agent(agent) => Event::Agent { agent: Arc::new(agent.try_into()?) },
        Stored::AgentDeleted(agent) => Event::AgentDeleted { agent: Arc::new(agent.try_into()?) },
        Stored::Node(node) => Event::Node { node: Arc::new(node.try_into()?) },
        Stored::NodeRemoved(node) => Event::NodeRemoved { node: name("event.node_removed", &node, NodeId::new)? },
        Stored::Configured(config) => Event::Configured { config: Arc::new(config.try_into()?) },
        Stored::StepsRecorded(recorded) => {
            let steps = recorded.steps.into_iter().map(|step| step.try_into().map(Arc::new));
            let steps = steps.collect::<Result<_, FormatError>>()?;
            Event::StepsRecorded { job: JobId(recorded.job_id), from: recorded.from, steps }
        }
        Stored::ObjectPut(object) => Event::ObjectPut { object: Arc::new(object.try_into()?) },
        Stored::ObjectDeleted(object) => Event::ObjectDeleted { object: Arc::new(object.try_into()?) },
        Stored::RunChanged(changed) => {
            let (change, run) = run::change_in(changed)?;
            Event::Run { change, run: Arc::new(run) }
        }
        Stored::StepsFolded(folded) => {
            let artifact = Payload::inline(b"");
            Event::StepsFolded { job: JobId(folded.job_id), upto: folded.upto, artifact }
        }
        Stored::MessageDelivered(delivered) => Event::MessageDelivered {
            job: JobId(delivered.job_id),
            message: name("event.message_id", &delivered.message_id, MessageId::new)?,
            number: delivered.number,
        },
        Stored::PayloadsErased(erased) => Event::Erased {
            namespace: name("event.namespace", &erased.namespace, Namespace::new)?,
            job: erased.job_id.map(JobId),
        },
        Stored::QuestionAsked(question) => Event::QuestionAsked { question: Arc::new(question.try_into()?) },
        Stored::QuestionEnded(question) => Event::QuestionEnded { question: Arc::new(question.try_into()?) },
    })
}

/// An outcome may be large, or an artifact, which an event must not keep alive.
fn without_outcome(step: &Step) -> proto::Step {
    proto::Step { outcome: Some((&Payload::inline(b"")).into()), ..step.into() }
}

/// A status changes without an event, so an event cannot tell it.
fn without_status(object: &Object) -> proto::Object {
    proto::Object { status: Vec::new(), ..object.into() }
}

/// A contract may be an artifact, which an event must not keep alive.
fn without_contract(agent: &AgentVersion) -> proto::AgentVersion {
    proto::AgentVersion { contract: Some((&Payload::inline(b"")).into()), ..agent.into() }
}
