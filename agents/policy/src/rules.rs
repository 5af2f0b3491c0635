//! Rules of policies: expressions in CEL over what is deployed or submitted.

use atlas_expressions::Expression;
use serde_json::Value;

/// The names that the expression of a rule may use.
pub const VARIABLES: [&str; 6] = ["operation", "principal", "namespace", "agent", "input", "priority"];

/// What a rule does with an operation for which it holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Effect {
    Allow,
    /// People decide.
    Ask,
    Deny,
}

impl Effect {
    /// The effect of a word in a policy. One that is not known denies.
    pub fn read(word: &str) -> Self {
        match word {
            "allow" => Self::Allow,
            "ask" => Self::Ask,
            _ => Self::Deny,
        }
    }

    /// Its word.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Allow => "allow",
            Self::Ask => "ask",
            Self::Deny => "deny",
        }
    }
}

/// A rule that was parsed.
#[derive(Debug)]
pub struct Rule {
    name: String,
    on: Vec<String>,
    effect: Effect,
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
    pub effect: Effect,
    pub message: Option<&'a str>,
}

/// What a rule is asked about.
#[derive(Debug, Clone)]
pub struct RuleInput {
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
    /// Its place among the rules.
    pub place: Option<usize>,
    pub effect: Effect,
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
            effect: text.effect,
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
pub fn decide(rules: &[Rule], asked: &RuleInput, steps: &mut u64) -> Decision {
    let (operation, principal) = (Value::from(asked.operation), Value::from(asked.principal.as_str()));
    let (namespace, priority) = (Value::from(asked.namespace.as_str()), Value::from(asked.priority));
    let values = [&operation, &principal, &namespace, &asked.agent, &asked.input, &priority];
    let variables: Vec<(&str, &Value)> = VARIABLES.into_iter().zip(values).collect();
    for (place, rule) in rules.iter().enumerate().filter(|(_, rule)| rule.is_about(asked.operation)) {
        let (name, place) = (Some(rule.name.clone()), Some(place));
        match rule.when.holds_after(&variables, steps) {
            Ok(false) => {}
            Ok(true) => return Decision { rule: name, place, effect: rule.effect, why: rule.message.clone() },
            Err(problem) => {
                let why = Some(format!("the rule cannot be evaluated: {problem}"));
                return Decision { rule: name, place, effect: Effect::Deny, why };
            }
        }
    }
    Decision { rule: None, place: None, effect: Effect::Allow, why: None }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::Effect::{Allow, Ask, Deny};
    use super::*;

    fn rule(name: &'static str, on: &[&'static str], when: &'static str, effect: Effect) -> Rule {
        Rule::parse(&RuleText { name, on: on.to_vec(), when, effect, message: Some("because") }).expect("a rule")
    }

    fn asked(operation: &'static str, principal: &str) -> RuleInput {
        RuleInput {
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
            rule("ci may", &["deploy"], "principal == 'ci'", Allow),
            rule("no network", &["deploy"], "'outbound' in agent.permissions.network", Deny),
            rule("not to all", &["submit"], "input.to == 'all' && priority > 3", Ask),
        ];
        let decided = |operation, principal| {
            let Decision { rule, place, effect, why } = decide(&rules, &asked(operation, principal), &mut 0);
            (rule.unwrap_or_default(), place, effect, why.is_some())
        };
        assert_eq!(decided("deploy", "ci"), ("ci may".to_owned(), Some(0), Allow, true));
        assert_eq!(decided("deploy", "ann"), ("no network".to_owned(), Some(1), Deny, true));
        assert_eq!(decided("submit", "ci"), ("not to all".to_owned(), Some(2), Ask, true));
        assert_eq!(
            decide(&rules[..2], &asked("submit", "ann"), &mut 0),
            Decision { rule: None, place: None, effect: Allow, why: None }
        );
    }

    #[test]
    fn effects_read_back_and_an_unknown_one_denies() {
        for effect in [Allow, Ask, Deny] {
            assert_eq!(Effect::read(effect.as_str()), effect);
        }
        assert_eq!([Effect::read(""), Effect::read("Allow"), Effect::read("warn")], [Deny; 3]);
        assert!(Allow < Ask && Ask < Deny);
    }

    #[test]
    fn a_rule_that_cannot_be_evaluated_denies() {
        for when in ["agent.missing.more == 1", "principal", "input.to > 5"] {
            let decision = decide(&[rule("r", &["submit"], when, Ask)], &asked("submit", "ann"), &mut 0);
            assert!(decision.effect == Deny && decision.rule.is_some(), "{when}: {decision:?}");
        }
        let unknown = RuleText { name: "r", on: vec!["submit"], when: "secret == 1", effect: Deny, message: None };
        assert!(Rule::parse(&unknown).expect_err("an unknown name").contains("rule \"r\""));
        assert!(Rule::parse(&RuleText { when: "(", ..unknown }).is_err());
    }
    #[test]
    fn hostile_rules_deny_within_bounds() {
        let deep = "(".repeat(2_000);
        let all = "[1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20]";
        let slow = format!("{all}.all(a, {all}.all(b, {all}.all(c, {all}.all(d, {all}.all(e, a+b+c+d+e >= 0)))))");
        for when in ["", deep.as_str(), "os.exit()", "\u{0}", "true; false"] {
            let text = RuleText { name: "r", on: vec!["submit"], when, effect: Allow, message: None };
            assert!(Rule::parse(&text).is_err(), "{when:.60}");
        }
        let text = RuleText { name: "r", on: vec!["submit"], when: &slow, effect: Allow, message: None };
        let slow = [Rule::parse(&text).expect("a rule")];
        let mut steps = 0;
        assert_eq!(decide(&slow, &asked("submit", "ann"), &mut steps).effect, Deny);
        // Nothing is left for the next policy.
        let late = [rule("late", &["submit"], "true", Allow)];
        assert_eq!(decide(&late, &asked("submit", "ann"), &mut steps).effect, Deny);
    }
}
