//! Runs, and the commands about them.

use std::sync::Arc;

use atlas_types::{
    AdvanceRun, Branches, Failure, ObjectName, Payload, Run, RunChange, RunDefinition, RunFailure, RunFault, RunNext,
    RunStatus, RunStep, RunStrategy, RunWave, StartRun, StepLeft, StepOf, WaveEnd, WaveStep,
};

use super::table::{Field as _, Rule, message, table};
use super::{enum_field, name, required};
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
    let mut steps = Numbered::write(&run.steps);
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

table! {
    "run": Run = Run {
        namespace = namespace,
        id = run_id,
        chain = chain,
        revision = revision,
        definition = definition,
        input = input,
        status = status,
        version = version,
        total_steps = total_steps,
        plan = plan,
        steps = steps via Numbered,
        failure = failure,
        priority = priority,
        metadata = metadata,
        created_at = created_at_us,
        completed_at = completed_at_us,
        started = started,
        ended = ended,
        principal = principal,
        door = door,
        trace = trace,
        job = job_id,
        branches = branches,
    }
}

/// Steps of a run: one whose number is not its position says so.
struct Numbered;

impl Rule<Vec<Arc<RunStep>>, Vec<proto::RunStep>> for Numbered {
    fn write(steps: &Vec<Arc<RunStep>>) -> Vec<proto::RunStep> {
        let step = |(position, step): (usize, &Arc<RunStep>)| {
            let number = Some(step.number).filter(|number| *number as usize != position);
            proto::RunStep { number, ..(&**step).into() }
        };
        steps.iter().enumerate().map(step).collect()
    }

    fn read(_: &'static str, stored: Vec<proto::RunStep>) -> Result<Vec<Arc<RunStep>>, FormatError> {
        let step = |(position, step): (usize, proto::RunStep)| {
            let number = step.number.unwrap_or(u32::try_from(position).unwrap_or(u32::MAX));
            Ok(Arc::new(RunStep { number, ..RunStep::try_from(step)? }))
        };
        stored.into_iter().enumerate().map(step).collect()
    }
}

/// The number of a step, which [`Numbered`] stores.
struct Elsewhere;

impl Rule<u32, Option<u32>> for Elsewhere {
    fn write(_: &u32) -> Option<u32> {
        None
    }

    fn read(_: &'static str, stored: Option<u32>) -> Result<u32, FormatError> {
        Ok(stored.unwrap_or_default())
    }
}

table! {
    "run_step": RunStep = RunStep {
        number = number via Elsewhere,
        agent = agent,
        job = job_id,
        strategy = strategy,
        output = output,
        fault = fault,
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

message!(RunFault = StepFault);

table! {
    "branches": Branches = Branches {
        fresh = fresh,
        left = left,
    }
}

table! {
    "step_left": StepLeft = StepLeft {
        number = number,
        error = error,
    }
}

table! {
    "run_wave": RunWave = RunWave {
        start = start,
        left = left,
        more = more,
        end = end,
    }
}

table! {
    "wave_step": WaveStep = WaveStep {
        number = number,
        agent = agent,
        strategy = strategy,
        submit = submit,
    }
}

impl From<&WaveEnd> for proto::run_wave::End {
    fn from(end: &WaveEnd) -> Self {
        match end {
            WaveEnd::Complete => Self::Complete(proto::RunComplete {}),
            WaveEnd::Fail(failure) => Self::Fail(failure.into()),
        }
    }
}

impl TryFrom<proto::run_wave::End> for WaveEnd {
    type Error = FormatError;

    fn try_from(end: proto::run_wave::End) -> Result<Self, FormatError> {
        use proto::run_wave::End;
        Ok(match end {
            End::Complete(proto::RunComplete {}) => Self::Complete,
            End::Fail(failure) => Self::Fail(failure.try_into()?),
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

message!(
    RunFailure = RunFailure,
    RunDefinition = start_run::Definition,
    RunNext = advance_run::Next,
    WaveEnd = run_wave::End
);

table! {
    "step_of": StepOf = StepOf {
        run = run_id,
        index = index,
    }
}

table! {
    "start_run": StartRun = StartRun {
        id = run_id,
        definition = definition,
        input = input,
        priority = priority,
        metadata = metadata,
    }
}

impl From<&RunDefinition> for proto::start_run::Definition {
    fn from(definition: &RunDefinition) -> Self {
        match definition {
            RunDefinition::Named(name) => Self::Named(name.to_string()),
            RunDefinition::Given { chain, steps, document } => Self::Given(proto::GivenChain {
                chain: chain.to_string(),
                steps: *steps,
                document: Some(document.into()),
            }),
        }
    }
}

impl TryFrom<proto::start_run::Definition> for RunDefinition {
    type Error = FormatError;

    fn try_from(definition: proto::start_run::Definition) -> Result<Self, FormatError> {
        use proto::start_run::Definition;
        Ok(match definition {
            Definition::Named(text) => Self::Named(name("start_run.named", &text, ObjectName::new)?),
            Definition::Given(given) => Self::Given {
                chain: given.chain.into(),
                steps: given.steps,
                document: required("given_chain.document", given.document)?.try_into()?,
            },
        })
    }
}

table! {
    "advance_run": AdvanceRun = AdvanceRun {
        run = run_id,
        version = version,
        plan = plan,
        next = next,
    }
}

impl From<&RunNext> for proto::advance_run::Next {
    fn from(next: &RunNext) -> Self {
        match next {
            RunNext::Step { agent, strategy, submit } => Self::Step(proto::NextStep {
                agent: agent.to_string(),
                strategy: strategy.write(),
                submit: Some((&**submit).into()),
            }),
            RunNext::Fail(failure) => Self::Fail(failure.into()),
            RunNext::Complete => Self::Complete(proto::RunComplete {}),
            RunNext::Wave(wave) => Self::Wave((&**wave).into()),
        }
    }
}

impl TryFrom<proto::advance_run::Next> for RunNext {
    type Error = FormatError;

    fn try_from(next: proto::advance_run::Next) -> Result<Self, FormatError> {
        use proto::advance_run::Next;
        Ok(match next {
            Next::Step(step) => Self::Step {
                agent: step.agent.into(),
                strategy: RunStrategy::read("next_step.strategy", step.strategy)?,
                submit: Box::new(required("next_step.submit", step.submit)?.try_into()?),
            },
            Next::Fail(failure) => Self::Fail(failure.try_into()?),
            Next::Complete(proto::RunComplete {}) => Self::Complete,
            Next::Wave(wave) => Self::Wave(Box::new(wave.try_into()?)),
        })
    }
}
