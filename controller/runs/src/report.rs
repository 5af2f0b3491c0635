//! Results of runs as clients see them (compatibility §12.3 and §12.4).

use atlas_types::RunStrategy;
use serde_json::{Value, json};

/// A step that was started and has ended.
#[derive(Debug, Clone, PartialEq)]
pub struct StepReport {
    /// The number of the step.
    pub number: usize,
    /// The agent as the chain names it.
    pub agent: String,
    /// How its input was made.
    pub strategy: RunStrategy,
    /// The output, or why it has none.
    pub end: Result<Value, String>,
}

/// Where and why a run failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FailureReport {
    /// The number of the step; -1 if no step could begin.
    pub at: i64,
    pub error: String,
}

/// The result of a run that has ended.
pub fn result(steps: &[StepReport], failed: Option<&FailureReport>) -> Value {
    let outputs: Vec<&Value> = steps.iter().filter_map(|step| step.end.as_ref().ok()).collect();
    let output = match failed {
        None => outputs.last().map_or_else(|| json!({}), |output| (*output).clone()),
        Some(FailureReport { at: ..=-1, .. }) => json!({}),
        Some(FailureReport { at, .. }) => json!({"partial_outputs": outputs, "failed_step": at}),
    };
    let step = |step: &StepReport| {
        let (output, error) = match &step.end {
            Ok(output) => (output.clone(), ""),
            Err(error) => (json!({}), error.as_str()),
        };
        json!({"agent_name": step.agent, "success": step.end.is_ok(), "output": output, "error": error})
    };
    let mediation = |step: &StepReport| json!({"step": step.number, "agent": step.agent, "strategy": step.strategy.as_str(), "cost": step.strategy.cost()});
    json!({
        "success": failed.is_none(),
        "output": output,
        "error": failed.map_or("", |failed| &failed.error),
        "failed_at": failed.map_or(-1, |failed| failed.at),
        "steps": steps.iter().map(step).collect::<Vec<_>>(),
        "mediation_summary": steps.iter().map(mediation).collect::<Vec<_>>(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn step(agent: &str, end: Result<Value, &str>) -> StepReport {
        let number = usize::from(agent == "b");
        StepReport { number, agent: agent.to_owned(), strategy: RunStrategy::None, end: end.map_err(str::to_owned) }
    }

    #[test]
    fn an_empty_chain_succeeds_and_a_complete_one_returns_its_last_output() {
        assert_eq!((&result(&[], None)["success"], &result(&[], None)["output"]), (&json!(true), &json!({})));
        let done = result(&[step("a", Ok(json!({"x": 1}))), step("b", Ok(json!({"y": 2})))], None);
        assert_eq!((&done["output"], &done["failed_at"], &done["error"]), (&json!({"y": 2}), &json!(-1), &json!("")));
        assert_eq!(done["mediation_summary"][1], json!({"step": 1, "agent": "b", "strategy": "none", "cost": 0.0}));
    }

    #[test]
    fn a_failure_keeps_what_was_done() {
        let failed = FailureReport { at: 1, error: "Agent failed at step 1 (b): boom".to_owned() };
        let shown = result(&[step("a", Ok(json!({"x": 1}))), step("b", Err("boom"))], Some(&failed));
        assert_eq!(shown["output"], json!({"partial_outputs": [{"x": 1}], "failed_step": 1}));
        assert_eq!(shown["steps"][1], json!({"agent_name": "b", "success": false, "output": {}, "error": "boom"}));
        let none = result(&[], Some(&FailureReport { at: -1, error: "no agents".to_owned() }));
        assert_eq!((&none["output"], &none["success"]), (&json!({}), &json!(false)));
    }
}
