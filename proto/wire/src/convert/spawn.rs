//! Jobs that attempts spawn.

use atlas_types::{FencingToken, JobId, Spawn, SpawnEnd, SpawnRule, SpawnStep, Spawner, StepKey};
use bytes::Bytes;

use super::time::{duration_in, duration_out};
use super::{ConvertError, bounded, fixed, required, word};
use crate::limits::TEXT_BYTES_MAX;
use crate::proto::worker::v1 as pb;

impl From<SpawnRule> for pb::SpawnRule {
    fn from(rule: SpawnRule) -> Self {
        Self { depth: rule.depth, depth_max: rule.depth_max, permitted: rule.permitted }
    }
}

impl From<pb::SpawnRule> for SpawnRule {
    fn from(rule: pb::SpawnRule) -> Self {
        Self { depth: rule.depth, depth_max: rule.depth_max, permitted: rule.permitted }
    }
}

pub(super) fn spawn_out(number: u64, spawn: Spawn) -> pb::Spawn {
    pb::Spawn {
        number,
        job_id: spawn.spawner.job.0,
        fencing_token: spawn.spawner.token.0,
        agent_name: spawn.agent,
        input: Some(spawn.input.into()),
        priority: spawn.priority,
        timeout: Some(duration_out(spawn.timeout)),
        again: spawn.again,
        skill: spawn.skill,
        step: spawn.step.map(|step| pb::SpawnStep { step: step.number, key: Bytes::copy_from_slice(&step.key.0) }),
    }
}

pub(super) fn spawn_in(spawn: pb::Spawn) -> Result<(u64, Spawn), ConvertError> {
    let step =
        |step: pb::SpawnStep| Ok(SpawnStep { number: step.step, key: StepKey(fixed("spawn_step.key", &step.key)?) });
    let read = Spawn {
        spawner: Spawner { job: JobId(spawn.job_id), token: FencingToken(spawn.fencing_token) },
        agent: word("spawn.agent_name", spawn.agent_name)?,
        input: required("spawn.input", spawn.input)?.try_into()?,
        priority: spawn.priority,
        timeout: duration_in("spawn.timeout", spawn.timeout)?,
        again: spawn.again,
        skill: spawn.skill,
        step: spawn.step.map(step).transpose()?,
    };
    Ok((spawn.number, read))
}

pub(super) fn end_out(number: u64, end: SpawnEnd) -> pb::Spawned {
    use pb::spawned::End;
    let end = match end {
        SpawnEnd::Completed(output) => End::Completed(output.into()),
        SpawnEnd::Failed(error) => End::Failed(error),
        SpawnEnd::Refused(why) => End::Refused(why),
    };
    pb::Spawned { number, end: Some(end) }
}

pub(super) fn end_in(spawned: pb::Spawned) -> Result<(u64, SpawnEnd), ConvertError> {
    use pb::spawned::End;
    let end = match required("spawned.end", spawned.end)? {
        End::Completed(output) => SpawnEnd::Completed(output.try_into()?),
        End::Failed(error) => SpawnEnd::Failed(text("spawned.failed", error)?),
        End::Refused(why) => SpawnEnd::Refused(text("spawned.refused", why)?),
    };
    Ok((spawned.number, end))
}

fn text(field: &'static str, text: String) -> Result<String, ConvertError> {
    bounded(field, text.len(), TEXT_BYTES_MAX)?;
    Ok(text)
}
