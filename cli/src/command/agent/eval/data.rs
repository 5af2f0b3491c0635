//! The cases of a data set: a line of JSON each.

use std::path::Path;

use atlas_api::types::Job;
use atlas_contract::same;
use serde_json::{Map, Value, json};

use crate::failure::Failure;
use crate::input;

/// Most cases of a data set.
const CASES_MAX: usize = 100_000;

/// An input, and what its output must have.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Case {
    pub(super) name: String,
    pub(super) input: Value,
    /// Members of the output; none if any output is right that passes the checks.
    expected: Map<String, Value>,
}

pub(super) fn read(file: &Path) -> Result<Vec<Case>, Failure> {
    let text = input::read_file(file)?;
    let cases = parse(&text).map_err(|why| Failure::usage(format!("{}: {why}", file.display())))?;
    if cases.is_empty() {
        let failure = Failure::usage(format!("{} has no cases", file.display()));
        return Err(failure.with_next("make one from jobs: atlasctl agent data-set AGENT > cases.jsonl"));
    }
    Ok(cases)
}

fn parse(text: &str) -> Result<Vec<Case>, String> {
    let lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
    let mut cases = Vec::new();
    for (at, line) in lines {
        let number = at + 1;
        if cases.len() == CASES_MAX {
            return Err(format!("it has more than {CASES_MAX} cases"));
        }
        cases.push(case_of(number, line).map_err(|why| format!("line {number}: {why}"))?);
    }
    Ok(cases)
}

fn case_of(number: usize, line: &str) -> Result<Case, String> {
    let value: Value = serde_json::from_str(line).map_err(|error| format!("it is not JSON: {error}"))?;
    let Value::Object(mut members) = value else { return Err("it is not a JSON object".to_owned()) };
    let input = members.remove("input").filter(Value::is_object).ok_or("it has no \"input\" that is an object")?;
    let expected = match members.remove("expected") {
        None | Some(Value::Null) => Map::new(),
        Some(Value::Object(expected)) => expected,
        Some(_) => return Err("\"expected\" is not an object".to_owned()),
    };
    let name = match members.remove("name") {
        None => number.to_string(),
        Some(Value::String(name)) => name,
        Some(_) => return Err("\"name\" is not a text".to_owned()),
    };
    match members.keys().next() {
        Some(other) => Err(format!("it has \"{other}\"; a case has input, expected and name")),
        None => Ok(Case { name, input, expected }),
    }
}

/// A case made of a job.
pub(super) fn case(job: &Job, with_expected: bool) -> Value {
    let mut case = json!({"name": job.id, "input": job.input_data});
    if let Some(output) = job.output_data.as_ref().filter(|output| with_expected && output.is_object()) {
        case["expected"] = output.clone();
    }
    case
}

impl Case {
    /// What a judge is asked about an output.
    pub(super) fn question(&self, output: &Value, criterion: Option<&str>) -> Value {
        let mut question = json!({"input": self.input, "output": output});
        if !self.expected.is_empty() {
            question["expected"] = Value::Object(self.expected.clone());
        }
        if let Some(criterion) = criterion {
            question["criterion"] = json!(criterion);
        }
        question
    }

    /// Where an output is not as expected.
    pub(super) fn differences(&self, output: &Value) -> Vec<String> {
        let different = |(name, expected): (&String, &Value)| {
            let found = output.get(name).unwrap_or(&Value::Null);
            (!same(found, expected)).then(|| format!("{name} is {found}, not {expected}"))
        };
        self.expected.iter().filter_map(different).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_that_are_no_cases_are_named() {
        for (text, why) in [
            ("{\"input\": {}}\n\nnope", "line 3: it is not JSON: expected ident at line 1 column 2"),
            ("[]", "line 1: it is not a JSON object"),
            ("{\"input\": 1}", "line 1: it has no \"input\" that is an object"),
            ("{\"input\": {}, \"expected\": 1}", "line 1: \"expected\" is not an object"),
            ("{\"input\": {}, \"name\": 1}", "line 1: \"name\" is not a text"),
            ("{\"input\": {}, \"output\": {}}", "line 1: it has \"output\"; a case has input, expected and name"),
        ] {
            assert_eq!(parse(text), Err(why.to_owned()));
        }
        assert_eq!(parse(" \n"), Ok(Vec::new()));
    }

    #[test]
    fn outputs_are_compared_by_the_members_that_are_expected() {
        let cases =
            parse("{\"input\": {}, \"expected\": {\"n\": 1.0, \"l\": [{\"a\": 2}], \"x\": null}}").expect("cases");
        assert_eq!(
            (cases[0].name.as_str(), cases[0].differences(&json!({"n": 1, "l": [{"a": 2.0}], "y": 1})).len()),
            ("1", 0)
        );
        let found = cases[0].differences(&json!({"n": 2, "l": [], "x": 0}));
        assert_eq!(found, ["n is 2, not 1.0", "l is [], not [{\"a\":2}]", "x is 0, not null"]);
    }
}
