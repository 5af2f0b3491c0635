//! The command that fires a trigger.

use atlas_types::{FireTrigger, FiredBy, TriggerStart};

use super::enum_field;
use super::table::{message, table};
use crate::proto::fire_trigger::Start;
use crate::{FormatError, proto};

enum_field!(FiredBy, proto::FiredBy, { Schedule = Schedule, Request = Request, Webhook = Webhook, Backfill = Backfill });

table! {
    "fire_trigger": FireTrigger = FireTrigger {
        name = name,
        uid = uid,
        revision = revision,
        by = by,
        tick = tick_us,
        next = next_us,
        missed = missed,
        start = start,
    }
}

impl From<&TriggerStart> for Start {
    fn from(start: &TriggerStart) -> Self {
        match start {
            TriggerStart::Job(job) => Self::Job((&**job).into()),
            TriggerStart::Run(run) => Self::Run((&**run).into()),
        }
    }
}

impl TryFrom<Start> for TriggerStart {
    type Error = FormatError;

    fn try_from(start: Start) -> Result<Self, FormatError> {
        Ok(match start {
            Start::Job(job) => Self::Job(Box::new(job.try_into()?)),
            Start::Run(run) => Self::Run(Box::new(run.try_into()?)),
        })
    }
}

message!(TriggerStart = fire_trigger::Start);
