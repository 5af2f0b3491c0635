//! Objects and the commands about them.

use atlas_types::{DeleteObject, EventSeq, Expect, Object, ObjectKey, Observation, ObserveObjects, PutObject};

use super::table::{message, table};
use crate::proto::object_expect::State;
use crate::{FormatError, proto};

table! {
    "object": Object = Object {
        uid = uid,
        revision = revision,
        labels = labels,
        spec = spec,
        spec_version = spec_version,
        created = created_at_us,
        updated = updated_at_us,
        by = updated_by,
        status = status,
    }
    part key: ObjectKey {
        namespace = namespace,
        kind = kind,
        name = name,
    }
}

table! {
    "put_object": PutObject = PutObject {
        kind = kind,
        name = name,
        labels = labels,
        spec = spec,
        spec_version = spec_version,
        expect = expect,
    }
}

table! {
    "delete_object": DeleteObject = DeleteObject {
        kind = kind,
        name = name,
        expect = expect,
    }
}

table! {
    "observe_objects": ObserveObjects = ObserveObjects {
        observations = observations,
    }
}

table! {
    "observation": Observation = Observation {
        uid = uid,
        revision = revision,
        status = status,
    }
    part key: ObjectKey {
        namespace = namespace,
        kind = kind,
        name = name,
    }
}

impl From<&Expect> for proto::ObjectExpect {
    fn from(expect: &Expect) -> Self {
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

message!(Expect = ObjectExpect);
