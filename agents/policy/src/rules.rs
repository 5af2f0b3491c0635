//! Rules of policies: expressions in CEL over what is deployed or submitted.

use atlas_expressions::Expression;
use serde_json::Value;

/// The names that the expression of a rule may use.
pub const VARIABLES: [&str; 6] = ["operation", "principal", "namespace", "agent", "input", "priority"];

/// A rule that was parsed.
#[derive(Debug)]
pub struct Rule {
    name: String,
    on: Vec<String>,
    denies: bool,
    message: Option<String>,
    when: Expression,
}

/// What a rule says, in the terms of its document.
#[derive(Debug, Clone)]
pub struct RuleText<'a> {
    pub name: &'a str,
    /// The operations that it is about.
    pub on: Vec<&'a str>,
    pub when: &'a str,
    pub denies: bool,
    pub message: Option<&'a str>,
}

/// What a rule is asked about.
#[derive(Debug, Clone)]
pub struct Asked {
    /// `deploy` or `submit`.
    pub operation: &'static str,
    pub principal: String,
    pub namespace: String,
    /// The contract of the agent, with the permissions that are left to it.
    pub agent: Value,
    /// The input of a job; null for a deployment.
    pub input: Value,
    pub priority: i64,
}

/// Which rule decided.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decision {
    /// The rule; none if no rule holds, which allows.
    pub rule: Option<String>,
    pub allowed: bool,
    /// Why, for people.
    pub why: Option<String>,
}

impl Rule {
    /// Parses a rule. The error says what is wrong with its expression.
    pub fn parse(text: &RuleText<'_>) -> Result<Self, String> {
        let when = Expression::parse(text.when, &VARIABLES);
        Ok(Self {
            name: text.name.to_owned(),
            on: text.on.iter().map(|&word| word.to_owned()).collect(),
            denies: text.denies,
            message: text.message.map(str::to_owned),
            when: when.map_err(|problem| format!("rule \"{}\": {problem}", text.name))?,
        })
    }

    /// Whether it is about an operation.
    pub fn is_about(&self, operation: &str) -> bool {
        self.on.iter().any(|word| word == operation)
    }
}

/// What rules decide: the first one that is about the operation and holds. A rule that cannot be evaluated denies, because nobody knows
/// whether it would have. `steps` counts those of several policies, which together take at most
/// [`STEPS_MAX`](atlas_expressions::STEPS_MAX).
pub fn decide(rules: &[Rule], asked: &Asked, steps: &mut u64) -> Decision {
    let (operation, principal) = (Value::from(asked.operation), Value::from(asked.principal.as_str()));
    let (namespace, priority) = (Value::from(asked.namespace.as_str()), Value::from(asked.priority));
    let values = [&operation, &principal, &namespace, &asked.agent, &asked.input, &priority];
    let variables: Vec<(&str, &Value)> = VARIABLES.into_iter().zip(values).collect();
    for rule in rules.iter().filter(|rule| rule.is_about(asked.operation)) {
        let name = Some(rule.name.clone());
        match rule.when.holds_after(&variables, steps) {
            Ok(false) => {}
            Ok(true) => return Decision { rule: name, allowed: !rule.denies, why: rule.message.clone() },
            Err(problem) => {
                let why = Some(format!("the rule cannot be evaluated: {problem}"));
                return Decision { rule: name, allowed: false, why };
            }
        }
    }
    Decision { rule: None, allowed: true, why: None }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn rule(name: &'static str, on: &[&'static str], when: &'static str, denies: bool) -> Rule {
        Rule::parse(&RuleText { name, on: on.to_vec(), when, denies, message: Some("because") }).expect("a rule")
    }

    fn asked(operation: &'static str, principal: &str) -> Asked {
        Asked {
            operation,
            principal: principal.to_owned(),
            namespace: "default".to_owned(),
            agent: json!({"name": "mail", "permissions": {"network": ["outbound"]}}),
            input: json!({"to": "all"}),
            priority: 5,
        }
    }

    #[test]
    fn the_first_rule_that_holds_decides() {
        let rules = [
            rule("ci may", &["deploy"], "principal == 'ci'", false),
            rule("no network", &["deploy"], "'outbound' in agent.permissions.network", true),
            rule("not to all", &["submit"], "input.to == 'all' && priority > 3", true),
        ];
        let decided = |operation, principal| {
            let Decision { rule, allowed, why } = decide(&rules, &asked(operation, principal), &mut 0);
            (rule.unwrap_or_default(), allowed, why.is_some())
        };
        assert_eq!(decided("deploy", "ci"), ("ci may".to_owned(), true, true));
        assert_eq!(decided("deploy", "ann"), ("no network".to_owned(), false, true));
        assert_eq!(decided("submit", "ci"), ("not to all".to_owned(), false, true));
        assert_eq!(
            decide(&rules[..2], &asked("submit", "ann"), &mut 0),
            Decision { rule: None, allowed: true, why: None }
        );
    }

    #[test]
    fn a_rule_that_cannot_be_evaluated_denies() {
        for when in ["agent.missing.more == 1", "principal", "input.to > 5"] {
            let decision = decide(&[rule("r", &["submit"], when, false)], &asked("submit", "ann"), &mut 0);
            assert!(!decision.allowed && decision.rule.is_some(), "{when}: {decision:?}");
        }
        let unknown = RuleText { name: "r", on: vec!["submit"], when: "secret == 1", denies: true, message: None };
        assert!(Rule::parse(&unknown).expect_err("an unknown name").contains("rule \"r\""));
        assert!(Rule::parse(&RuleText { when: "(", ..unknown }).is_err());
    }
    #[test]
    fn hostile_rules_deny_within_bounds() {
        let deep = "(".repeat(2_000);
        let all = "[1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20]";
        let slow = format!("{all}.all(a, {all}.all(b, {all}.all(c, {all}.all(d, {all}.all(e, a+b+c+d+e >= 0)))))");
        for when in ["", deep.as_str(), "os.exit()", "\u{0}", "true; false"] {
            let text = RuleText { name: "r", on: vec!["submit"], when, denies: false, message: None };
            assert!(Rule::parse(&text).is_err(), "{when:.60}");
        }
        let text = RuleText { name: "r", on: vec!["submit"], when: &slow, denies: false, message: None };
        let slow = [Rule::parse(&text).expect("a rule")];
        let mut steps = 0;
        assert!(!decide(&slow, &asked("submit", "ann"), &mut steps).allowed);
        // Nothing is left for the next policy.
        let late = [rule("late", &["submit"], "true", false)];
        assert!(!decide(&late, &asked("submit", "ann"), &mut steps).allowed);
    }
}
