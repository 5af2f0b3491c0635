//! Objects and the commands about them.

use std::sync::Arc;

use atlas_types::{
    DeleteObject, EventSeq, Expect, Object, ObjectKey, ObjectKind, ObjectName, Observation, ObserveObjects, Principal,
    PutObject, Timestamp,
};

use super::{labels_in, labels_out, name, required};
use crate::proto::object_expect::State;
use crate::{FormatError, proto};

impl From<&Object> for proto::Object {
    fn from(object: &Object) -> Self {
        let ObjectKey { namespace, kind, name } = &object.key;
        Self {
            namespace: namespace.to_string(),
            kind: kind.to_string(),
            name: name.to_string(),
            uid: object.uid.0,
            revision: object.revision.0,
            labels: labels_out(&object.labels),
            spec: object.spec.to_vec(),
            spec_version: object.spec_version,
            created_at_us: object.created.0,
            updated_at_us: object.updated.0,
            updated_by: object.by.to_string(),
            status: object.status.to_vec(),
        }
    }
}

impl TryFrom<proto::Object> for Object {
    type Error = FormatError;

    fn try_from(object: proto::Object) -> Result<Self, FormatError> {
        Ok(Self {
            key: key(&object.namespace, &object.kind, &object.name)?,
            uid: EventSeq(object.uid),
            revision: EventSeq(object.revision),
            labels: Arc::new(labels_in("object.labels", object.labels)?),
            spec: object.spec.into(),
            spec_version: object.spec_version,
            created: Timestamp(object.created_at_us),
            updated: Timestamp(object.updated_at_us),
            by: name("object.updated_by", &object.updated_by, Principal::new)?,
            status: object.status.into(),
        })
    }
}

impl From<&PutObject> for proto::PutObject {
    fn from(command: &PutObject) -> Self {
        Self {
            kind: command.kind.to_string(),
            name: command.name.to_string(),
            labels: labels_out(&command.labels),
            spec: command.spec.to_vec(),
            spec_version: command.spec_version,
            expect: Some(command.expect.into()),
        }
    }
}

impl TryFrom<proto::PutObject> for PutObject {
    type Error = FormatError;

    fn try_from(message: proto::PutObject) -> Result<Self, FormatError> {
        Ok(Self {
            kind: name("put_object.kind", &message.kind, ObjectKind::new)?,
            name: name("put_object.name", &message.name, ObjectName::new)?,
            labels: labels_in("put_object.labels", message.labels)?,
            spec: message.spec.into(),
            spec_version: message.spec_version,
            expect: required("put_object.expect", message.expect)?.try_into()?,
        })
    }
}

impl From<&DeleteObject> for proto::DeleteObject {
    fn from(command: &DeleteObject) -> Self {
        Self { kind: command.kind.to_string(), name: command.name.to_string(), expect: Some(command.expect.into()) }
    }
}

impl TryFrom<proto::DeleteObject> for DeleteObject {
    type Error = FormatError;

    fn try_from(message: proto::DeleteObject) -> Result<Self, FormatError> {
        Ok(Self {
            kind: name("delete_object.kind", &message.kind, ObjectKind::new)?,
            name: name("delete_object.name", &message.name, ObjectName::new)?,
            expect: required("delete_object.expect", message.expect)?.try_into()?,
        })
    }
}

impl From<&ObserveObjects> for proto::ObserveObjects {
    fn from(command: &ObserveObjects) -> Self {
        Self { observations: command.observations.iter().map(Into::into).collect() }
    }
}

impl TryFrom<proto::ObserveObjects> for ObserveObjects {
    type Error = FormatError;

    fn try_from(message: proto::ObserveObjects) -> Result<Self, FormatError> {
        let observations = message.observations.into_iter().map(TryInto::try_into);
        Ok(Self { observations: observations.collect::<Result<_, FormatError>>()? })
    }
}

impl From<&Observation> for proto::Observation {
    fn from(observation: &Observation) -> Self {
        let ObjectKey { namespace, kind, name } = &observation.key;
        Self {
            namespace: namespace.to_string(),
            kind: kind.to_string(),
            name: name.to_string(),
            uid: observation.uid.0,
            revision: observation.revision.0,
            status: observation.status.to_vec(),
        }
    }
}

impl TryFrom<proto::Observation> for Observation {
    type Error = FormatError;

    fn try_from(message: proto::Observation) -> Result<Self, FormatError> {
        Ok(Self {
            key: key(&message.namespace, &message.kind, &message.name)?,
            uid: EventSeq(message.uid),
            revision: EventSeq(message.revision),
            status: message.status.into(),
        })
    }
}

impl From<Expect> for proto::ObjectExpect {
    fn from(expect: Expect) -> Self {
        let state = match expect {
            Expect::Any => None,
            Expect::Absent => Some(State::Absent(true)),
            Expect::Revision(revision) => Some(State::Revision(revision.0)),
        };
        Self { state }
    }
}

impl TryFrom<proto::ObjectExpect> for Expect {
    type Error = FormatError;

    fn try_from(expect: proto::ObjectExpect) -> Result<Self, FormatError> {
        Ok(match expect.state {
            None => Self::Any,
            Some(State::Absent(true)) => Self::Absent,
            Some(State::Absent(false)) => return Err(FormatError::Value { field: "object_expect.absent", found: 0 }),
            Some(State::Revision(revision)) => Self::Revision(EventSeq(revision)),
        })
    }
}

fn key(namespace: &str, kind: &str, object: &str) -> Result<ObjectKey, FormatError> {
    Ok(ObjectKey {
        namespace: name("object.namespace", namespace, atlas_types::Namespace::new)?,
        kind: name("object.kind", kind, ObjectKind::new)?,
        name: name("object.name", object, ObjectName::new)?,
    })
}
