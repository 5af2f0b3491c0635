//! Decides on jobs by rules. Pure.
//!
//! A rule whose condition cannot be evaluated decides nothing, and neither do those after it: what happens to the job is up to the
//! fall-back of the selection, as with an orchestrator that fails. A rule that was skipped could have been the one that rejects.

use atlas_expressions::{Expression, Problem};
use atlas_objects::{OrchestratorSpec, RuleSpec};
use atlas_types::Job;
use serde_json::{Value, json};

use super::Wish;

/// What conditions are over.
const NAMES: [&str; 4] = ["job", "agent", "labels", "metadata"];

/// Rules whose conditions are parsed.
#[derive(Debug)]
pub(crate) struct Rules(Vec<(RuleSpec, Option<Expression>)>);

/// What conditions know about a job.
#[derive(Debug, Default)]
pub(crate) struct Facts {
    job: Value,
    /// The contract of its agent; null if it is unknown.
    agent: Value,
    labels: Value,
    metadata: Value,
}

impl Facts {
    /// A job, with its members in the API and the contract of its agent.
    pub(crate) fn of(job: &Job, mut shown: Value, agent: Value) -> Self {
        if let Some(members) = shown.as_object_mut() {
            members.remove("output_data");
            members.insert("namespace".to_owned(), job.namespace.as_str().into());
            members.insert("principal".to_owned(), job.principal.as_str().into());
        }
        let metadata = shown["metadata"].take();
        Self { job: shown, agent, labels: json!(*job.labels), metadata }
    }
}

impl Rules {
    /// Parses the conditions of all rules. An error says which rule is wrong.
    pub(crate) fn parse(spec: OrchestratorSpec) -> Result<Self, String> {
        let parse = |(index, rule): (usize, RuleSpec)| {
            let condition = rule.condition.as_deref().map(|text| Expression::parse(text, &NAMES)).transpose();
            match condition {
                Ok(condition) => Ok((rule, condition)),
                Err(problem) => Err(at(index, &rule, &problem)),
            }
        };
        spec.rules.into_iter().enumerate().map(parse).collect::<Result<_, _>>().map(Self)
    }

    /// What the first rule that holds says; if none holds, the job runs as it was asked for.
    pub(crate) fn decide(&self, facts: &Facts) -> Result<Wish, String> {
        let variables: Vec<(&str, &Value)> =
            NAMES.into_iter().zip([&facts.job, &facts.agent, &facts.labels, &facts.metadata]).collect();
        let mut steps = 0;
        for (index, (rule, condition)) in self.0.iter().enumerate() {
            let holds = condition.as_ref().map_or(Ok(true), |condition| condition.holds_after(&variables, &mut steps));
            if holds.map_err(|problem| at(index, rule, &problem))? {
                return Ok(wish(index, rule));
            }
        }
        Ok(Wish::default())
    }
}

fn wish(index: usize, rule: &RuleSpec) -> Wish {
    let action = match rule {
        RuleSpec { reject: Some(_), .. } => "reject",
        RuleSpec { redirect: Some(_), .. } => "redirect",
        _ => "allow",
    };
    Wish {
        action: action.to_owned(),
        agent_name: rule.redirect.clone(),
        priority: rule.priority,
        reason: rule.reject.clone(),
        rule: Some(name(index, rule)),
    }
}

/// The name of a rule; its number from 1 if it has none.
fn name(index: usize, rule: &RuleSpec) -> String {
    if rule.name.is_empty() { format!("rule {}", index + 1) } else { rule.name.clone() }
}

fn at(index: usize, rule: &RuleSpec, problem: &Problem) -> String {
    let number = format!("rule {}", index + 1);
    let named = if rule.name.is_empty() { number } else { format!("{number} ({})", rule.name) };
    format!("{named}: `if`: {problem}")
}

/// Why the rules of a spec are refused.
pub(crate) fn refusal_of(spec: &[u8]) -> Option<String> {
    let spec = OrchestratorSpec::read(spec).ok()?;
    Rules::parse(spec).err()
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::*;

    fn facts(input: &str) -> Facts {
        let input: Value = serde_json::from_str(input).expect("JSON");
        Facts {
            job: json!({"agent_name": "echo", "input_data": input, "priority": 0}),
            agent: json!({"name": "echo", "version": "1.0.0"}),
            labels: json!({"team": "blue"}),
            metadata: json!({"_trigger_id": "t"}),
        }
    }

    fn rules(document: &str) -> Result<Rules, String> {
        let spec = serde_json::from_str(document).expect("a spec");
        Rules::parse(spec)
    }

    fn decided(document: &str, input: &str) -> String {
        match rules(document).and_then(|rules| rules.decide(&facts(input))) {
            Ok(wish) => {
                let by = wish.rule.clone().unwrap_or_else(|| "no rule".to_owned());
                format!("{:?} {:?} by {by}", wish.will(), wish.priority)
            }
            Err(why) => format!("! {why}"),
        }
    }

    fn check(document: &str, inputs: &[&str], expected: &Expect) {
        let lines: String = inputs.iter().map(|input| format!("{}\n", decided(document, input))).collect();
        expected.assert_eq(&lines);
    }

    #[test]
    fn the_first_rule_that_holds_decides() {
        check(
            r#"{"rules": [
                {"name": "empty", "if": "size(job.input_data) == 0", "reject": "nothing to do"},
                {"if": "size(job.input_data.text) > 5 && labels.team == 'blue'", "redirect": "summarizer", "priority": -1},
                {"name": "by a trigger", "if": "has(metadata._trigger_id) && agent.name == 'echo' && size(job.input_data.text) > 2", "priority": 7},
                {"if": "job.input_data.text == 'x'", "allow": true}
            ]}"#,
            &[
                "{}",
                r#"{"text": "long text"}"#,
                r#"{"text": "abc"}"#,
                r#"{"text": "x"}"#,
                r#"{"text": "y"}"#,
                r#"{"t": 1}"#,
            ],
            &expect![[r#"
                Reject("nothing to do") None by empty
                Redirect("summarizer") Some(-1) by rule 2
                Execute Some(7) by by a trigger
                Execute None by rule 4
                Execute None by no rule
                ! rule 2: `if`: line 1, column 20: no such member: text
            "#]],
        );
    }

    #[test]
    fn hostile_rules_are_refused_or_decide_nothing() {
        let deep = "(".repeat(2_000);
        let wide = format!("{}true", "true && ".repeat(250));
        let all = "[1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20]";
        let slow = format!("{all}.all(a, {all}.all(b, {all}.all(c, {all}.all(d, {all}.all(e, a+b+c+d+e >= 0)))))");
        let doubling = "job.input_data.l.map(a, job.input_data.l.map(b, job.input_data.l)).size() > 0";
        let conditions = [
            "",
            "1",
            "job",
            "nobody",
            "job.nothing",
            "os.exit()",
            "job.input_data.text.matches('(')",
            "job.input_data.text.matches('(((a{99}){99}){99}){99}')",
            "1/0 == 0",
            "0/0 > 0",
            "labels",
            "agent.input_schema",
            "job.input_data.l[999] == 1",
            "\u{0}",
            "true; false",
            &deep,
            &wide,
            &slow,
            doubling,
        ];
        let input = json!({"text": "x".repeat(1_000), "l": vec![1; 400]}).to_string();
        for condition in conditions {
            let document = json!({"rules": [{"if": condition, "reject": "no"}, {"allow": true}]}).to_string();
            let decided = decided(&document, &input);
            assert!(decided.starts_with("! rule 1: `if`: "), "{condition:.60}: {decided}");
        }
    }

    #[test]
    fn rules_share_the_steps_of_one_decision() {
        let slow = json!({"if": "job.input_data.l.exists(x, x > 1)", "reject": "no"});
        let document = json!({"rules": vec![slow; 128]}).to_string();
        let input = json!({"l": vec![1; 1_000]}).to_string();
        assert!(decided(&document, &input).contains("takes more than 100000 steps"));
    }
}
