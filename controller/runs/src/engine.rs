//! What a run does next (compatibility §12.2).

use atlas_mediation::{Bridge, Context, MediationError, MediationResult, Report, mapped, mediate};
use atlas_types::RunStrategy;
use serde_json::{Map, Value};

use crate::plan::{Plan, PlannedStep};

/// The input of a step.
#[derive(Debug, Clone, PartialEq)]
pub struct StepInput {
    /// The number of the step.
    pub index: usize,
    pub input: Map<String, Value>,
    /// How it was made.
    pub strategy: RunStrategy,
}

/// What a run does next.
#[derive(Debug, Clone)]
pub enum Next {
    /// The next step gets this input, which its own validation checks.
    Step(StepInput),
    /// A model has to make the input of the next step. Without one, the run fails with [`Next::no_model`].
    Bridge { index: usize, bridge: Box<Bridge> },
    /// The next step cannot begin.
    Fail { index: usize, error: String },
    /// All steps have completed.
    Done,
}

/// What a run does after some steps: `trigger` is the input of the chain, `outputs` are those of the steps that completed.
pub fn next(plan: &Plan, trigger: &Value, outputs: &[Value]) -> Next {
    let index = outputs.len();
    let Some(step) = plan.steps.get(index) else { return Next::Done };
    let Some(last) = outputs.last() else { return Next::Step(first(step, trigger)) };
    let Some(data) = last.as_object() else {
        return failed(index, step, "the output of the step before is not an object");
    };
    let context = Context { trigger: trigger.clone(), steps: finished(plan, outputs) };
    let source = &plan.steps[index - 1].output_schema;
    let (report, outcome) = mediate(join_of(source, step, &context), data);
    match outcome {
        Ok(MediationResult::Data(input)) => {
            let strategy = RunStrategy::named(report.level.strategy()).unwrap_or(RunStrategy::None);
            Next::Step(StepInput { index, input, strategy })
        }
        Ok(MediationResult::NeedsModel) => {
            Next::Bridge { index, bridge: Box::new(Bridge::new(source, &step.input_schema, data)) }
        }
        Err(error) => failed(index, step, &error.to_string()),
    }
}

impl Next {
    /// The step at `index` cannot begin.
    pub fn failed(plan: &Plan, index: usize, why: &str) -> Self {
        plan.steps.get(index).map_or(Self::Done, |step| failed(index, step, why))
    }

    /// What happens to a run that needs a model where there is none.
    pub fn no_model(plan: &Plan, index: usize) -> Self {
        let error = MediationError::NoStrategy("semantic").to_string();
        Self::failed(plan, index, &error)
    }
}

/// How the step at `index` gets its input from the one before: the comparison of their schemas.
pub fn join(plan: &Plan, index: usize) -> Option<Report> {
    let step = plan.steps.get(index)?;
    let source = &plan.steps.get(index.checked_sub(1)?)?.output_schema;
    Some(atlas_mediation::analyze(source, &step.input_schema, given(step)))
}

/// The map of a step; an empty one is none.
pub(crate) fn given(step: &PlannedStep) -> Option<&Map<String, Value>> {
    step.input_map.as_ref().filter(|map| !map.is_empty())
}

fn join_of<'a>(source: &'a Value, step: &'a PlannedStep, context: &'a Context) -> atlas_mediation::Plan<'a> {
    atlas_mediation::Plan { source, target: &step.input_schema, map: given(step), context }
}

/// The first step gets the input of the chain. Its map has that input as data and as trigger.
fn first(step: &PlannedStep, trigger: &Value) -> StepInput {
    let data = trigger.as_object().cloned().unwrap_or_default();
    let context = Context { trigger: trigger.clone(), steps: Vec::new() };
    let input = given(step).map(|map| mapped(map, &context, &data));
    StepInput { index: 0, input: input.unwrap_or(data), strategy: RunStrategy::None }
}

fn finished(plan: &Plan, outputs: &[Value]) -> Vec<(String, Value)> {
    plan.steps.iter().zip(outputs).map(|(step, output)| (step.name.clone(), output.clone())).collect()
}

fn failed(index: usize, step: &PlannedStep, why: &str) -> Next {
    Next::Fail { index, error: format!("Mediation failed at step {index} ({}): {why}", step.agent) }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn step(agent: &str, input: Value, output: Value, map: Option<Value>) -> PlannedStep {
        PlannedStep {
            agent: agent.to_owned(),
            version: "1.0.0".to_owned(),
            digest: String::new(),
            name: format!("name_{agent}"),
            input_map: map.and_then(|map| map.as_object().cloned()),
            input_schema: input,
            output_schema: output,
            flow: None,
        }
    }

    fn texts(names: &[&str]) -> Value {
        let properties: Map<String, Value> =
            names.iter().map(|name| ((*name).to_owned(), json!({"type": "string"}))).collect();
        json!({"type": "object", "properties": properties, "required": names})
    }

    #[expect(clippy::needless_pass_by_value, reason = "tests write values in place")]
    fn check(steps: Vec<PlannedStep>, trigger: Value, outputs: &[Value]) -> String {
        let plan = Plan { chain: "c".to_owned(), orchestrator: String::new(), steps };
        match next(&plan, &trigger, outputs) {
            Next::Step(step) => format!("{} {} {}", step.index, step.strategy.as_str(), Value::Object(step.input)),
            Next::Bridge { index, .. } => match Next::no_model(&plan, index) {
                Next::Fail { error, .. } => format!("{index} needs a model: {error}"),
                other => format!("{other:?}"),
            },
            Next::Fail { index, error } => format!("{index} {error}"),
            Next::Done => "done".to_owned(),
        }
    }

    #[test]
    fn the_first_step_gets_the_input_of_the_chain() {
        let map = json!({"text": "$.trigger.title", "style": "bold", "same": "title"});
        assert_eq!(check(Vec::new(), json!({}), &[]), "done");
        assert_eq!(check(vec![step("a", json!({}), json!({}), None)], json!({"x": 1}), &[]), r#"0 none {"x":1}"#);
        assert_eq!(
            check(vec![step("a", json!({}), json!({}), Some(map))], json!({"title": "T"}), &[]),
            r#"0 none {"text":"T","style":"bold","same":"T"}"#
        );
        assert_eq!(
            check(vec![step("a", json!({}), json!({}), Some(json!({})))], json!({"x": 1}), &[]),
            r#"0 none {"x":1}"#
        );
    }

    #[test]
    fn later_steps_get_the_output_before() {
        let a = || step("a", json!({}), texts(&["text", "more"]), None);
        let outputs = [json!({"text": "T", "more": "M"})];
        for (target, map, expected) in [
            (texts(&["text"]), None, r#"1 direct {"text":"T"}"#),
            (texts(&["message_text"]), None, r#"1 coerce {"message_text":"T"}"#),
            (
                texts(&["title", "x"]),
                Some(json!({"title": "$.steps.name_a.output.more", "x": "$.trigger.in", "y": 5})),
                r#"1 mapped {"title":"M","x":"I","y":5}"#,
            ),
            (
                texts(&["zzzz"]),
                Some(json!({"other": "text"})),
                "1 needs a model: Mediation failed at step 1 (b): No strategy available for compatibility level: semantic",
            ),
            (json!({}), None, r#"1 direct {"text":"T","more":"M"}"#),
            (
                json!({"properties": {"n": {"type": "integer"}}, "required": ["n"]}),
                None,
                "1 Mediation failed at step 1 (b): Schemas are incompatible: No viable transformation path found",
            ),
        ] {
            let steps = vec![a(), step("b", target, json!({}), map)];
            assert_eq!(check(steps, json!({"in": "I"}), &outputs), expected);
        }
        let steps = || vec![a(), step("b", json!({}), json!({}), None)];
        assert_eq!(
            check(steps(), json!({}), &[json!([1])]),
            "1 Mediation failed at step 1 (b): the output of the step before is not an object"
        );
        assert_eq!(check(steps(), json!({}), &[json!({}), json!({})]), "done");
    }

    proptest! {
        /// Each chain ends after as many steps as it has, whatever its agents return.
        #[test]
        fn a_run_takes_at_most_as_many_steps_as_its_chain_has(
            names in prop::collection::vec(prop::collection::vec("[a-c]{1,2}", 0..3), 1..5),
            values in prop::collection::vec("[a-c]{0,3}", 5),
        ) {
            let schema = |names: &Vec<String>| texts(&names.iter().map(String::as_str).collect::<Vec<_>>());
            let steps: Vec<PlannedStep> = names.iter().map(|names| step("a", schema(names), schema(names), None)).collect();
            let plan = Plan { chain: "c".to_owned(), orchestrator: String::new(), steps };
            let mut outputs = Vec::new();
            let mut taken = 0;
            while let Next::Step(step) = next(&plan, &json!({}), &outputs) {
                prop_assert_eq!(step.index, taken);
                let output: Map<String, Value> =
                    names[taken].iter().zip(&values).map(|(name, value)| (name.clone(), json!(value))).collect();
                outputs.push(Value::Object(output));
                taken += 1;
            }
            prop_assert!(taken <= plan.steps.len());
            prop_assert_eq!(next(&plan, &json!({}), &outputs).is_done(), taken == plan.steps.len());
        }
    }

    impl Next {
        fn is_done(&self) -> bool {
            matches!(self, Self::Done)
        }
    }
}
