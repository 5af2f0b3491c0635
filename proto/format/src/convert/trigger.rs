//! The command that fires a trigger.

use atlas_types::{EventSeq, FireTrigger, FiredBy, ObjectName, Timestamp, TriggerStart};

use super::{EnumField as _, enum_field, name};
use crate::proto::fire_trigger::Start;
use crate::{FormatError, proto};

enum_field!(FiredBy, proto::FiredBy, { Schedule = Schedule, Request = Request, Webhook = Webhook, Backfill = Backfill });

impl From<&FireTrigger> for proto::FireTrigger {
    fn from(command: &FireTrigger) -> Self {
        Self {
            name: command.name.to_string(),
            uid: command.uid.0,
            revision: command.revision.0,
            by: proto::FiredBy::from(command.by).into(),
            tick_us: command.tick.0,
            next_us: command.next.0,
            missed: command.missed,
            start: command.start.as_ref().map(|start| match start {
                TriggerStart::Job(job) => Start::Job((&**job).into()),
                TriggerStart::Run(run) => Start::Run((&**run).into()),
            }),
        }
    }
}

impl TryFrom<proto::FireTrigger> for FireTrigger {
    type Error = FormatError;

    fn try_from(message: proto::FireTrigger) -> Result<Self, FormatError> {
        Ok(Self {
            name: name("fire_trigger.name", &message.name, ObjectName::new)?,
            uid: EventSeq(message.uid),
            revision: EventSeq(message.revision),
            by: FiredBy::read("fire_trigger.by", message.by)?,
            tick: Timestamp(message.tick_us),
            next: Timestamp(message.next_us),
            missed: message.missed,
            start: message.start.map(read_start).transpose()?,
        })
    }
}

fn read_start(start: Start) -> Result<TriggerStart, FormatError> {
    Ok(match start {
        Start::Job(job) => TriggerStart::Job(Box::new(job.try_into()?)),
        Start::Run(run) => TriggerStart::Run(Box::new(run.try_into()?)),
    })
}
