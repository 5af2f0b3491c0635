//! Commands of runs.

use std::sync::Arc;

use atlas_types::{
    AdvanceRun, AgentName, JobId, ObjectName, Payload, RunDefinition, RunFailure, RunFault, RunId, RunNext,
    RunStrategy, RunWave, StartRun, StepLeft, SubmitJob, WaveEnd, WaveStep,
};

use super::{number, payload, submit};
use crate::tests::script::{Run, Words};

/// `r7` stands for the run 7.
pub(crate) fn run_id(name: &str) -> RunId {
    RunId(number(name.trim_start_matches('r')))
}

/// `start r1 chain=NAME`, or `steps=2` with a definition of its own.
pub(super) fn start_run(words: &Words<'_>, name: &str) -> StartRun {
    let definition = match words.text("chain") {
        Some(name) => RunDefinition::Named(ObjectName::new(name).expect("a name")),
        None => RunDefinition::Given {
            chain: "given".into(),
            steps: words.or("steps", 1),
            document: Payload::inline(b"{}"),
        },
    };
    let (input, metadata) = (payload(words, "input", "{}"), Arc::from(*b"{}"));
    StartRun { id: run_id(name), definition, input, priority: words.or("priority", 0), metadata }
}

/// `advance r1 agent=a` begins the next step; `fail=WHY` and `complete=true` end the run.
pub(super) fn advance_run(run: &Run, words: &Words<'_>) -> AdvanceRun {
    let id = run_id(words.word(1));
    let found = run.state.run(id);
    let next = if let Some(why) = words.text("fail") {
        RunNext::Fail(RunFailure { step: words.get("step"), fault: RunFault::Text(why.into()) })
    } else if words.or("complete", false) {
        RunNext::Complete
    } else {
        let job = words.get("id").map(JobId).or(found.map(|run| run.next_job())).unwrap_or(JobId(0));
        let submit = SubmitJob { context: Some(Payload::inline(b"{}")), ..submit(job, words) };
        let strategy = words.text("strategy").and_then(RunStrategy::named).unwrap_or(RunStrategy::None);
        RunNext::Step { agent: words.text("agent").unwrap_or("a").into(), strategy, submit: Box::new(submit) }
    };
    let version = words.or("run-version", found.map_or(0, |run| run.version));
    AdvanceRun { run: id, version, plan: words.text("plan").map(|text| Payload::inline(text.as_bytes())), next }
}

/// `wave r1 start=0:a,1:b left=2 more=true`; `end=true` and `fail=WHY` end the run.
pub(super) fn wave(run: &Run, words: &Words<'_>) -> AdvanceRun {
    let id = run_id(words.word(1));
    let found = run.state.run(id);
    let list = |name| words.text(name).into_iter().flat_map(|text| text.split(','));
    let start = |(position, text): (usize, &str)| {
        let (number, agent) = text.split_once(':').expect("a number and an agent");
        let job = found.map_or(JobId(0), |run| run.job_at(run.steps.len() + position));
        let submit = SubmitJob { agent: AgentName::new(agent).expect("a name"), ..submit(job, words) };
        let number = number.parse().expect("a number");
        WaveStep { number, agent: agent.into(), strategy: RunStrategy::Direct, submit: Box::new(submit) }
    };
    let left = |text: &str| StepLeft { number: text.parse().expect("a number"), error: None };
    let end = match words.text("fail") {
        Some(why) => {
            let failure = RunFailure { step: words.get("step"), fault: RunFault::Text(why.into()) };
            Some(WaveEnd::Fail(failure))
        }
        None => words.or("end", false).then_some(WaveEnd::Complete),
    };
    let wave = RunWave {
        start: list("start").enumerate().map(start).collect(),
        left: list("left").map(left).collect(),
        more: words.or("more", false),
        end,
    };
    let version = words.or("run-version", found.map_or(0, |run| run.version));
    AdvanceRun { run: id, version, plan: None, next: RunNext::Wave(Box::new(wave)) }
}
