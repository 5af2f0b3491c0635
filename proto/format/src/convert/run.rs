//! Runs, and the commands about them.

use std::sync::Arc;

use atlas_types::{
    AdvanceRun, Branches, Door, EventSeq, Failure, JobId, Namespace, ObjectName, Payload, Principal, Run, RunChange,
    RunDefinition, RunFailure, RunFault, RunId, RunNext, RunStatus, RunStep, RunStrategy, RunWave, StartRun, StepLeft,
    StepOf, Timestamp, TraceContext, WaveEnd, WaveStep,
};

use super::{EnumField as _, enum_field, name, required};
use crate::{FormatError, proto};

enum_field!(RunStatus, proto::RunStatus, {
    Pending = Pending,
    Running = Running,
    Completed = Completed,
    Failed = Failed,
    Cancelled = Cancelled,
});

enum_field!(RunStrategy, proto::RunStrategy, {
    None = None,
    Direct = Direct,
    Mapped = Mapped,
    Coerce = Coerce,
    Bridge = Bridge,
});

enum_field!(RunChange, proto::RunChange, {
    Started = Started,
    StepStarted = StepStarted,
    StepEnded = StepEnded,
    Ended = Ended,
});

/// A change of a run as a history keeps it. Its payloads are left out: they may be artifacts, which an event must not keep alive.
pub(crate) fn change_out(change: RunChange, run: &Run) -> proto::RunChanged {
    let empty = || Some((&Payload::inline(b"")).into());
    let mut steps = steps_out(run);
    for step in &mut steps {
        step.output = step.output.as_ref().and_then(|_| empty());
    }
    let plan = run.plan.as_ref().and_then(|_| empty());
    let run = proto::Run { definition: empty(), input: empty(), plan, steps, ..run.into() };
    proto::RunChanged { change: proto::RunChange::from(change).into(), run: Some(run) }
}

/// Reads a change of a run.
pub(crate) fn change_in(changed: proto::RunChanged) -> Result<(RunChange, Run), FormatError> {
    let change = RunChange::read("run_changed.change", changed.change)?;
    Ok((change, required("run_changed.run", changed.run)?.try_into()?))
}

/// A step whose number is not its position says so.
fn steps_out(run: &Run) -> Vec<proto::RunStep> {
    let step = |(position, step): (usize, &Arc<RunStep>)| {
        let number = Some(step.number).filter(|number| *number as usize != position);
        proto::RunStep { number, ..(&**step).into() }
    };
    run.steps.iter().enumerate().map(step).collect()
}

impl From<&Run> for proto::Run {
    fn from(run: &Run) -> Self {
        Self {
            namespace: run.namespace.to_string(),
            run_id: run.id.0,
            chain: run.chain.to_string(),
            revision: run.revision.map(|revision| revision.0),
            definition: Some((&run.definition).into()),
            input: Some((&run.input).into()),
            status: proto::RunStatus::from(run.status).into(),
            version: run.version,
            total_steps: run.total_steps,
            plan: run.plan.as_ref().map(Into::into),
            steps: steps_out(run),
            failure: run.failure.as_ref().map(Into::into),
            priority: run.priority,
            metadata: run.metadata.to_vec(),
            created_at_us: run.created_at.0,
            completed_at_us: run.completed_at.0,
            started: run.started.0,
            ended: run.ended.map(|event| event.0),
            principal: run.principal.to_string(),
            door: proto::Door::from(run.door).into(),
            trace: run.trace.map(Into::into),
            job_id: run.job.map(|job| job.0),
            branches: run.branches.as_ref().map(Into::into),
        }
    }
}

impl TryFrom<proto::Run> for Run {
    type Error = FormatError;

    fn try_from(run: proto::Run) -> Result<Self, FormatError> {
        let steps = run.steps.into_iter().enumerate().map(|(position, step)| {
            let number = step.number.unwrap_or(u32::try_from(position).unwrap_or(u32::MAX));
            Ok::<_, FormatError>(Arc::new(RunStep { number, ..RunStep::try_from(step)? }))
        });
        Ok(Self {
            namespace: name("run.namespace", &run.namespace, Namespace::new)?,
            id: RunId(run.run_id),
            chain: run.chain.into(),
            revision: run.revision.map(EventSeq),
            definition: required("run.definition", run.definition)?.try_into()?,
            input: required("run.input", run.input)?.try_into()?,
            status: RunStatus::read("run.status", run.status)?,
            version: run.version,
            total_steps: run.total_steps,
            plan: run.plan.map(Payload::try_from).transpose()?,
            steps: steps.collect::<Result<_, _>>()?,
            failure: run.failure.map(RunFailure::try_from).transpose()?,
            priority: run.priority,
            metadata: run.metadata.into(),
            created_at: Timestamp(run.created_at_us),
            completed_at: Timestamp(run.completed_at_us),
            started: EventSeq(run.started),
            ended: run.ended.map(EventSeq),
            principal: name("run.principal", &run.principal, Principal::new)?,
            door: Door::read("run.door", run.door)?,
            trace: run.trace.map(TraceContext::try_from).transpose()?,
            job: run.job_id.map(JobId),
            branches: run.branches.map(Into::into),
        })
    }
}

impl From<&RunStep> for proto::RunStep {
    fn from(step: &RunStep) -> Self {
        Self {
            agent: step.agent.to_string(),
            job_id: step.job.0,
            strategy: proto::RunStrategy::from(step.strategy).into(),
            output: step.output.as_ref().map(Into::into),
            number: None,
            fault: step.fault.as_ref().map(Into::into),
        }
    }
}

impl TryFrom<proto::RunStep> for RunStep {
    type Error = FormatError;

    fn try_from(step: proto::RunStep) -> Result<Self, FormatError> {
        Ok(Self {
            number: step.number.unwrap_or_default(),
            agent: step.agent.into(),
            job: JobId(step.job_id),
            strategy: RunStrategy::read("run_step.strategy", step.strategy)?,
            output: step.output.map(Payload::try_from).transpose()?,
            fault: step.fault.map(RunFault::try_from).transpose()?,
        })
    }
}

impl From<&RunFault> for proto::StepFault {
    fn from(fault: &RunFault) -> Self {
        use proto::step_fault::Fault;
        let fault = match fault {
            RunFault::Text(text) => Fault::Text(text.to_string()),
            RunFault::Job(failure) => Fault::Job(failure.into()),
            RunFault::Cancelled => Fault::Cancelled(proto::StepCancelled {}),
        };
        Self { fault: Some(fault) }
    }
}

impl TryFrom<proto::StepFault> for RunFault {
    type Error = FormatError;

    fn try_from(fault: proto::StepFault) -> Result<Self, FormatError> {
        use proto::step_fault::Fault;
        Ok(match required("step_fault.fault", fault.fault)? {
            Fault::Text(text) => Self::Text(text.into()),
            Fault::Job(failure) => Self::Job(Failure::try_from(failure)?),
            Fault::Cancelled(proto::StepCancelled {}) => Self::Cancelled,
        })
    }
}

impl From<&Branches> for proto::Branches {
    fn from(branches: &Branches) -> Self {
        Self { fresh: branches.fresh, left: branches.left.iter().map(Into::into).collect() }
    }
}

impl From<proto::Branches> for Branches {
    fn from(branches: proto::Branches) -> Self {
        Self { fresh: branches.fresh, left: branches.left.into_iter().map(Into::into).collect() }
    }
}

impl From<&StepLeft> for proto::StepLeft {
    fn from(left: &StepLeft) -> Self {
        Self { number: left.number, error: left.error.as_deref().map(str::to_owned) }
    }
}

impl From<proto::StepLeft> for StepLeft {
    fn from(left: proto::StepLeft) -> Self {
        Self { number: left.number, error: left.error.map(Into::into) }
    }
}

impl From<&RunWave> for proto::RunWave {
    fn from(wave: &RunWave) -> Self {
        use proto::run_wave::End;
        let step = |step: &WaveStep| proto::WaveStep {
            number: step.number,
            agent: step.agent.to_string(),
            strategy: proto::RunStrategy::from(step.strategy).into(),
            submit: Some((&*step.submit).into()),
        };
        Self {
            start: wave.start.iter().map(step).collect(),
            left: wave.left.iter().map(Into::into).collect(),
            more: wave.more,
            end: wave.end.as_ref().map(|end| match end {
                WaveEnd::Complete => End::Complete(proto::RunComplete {}),
                WaveEnd::Fail(failure) => End::Fail(failure.into()),
            }),
        }
    }
}

impl TryFrom<proto::RunWave> for RunWave {
    type Error = FormatError;

    fn try_from(wave: proto::RunWave) -> Result<Self, FormatError> {
        use proto::run_wave::End;
        let step = |step: proto::WaveStep| {
            Ok::<_, FormatError>(WaveStep {
                number: step.number,
                agent: step.agent.into(),
                strategy: RunStrategy::read("wave_step.strategy", step.strategy)?,
                submit: Box::new(required("wave_step.submit", step.submit)?.try_into()?),
            })
        };
        Ok(Self {
            start: wave.start.into_iter().map(step).collect::<Result<_, _>>()?,
            left: wave.left.into_iter().map(Into::into).collect(),
            more: wave.more,
            end: match wave.end {
                None => None,
                Some(End::Complete(proto::RunComplete {})) => Some(WaveEnd::Complete),
                Some(End::Fail(failure)) => Some(WaveEnd::Fail(failure.try_into()?)),
            },
        })
    }
}

impl From<&RunFailure> for proto::RunFailure {
    fn from(failure: &RunFailure) -> Self {
        use proto::run_failure::Fault;
        let fault = match &failure.fault {
            RunFault::Text(text) => Fault::Text(text.to_string()),
            RunFault::Job(failure) => Fault::Job(failure.into()),
            RunFault::Cancelled => Fault::Cancelled(proto::StepCancelled {}),
        };
        Self { step: failure.step, fault: Some(fault) }
    }
}

impl TryFrom<proto::RunFailure> for RunFailure {
    type Error = FormatError;

    fn try_from(failure: proto::RunFailure) -> Result<Self, FormatError> {
        use proto::run_failure::Fault;
        let fault = match required("run_failure.fault", failure.fault)? {
            Fault::Text(text) => RunFault::Text(text.into()),
            Fault::Job(failure) => RunFault::Job(Failure::try_from(failure)?),
            Fault::Cancelled(proto::StepCancelled {}) => RunFault::Cancelled,
        };
        Ok(Self { step: failure.step, fault })
    }
}

impl From<StepOf> for proto::StepOf {
    fn from(step: StepOf) -> Self {
        Self { run_id: step.run.0, index: step.index }
    }
}

impl From<proto::StepOf> for StepOf {
    fn from(step: proto::StepOf) -> Self {
        Self { run: RunId(step.run_id), index: step.index }
    }
}

impl From<&StartRun> for proto::StartRun {
    fn from(command: &StartRun) -> Self {
        use proto::start_run::Definition;
        let definition = match &command.definition {
            RunDefinition::Named(name) => Definition::Named(name.to_string()),
            RunDefinition::Given { chain, steps, document } => Definition::Given(proto::GivenChain {
                chain: chain.to_string(),
                steps: *steps,
                document: Some(document.into()),
            }),
        };
        Self {
            run_id: command.id.0,
            definition: Some(definition),
            input: Some((&command.input).into()),
            priority: command.priority,
            metadata: command.metadata.to_vec(),
        }
    }
}

impl TryFrom<proto::StartRun> for StartRun {
    type Error = FormatError;

    fn try_from(message: proto::StartRun) -> Result<Self, FormatError> {
        use proto::start_run::Definition;
        let definition = match required("start_run.definition", message.definition)? {
            Definition::Named(text) => RunDefinition::Named(name("start_run.named", &text, ObjectName::new)?),
            Definition::Given(given) => RunDefinition::Given {
                chain: given.chain.into(),
                steps: given.steps,
                document: required("given_chain.document", given.document)?.try_into()?,
            },
        };
        Ok(Self {
            id: RunId(message.run_id),
            definition,
            input: required("start_run.input", message.input)?.try_into()?,
            priority: message.priority,
            metadata: message.metadata.into(),
        })
    }
}

impl From<&AdvanceRun> for proto::AdvanceRun {
    fn from(command: &AdvanceRun) -> Self {
        use proto::advance_run::Next;
        let next = match &command.next {
            RunNext::Step { agent, strategy, submit } => Next::Step(proto::NextStep {
                agent: agent.to_string(),
                strategy: proto::RunStrategy::from(*strategy).into(),
                submit: Some((&**submit).into()),
            }),
            RunNext::Fail(failure) => Next::Fail(failure.into()),
            RunNext::Complete => Next::Complete(proto::RunComplete {}),
            RunNext::Wave(wave) => Next::Wave((&**wave).into()),
        };
        Self {
            run_id: command.run.0,
            version: command.version,
            plan: command.plan.as_ref().map(Into::into),
            next: Some(next),
        }
    }
}

impl TryFrom<proto::AdvanceRun> for AdvanceRun {
    type Error = FormatError;

    fn try_from(message: proto::AdvanceRun) -> Result<Self, FormatError> {
        use proto::advance_run::Next;
        let next = match required("advance_run.next", message.next)? {
            Next::Step(step) => RunNext::Step {
                agent: step.agent.into(),
                strategy: RunStrategy::read("next_step.strategy", step.strategy)?,
                submit: Box::new(required("next_step.submit", step.submit)?.try_into()?),
            },
            Next::Fail(failure) => RunNext::Fail(failure.try_into()?),
            Next::Complete(proto::RunComplete {}) => RunNext::Complete,
            Next::Wave(wave) => RunNext::Wave(Box::new(wave.try_into()?)),
        };
        let plan = message.plan.map(Payload::try_from).transpose()?;
        Ok(Self { run: RunId(message.run_id), version: message.version, plan, next })
    }
}
