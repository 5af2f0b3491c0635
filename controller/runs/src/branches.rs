//! What a run with branches does next. It is a function of the plan, the input and what happened to each step so far, so every leader
//! finds the same.

#[cfg(test)]
mod tests;

use std::borrow::Cow;

use atlas_mediation::{Bridge, Context, MediationResult, mapped, mediate};
use atlas_types::{Run, RunFault, RunStrategy};
use serde_json::{Map, Value, json};

use crate::engine::{StepInput, given};
use crate::flow::{Flow, Without};
use crate::plan::{Plan, PlannedStep};

/// Most steps of a run that run at the same time.
pub const AT_ONCE_MAX: usize = 16;

/// What happened to a step so far.
#[derive(Debug, Clone, PartialEq)]
pub enum Fact {
    /// Nothing.
    Waiting,
    /// It runs.
    Running,
    /// It completed with this output.
    Done(Value),
    /// Its last try failed.
    Failed {
        /// Why.
        error: String,
        /// How often it was tried.
        tries: u32,
        /// Whether another try can help.
        again: bool,
    },
    /// It does not run: its condition does not hold or the steps before have ended, or it could not begin for this reason.
    Left(Option<String>),
}

/// What a run does next.
#[derive(Debug, Default)]
pub struct Wave {
    /// Steps that begin, and the seconds that each waits first.
    pub start: Vec<(StepInput, f64)>,
    /// Steps whose input a model makes.
    pub bridges: Vec<(usize, Box<Bridge>)>,
    /// Steps that do not run, and why those cannot that should.
    pub left: Vec<(usize, Option<String>)>,
    /// How the run ends.
    pub end: Option<End>,
}

/// How a run ends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum End {
    /// All steps have ended.
    Complete,
    /// The job of a step failed, and the steps after it need it.
    Step(usize),
    /// A step could not begin.
    Fail { index: usize, error: String },
}

/// What happened to each step of a run; `outputs` are those of its records, in their order.
pub fn facts(plan: &Plan, run: &Run, outputs: &[Option<Value>]) -> Vec<Fact> {
    let mut facts = vec![Fact::Waiting; plan.steps.len()];
    let mut tries = vec![0_u32; plan.steps.len()];
    for (step, output) in run.steps.iter().zip(outputs) {
        let number = step.number as usize;
        let (Some(fact), Some(tries)) = (facts.get_mut(number), tries.get_mut(number)) else { continue };
        *tries += 1;
        *fact = match (output, &step.fault) {
            (Some(output), _) => Fact::Done(output.clone()),
            (None, None) => Fact::Running,
            (None, Some(fault)) => {
                let again =
                    matches!(fault, RunFault::Job(failure) if failure.kind != atlas_types::FailureKind::InputInvalid);
                Fact::Failed { error: fault.step_error(&step.agent), tries: *tries, again }
            }
        };
    }
    for left in run.branches.iter().flat_map(|branches| &branches.left) {
        if let Some(fact) = facts.get_mut(left.number as usize) {
            *fact = Fact::Left(left.error.as_deref().map(str::to_owned));
        }
    }
    facts
}

/// What a step gets.
enum Data<'a> {
    /// A step before has not ended.
    Pending,
    /// All steps before have ended without data for it.
    Ended,
    Some(Cow<'a, Value>, Source),
}

/// Where data come from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Source {
    /// The input of the chain.
    Trigger,
    Step(usize),
    /// These steps, each under its name.
    Join(Vec<usize>),
}

/// What a run does next.
pub fn wave(plan: &Plan, trigger: &Value, facts: &[Fact]) -> Wave {
    let mut view = View { plan, trigger, facts: facts.to_vec() };
    let mut wave = Wave::default();
    let running = facts.iter().filter(|fact| **fact == Fact::Running).count();
    let mut room = AT_ONCE_MAX.saturating_sub(running);
    // A step comes only after steps before it, so one pass sees the effects of steps that are left out.
    for (index, step) in plan.steps.iter().enumerate() {
        let (pause, again) = match &view.facts[index] {
            Fact::Waiting => (0.0, false),
            Fact::Failed { tries, again, .. } => {
                let flow = plan.flow(index);
                if *again && *tries <= flow.max_retries {
                    (flow.pause_s(*tries), true)
                } else if flow.on_failure == Without::Fail {
                    return Wave { end: Some(End::Step(index)), ..Wave::default() };
                } else {
                    continue;
                }
            }
            Fact::Running | Fact::Done(_) | Fact::Left(_) => continue,
        };
        match view.begin(index, step, again) {
            Begin::Wait => {}
            Begin::Step(_) | Begin::Bridge(_) if room == 0 => {}
            Begin::Step(input) => {
                room -= 1;
                wave.start.push((input, pause));
            }
            Begin::Bridge(bridge) => {
                room -= 1;
                wave.bridges.push((index, bridge));
            }
            // What it began with is still there, so this does not happen; then there is nothing to try again.
            Begin::Leave | Begin::Fail(_) if again => {}
            Begin::Leave => {
                view.facts[index] = Fact::Left(None);
                wave.left.push((index, None));
            }
            Begin::Fail(error) if plan.flow(index).on_failure == Without::Fail => {
                return Wave { end: Some(End::Fail { index, error }), ..Wave::default() };
            }
            Begin::Fail(error) => {
                view.facts[index] = Fact::Left(Some(error.clone()));
                wave.left.push((index, Some(error)));
            }
        }
    }
    if wave.start.is_empty() && wave.bridges.is_empty() && view.facts.iter().all(is_settled) {
        wave.end = Some(End::Complete);
    }
    wave
}

fn is_settled(fact: &Fact) -> bool {
    !matches!(fact, Fact::Waiting | Fact::Running)
}

enum Begin {
    Wait,
    Step(StepInput),
    Bridge(Box<Bridge>),
    Leave,
    Fail(String),
}

struct View<'a> {
    plan: &'a Plan,
    trigger: &'a Value,
    facts: Vec<Fact>,
}

impl View<'_> {
    fn begin(&self, index: usize, step: &PlannedStep, again: bool) -> Begin {
        let (data, source) = match self.data(index) {
            Data::Pending => return Begin::Wait,
            Data::Ended => return Begin::Leave,
            Data::Some(data, source) => (data, source),
        };
        match self.plan.flow(index).holds(self.trigger, &data, &self.steps()) {
            Ok(true) => {}
            // Its condition was for the first try.
            _ if again => {}
            Ok(false) => return Begin::Leave,
            Err(problem) => {
                return Begin::Fail(format!("Condition failed at step {index} ({}): {problem}", step.agent));
            }
        }
        let failed = |why: &str| Begin::Fail(format!("Mediation failed at step {index} ({}): {why}", step.agent));
        let Some(data) = data.as_object() else { return failed("the data for it is not an object") };
        let context = Context { trigger: self.trigger.clone(), steps: self.outputs() };
        let begin = |input, strategy| Begin::Step(StepInput { index, input, strategy });
        let Some(schema) = schema_of(self.plan, &source) else {
            let input = given(step).map(|map| mapped(map, &context, data));
            return begin(input.unwrap_or_else(|| data.clone()), RunStrategy::None);
        };
        let join =
            atlas_mediation::Plan { source: &schema, target: &step.input_schema, map: given(step), context: &context };
        let (report, outcome) = mediate(join, data);
        match outcome {
            Ok(MediationResult::Data(input)) => {
                begin(input, RunStrategy::named(report.level.strategy()).unwrap_or(RunStrategy::None))
            }
            Ok(MediationResult::NeedsModel) => Begin::Bridge(Box::new(Bridge::new(&schema, &step.input_schema, data))),
            Err(error) => failed(&error.to_string()),
        }
    }

    /// What the step at `index` gets.
    fn data(&self, index: usize) -> Data<'_> {
        let flow = self.plan.flow(index);
        match flow.after[..] {
            [] => Data::Some(Cow::Borrowed(self.trigger), Source::Trigger),
            [before] => self.passed(before),
            _ => self.joined(&flow.after),
        }
    }

    /// What a step gives to those after it.
    fn passed(&self, index: usize) -> Data<'_> {
        let flow = self.plan.flow(index);
        let without = match &self.facts[index] {
            Fact::Waiting | Fact::Running => return Data::Pending,
            Fact::Done(output) => return Data::Some(Cow::Borrowed(output), Source::Step(index)),
            Fact::Failed { tries, again: true, .. } if *tries <= flow.max_retries => return Data::Pending,
            Fact::Failed { .. } | Fact::Left(Some(_)) => flow.on_failure,
            Fact::Left(None) => flow.otherwise,
        };
        match without {
            Without::Pass => self.data(index),
            Without::End | Without::Fail => Data::Ended,
        }
    }

    fn joined(&self, after: &[usize]) -> Data<'_> {
        let (mut joined, mut from, mut goes_on) = (Map::new(), Vec::new(), false);
        for &before in after {
            match self.passed(before) {
                Data::Pending => return Data::Pending,
                Data::Ended => {}
                Data::Some(..) => goes_on = true,
            }
            if let Fact::Done(output) = &self.facts[before] {
                joined.insert(self.plan.steps[before].name.clone(), output.clone());
                from.push(before);
            }
        }
        if goes_on { Data::Some(Cow::Owned(Value::Object(joined)), Source::Join(from)) } else { Data::Ended }
    }

    /// What conditions know about the steps.
    fn steps(&self) -> Value {
        let shown = |fact: &Fact| match fact {
            Fact::Waiting => json!({"status": "waiting"}),
            Fact::Running => json!({"status": "running"}),
            Fact::Done(output) => json!({"status": "completed", "output": output}),
            Fact::Failed { error, .. } | Fact::Left(Some(error)) => json!({"status": "failed", "error": error}),
            Fact::Left(None) => json!({"status": "skipped"}),
        };
        self.plan.steps.iter().zip(&self.facts).map(|(step, fact)| (step.name.clone(), shown(fact))).collect()
    }

    fn outputs(&self) -> Vec<(String, Value)> {
        let output = |fact: &Fact| if let Fact::Done(output) = fact { output.clone() } else { Value::Null };
        self.plan.steps.iter().zip(&self.facts).map(|(step, fact)| (step.name.clone(), output(fact))).collect()
    }
}

/// The schema of data; none for the input of the chain.
pub fn schema_of(plan: &Plan, source: &Source) -> Option<Value> {
    match source {
        Source::Trigger => None,
        Source::Step(index) => Some(plan.steps.get(*index)?.output_schema.clone()),
        Source::Join(members) => {
            let members = members.iter().filter_map(|index| plan.steps.get(*index));
            let properties: Map<String, Value> =
                members.map(|step| (step.name.clone(), object_schema(&step.output_schema))).collect();
            let names: Vec<&String> = properties.keys().collect();
            Some(json!({"type": "object", "required": names, "properties": properties}))
        }
    }
}

/// A schema without a type is that of an object: every output is one.
fn object_schema(schema: &Value) -> Value {
    let mut schema = schema.clone();
    if let Some(members) = schema.as_object_mut() {
        members.entry("type").or_insert_with(|| json!("object"));
    }
    schema
}

/// Where the data of the step at `index` can come from, as far as the plan tells.
pub fn sources(plan: &Plan, index: usize) -> Vec<Source> {
    let mut found = Vec::new();
    let mut at = index;
    loop {
        let source = match plan.flow(at).after[..] {
            [] => Source::Trigger,
            [before] => Source::Step(before),
            _ => Source::Join(plan.flow(at).after.clone()),
        };
        let passes = |flow: &Flow| {
            (flow.condition.is_some() && flow.otherwise == Without::Pass) || flow.on_failure == Without::Pass
        };
        let before = if let Source::Step(before) = source { Some(before) } else { None };
        found.push(source);
        match before {
            Some(before) if passes(&plan.flow(before)) => at = before,
            _ => return found,
        }
    }
}
