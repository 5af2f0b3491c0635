//! The checks of an agent's outputs, `eval.yaml` (compatibility §13.5).
//!
//! The file lies beside `agent.yaml`. Its checks run on the outputs of completed jobs and do not change the jobs.

use serde_json::{Map, Number, Value, json};

use crate::python;
use crate::same::same;
use crate::schema::Validator;
use crate::yaml::{self, YamlError};

/// The name of the file in a package.
pub const EVAL_FILE: &str = "eval.yaml";

/// Most checks of a file.
const CHECKS_MAX: usize = 200;

/// The checks of one agent.
#[derive(Debug, Clone, PartialEq)]
pub struct Eval {
    /// The agent that the file names. It selects nothing: the file belongs to the agent beside it.
    pub agent_name: String,
    /// In the order of the file.
    pub checks: Vec<Check>,
}

/// One check of one member of an output.
#[derive(Debug, Clone, PartialEq)]
pub struct Check {
    pub name: String,
    /// One of `exists`, `equals`, `contains`, `range`, `regex`; every other type fails.
    pub kind: String,
    /// The member of the output; it is a name, not a path.
    pub field: String,
    /// For `equals` and `contains`.
    pub expected: Value,
    /// For `range`: the least value that passes; none is no bound.
    pub least: Option<Number>,
    /// For `range`: the greatest value that passes; none is no bound.
    pub greatest: Option<Number>,
    /// For `regex`, in Python's syntax.
    pub pattern: String,
}

/// The result of a check.
#[derive(Debug, Clone, PartialEq)]
pub struct CheckResult {
    pub name: String,
    pub passed: bool,
    /// A description of what passes, or the expected value.
    pub expected: Value,
    /// The value of the member; null if it is missing.
    pub actual: Value,
    /// Why it did not pass; empty if it did.
    pub message: String,
}

/// Why a file has no usable checks.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EvalError {
    /// The text is not YAML.
    #[error("invalid YAML: {0}")]
    Yaml(YamlError),
    /// A part of the document has another type than the format demands.
    #[error("{what} must be {wanted}, got {got}")]
    Type {
        /// The part.
        what: String,
        /// What the format demands.
        wanted: &'static str,
        /// The Python name of its type.
        got: &'static str,
    },
    /// A check lacks a member.
    #[error("check {index} has no \"{member}\"")]
    Missing {
        /// Its position, from 0.
        index: usize,
        /// The member.
        member: &'static str,
    },
    /// The file has too many checks.
    #[error("more than {CHECKS_MAX} checks")]
    TooMany,
}

impl Eval {
    /// Parses a file; `directory` is the name of its folder, which is the default of `agent_name`.
    pub fn parse(text: &[u8], directory: &str) -> Result<Self, EvalError> {
        let document = yaml::load_strictly(text, yaml::Budget::default()).map_err(EvalError::Yaml)?;
        let top = mapping("the document", &document)?;
        let members = match top.get("eval") {
            Some(inner) => mapping("\"eval\"", inner)?,
            None => top,
        };
        let checks = match members.get("checks") {
            None => &[][..],
            Some(Value::Array(checks)) => checks,
            Some(other) => return Err(wrong("\"checks\"", "a list", other)),
        };
        if checks.len() > CHECKS_MAX {
            return Err(EvalError::TooMany);
        }
        let checks =
            checks.iter().enumerate().map(|(index, check)| Check::parse(index, check)).collect::<Result<_, _>>()?;
        let agent_name = match members.get("agent_name") {
            None => directory.to_owned(),
            Some(name) => text_of("\"agent_name\"", name)?,
        };
        Ok(Self { agent_name, checks })
    }

    /// The results for an output, in the order of the file.
    pub fn run(&self, output: &Map<String, Value>) -> Vec<CheckResult> {
        self.checks.iter().map(|check| check.run(output)).collect()
    }
}

impl Check {
    fn parse(index: usize, check: &Value) -> Result<Self, EvalError> {
        let what = |member: &str| format!("\"{member}\" of check {index}");
        let members = mapping(&format!("check {index}"), check)?;
        let required = |member: &'static str| {
            let value = members.get(member).ok_or(EvalError::Missing { index, member })?;
            text_of(&what(member), value)
        };
        let optional =
            |member: &str| members.get(member).map_or(Ok(String::new()), |value| text_of(&what(member), value));
        let bound = |member: &str| match members.get(member) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::Number(number)) => Ok(Some(number.clone())),
            Some(other) => Err(wrong(&what(member), "a number", other)),
        };
        Ok(Self {
            name: required("name")?,
            kind: required("type")?,
            field: optional("field")?,
            expected: members.get("expected").cloned().unwrap_or_default(),
            least: bound("min_val")?,
            greatest: bound("max_val")?,
            pattern: optional("pattern")?,
        })
    }

    /// The result for an output.
    pub fn run(&self, output: &Map<String, Value>) -> CheckResult {
        let actual = output.get(&self.field).cloned().unwrap_or_default();
        let field = python::repr(&Value::String(self.field.clone()));
        let (expected, failure) = match self.kind.as_str() {
            "exists" => {
                let missing = actual.is_null() || actual == json!("");
                (json!("non-empty value"), missing.then(|| format!("{field} is missing or empty")))
            }
            "equals" => {
                let differs = !same(&self.expected, &actual);
                let texts = || format!("Expected {}, got {}", python::repr(&self.expected), python::repr(&actual));
                (self.expected.clone(), differs.then(texts))
            }
            "contains" => self.contains(&field, &actual),
            "range" => self.range(&field, &actual),
            "regex" => self.regex(&field, &actual),
            other => (Value::Null, Some(format!("Unknown check type: {other}"))),
        };
        CheckResult {
            name: self.name.clone(),
            passed: failure.is_none(),
            expected,
            actual,
            message: failure.unwrap_or_default(),
        }
    }

    /// A text contains a text, a list an item, an object a key.
    fn contains(&self, field: &str, actual: &Value) -> (Value, Option<String>) {
        let found = match actual {
            Value::String(text) => text.contains(&python::display(&self.expected)),
            Value::Array(items) => items.iter().any(|item| same(item, &self.expected)),
            Value::Object(members) => self.expected.as_str().is_some_and(|key| members.contains_key(key)),
            _ => false,
        };
        let expected = python::repr(&self.expected);
        (json!(format!("contains {expected}")), (!found).then(|| format!("{field} does not contain {expected}")))
    }

    fn range(&self, field: &str, actual: &Value) -> (Value, Option<String>) {
        let bound = |bound: &Option<Number>| bound.clone().map_or(Value::Null, Value::Number);
        let bounds = [bound(&self.least), bound(&self.greatest)].map(|bound| python::repr(&bound));
        let expected = format!("[{}, {}]", bounds[0], bounds[1]);
        let Some(value) = actual.as_f64() else {
            return (json!(expected), Some(format!("{field} is not numeric: {}", python::repr(actual))));
        };
        let within = |bound: &Option<Number>, passes: fn(&f64, &f64) -> bool| {
            bound.as_ref().and_then(Number::as_f64).is_none_or(|bound| passes(&value, &bound))
        };
        let passed =
            within(&self.least, |value, least| value >= least) && within(&self.greatest, |value, most| value <= most);
        let message = (!passed).then(|| format!("{field} is {}, outside {expected}", python::repr(actual)));
        (json!(expected), message)
    }

    fn regex(&self, field: &str, actual: &Value) -> (Value, Option<String>) {
        let expected = json!(format!("matches /{}/", self.pattern));
        let message = if !actual.is_string() {
            Some(format!("{field} is not a string"))
        } else {
            // The schema checker knows Python's syntax and bounds the time of a search.
            match Validator::compile(&json!({"type": "string", "pattern": self.pattern})) {
                Ok(validator) if validator.is_valid(actual) => None,
                Ok(_) => Some(format!("{field} does not match /{}/", self.pattern)),
                Err(error) => Some(format!("the pattern cannot be used: {error}")),
            }
        };
        (expected, message)
    }
}

impl CheckResult {
    /// The result as a trace shows it.
    pub fn to_json(&self) -> Value {
        json!({
            "name": self.name,
            "passed": self.passed,
            "expected": self.expected,
            "actual": self.actual,
            "message": self.message,
        })
    }
}

fn mapping<'v>(what: &str, value: &'v Value) -> Result<&'v Map<String, Value>, EvalError> {
    value.as_object().ok_or_else(|| wrong(what, "a mapping", value))
}

fn text_of(what: &str, value: &Value) -> Result<String, EvalError> {
    value.as_str().map(str::to_owned).ok_or_else(|| wrong(what, "a text", value))
}

fn wrong(what: &str, wanted: &'static str, value: &Value) -> EvalError {
    EvalError::Type { what: what.to_owned(), wanted, got: python::type_name(value) }
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::*;

    /// The results of the checks for an output, one line each.
    #[track_caller]
    #[expect(clippy::needless_pass_by_value, reason = "tests write values in place")]
    fn check(checks: &str, output: Value, expected: &Expect) {
        let eval = Eval::parse(checks.as_bytes(), "a").expect("valid");
        let output = output.as_object().expect("an object");
        let line = |result: CheckResult| format!("{}: {} {}\n", result.name, result.passed, result.message);
        expected.assert_eq(&eval.run(output).into_iter().map(line).collect::<String>());
    }

    #[test]
    fn a_number_that_json_lacks_is_refused() {
        let error =
            Eval::parse(b"checks:\n- {name: a, type: range, field: f, max_val: .inf}", "a").expect_err("refused");
        let place =
            "invalid YAML: line 2, column 45: .inf is no number that JSON has; write a number, or quote it as text";
        assert_eq!(error.to_string(), place);
    }

    #[test]
    fn values_that_are_false_exist() {
        let checks = "checks:\n- {name: zero, type: exists, field: z}\n- {name: wrong, type: exists, field: n}\n\
                      - {name: list, type: exists, field: l}\n- {name: empty, type: exists, field: e}\n\
                      - {name: none, type: exists, field: x}";
        let expected = expect![[r#"
            zero: true 
            wrong: true 
            list: true 
            empty: false 'e' is missing or empty
            none: false 'x' is missing or empty
        "#]];
        check(checks, json!({"z": 0, "n": false, "l": [], "e": ""}), &expected);
    }

    #[test]
    fn numbers_are_equal_by_value_and_missing_is_null() {
        let checks = "checks:\n- {name: same, type: equals, field: n, expected: 1.0}\n- {name: gone, type: equals, field: x}\n\
                      - {name: deep, type: equals, field: d, expected: {a: [1]}}\n- {name: bool, type: equals, field: b, expected: 1}";
        let expected = expect![[r#"
            same: true 
            gone: true 
            deep: true 
            bool: false Expected 1, got True
        "#]];
        check(checks, json!({"n": 1, "d": {"a": [1.0]}, "b": true}), &expected);
    }

    #[test]
    fn texts_lists_and_objects_contain() {
        let checks = "checks:\n- {name: text, type: contains, field: t, expected: 12}\n- {name: item, type: contains, field: l, expected: 2}\n\
                      - {name: key, type: contains, field: o, expected: k}\n- {name: other, type: contains, field: n, expected: 1}";
        let expected = expect![[r#"
            text: true 
            item: true 
            key: true 
            other: false 'n' does not contain 1
        "#]];
        check(checks, json!({"t": "0123", "l": [1, 2.0], "o": {"k": null}, "n": 1}), &expected);
    }

    #[test]
    fn bounds_are_inclusive_and_optional() {
        let checks = "checks:\n- {name: least, type: range, field: n, min_val: 5}\n- {name: most, type: range, field: n, max_val: 5}\n\
                      - {name: open, type: range, field: n}\n- {name: over, type: range, field: n, max_val: 4.5}\n\
                      - {name: text, type: range, field: t, min_val: 0}";
        let expected = expect![[r#"
            least: true 
            most: true 
            open: true 
            over: false 'n' is 5, outside [None, 4.5]
            text: false 't' is not numeric: '5'
        "#]];
        check(checks, json!({"n": 5, "t": "5"}), &expected);
    }

    #[test]
    fn patterns_are_searched_for_in_pythons_syntax() {
        let checks = "checks:\n- {name: found, type: regex, field: t, pattern: 'b+'}\n- {name: end, type: regex, field: t, pattern: 'c$'}\n\
                      - {name: empty, type: regex, field: t}\n- {name: broken, type: regex, field: t, pattern: '('}\n- {name: what, type: judge}";
        let expected = expect![[r#"
            found: true 
            end: true 
            empty: true 
            broken: false the pattern cannot be used: at /pattern: '(' is not a supported pattern
            what: false Unknown check type: judge
        "#]];
        check(checks, json!({"t": "abbc\n"}), &expected);
    }

    #[test]
    fn broken_files_are_refused() {
        let refusal = |text: &str| Eval::parse(text.as_bytes(), "a").expect_err("refused").to_string();
        assert_eq!(refusal(""), "the document must be a mapping, got NoneType");
        assert_eq!(refusal("eval: [1]"), "\"eval\" must be a mapping, got list");
        assert_eq!(refusal("checks: 1"), "\"checks\" must be a list, got int");
        assert_eq!(refusal("checks: [{type: exists}]"), "check 0 has no \"name\"");
        assert_eq!(refusal("checks: [{name: a}]"), "check 0 has no \"type\"");
        assert_eq!(
            refusal("checks: [{name: a, type: range, min_val: x}]"),
            "\"min_val\" of check 0 must be a number, got str"
        );
        let many = format!("checks: [{}]", "{name: a, type: exists},".repeat(CHECKS_MAX + 1));
        assert_eq!(refusal(&many), "more than 200 checks");
    }
}
