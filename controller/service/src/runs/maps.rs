//! What is wrong with the `input_map` of a step, found before the chain runs.

use atlas_contract::nearest;
use atlas_contract::schema::Validator;
use atlas_mediation::{Level, Schemas, Unreachable, analyze, fits_property, reach};
use atlas_runs::{Plan, PlannedStep, Source, schema_of, sources};
use serde_json::{Map, Value, json};

/// A mistake in a map.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Problem {
    /// The number of the step, from 0.
    step: usize,
    /// The field of the input that the map would fill; empty for the whole map.
    field: String,
    /// What the map has for it.
    given: Value,
    message: String,
    hint: Option<String>,
    /// Whether no run can pass this step, and not only does less than its author means.
    fatal: bool,
}

impl Problem {
    pub(super) fn to_json(&self) -> Value {
        json!({
            "step": self.step, "field": self.field, "given": self.given, "message": self.message, "hint": self.hint,
            "level": if self.fatal { "error" } else { "warning" },
        })
    }
}

/// The mistakes in all maps of a chain, in its order.
pub(super) fn problems(plan: &Plan) -> Vec<Problem> {
    let mut found = Vec::new();
    for (index, step) in plan.steps.iter().enumerate() {
        let Some(map) = step.input_map.as_ref().filter(|map| !map.is_empty()) else { continue };
        let data = data_of(plan, index);
        let mut checking = Checking { plan, index, step, data: &data, found: &mut found };
        // A map that leaves required fields open, or that is not needed, gives nothing: the schemas decide.
        if index > 0 && analyze(&data, &step.input_schema, Some(map)).level != Level::Mappable {
            checking.unused(map);
        } else {
            map.iter().for_each(|(field, given)| checking.entry(field, given));
            if index == 0 {
                checking.open(map);
            }
        }
    }
    found
}

/// The schema of the data that a step gets; what can come in several ways is open.
fn data_of(plan: &Plan, index: usize) -> Value {
    let sources = if plan.has_branches() {
        sources(plan, index)
    } else {
        vec![index.checked_sub(1).map_or(Source::Trigger, Source::Step)]
    };
    match &sources[..] {
        [Source::Trigger] => trigger_schema(plan),
        [source] => schema_of(plan, source).unwrap_or_else(|| json!({})),
        _ => json!({}),
    }
}

/// What the input of a chain can have: anything, unless it is that of the first step.
fn trigger_schema(plan: &Plan) -> Value {
    let Some(first) = plan.steps.first() else { return json!({}) };
    let closed = first.input_schema.get("additionalProperties") == Some(&Value::Bool(false));
    if closed && !plan.has_branches() && first.input_map.as_ref().is_none_or(Map::is_empty) {
        first.input_schema.clone()
    } else {
        json!({})
    }
}

struct Checking<'a> {
    plan: &'a Plan,
    index: usize,
    step: &'a PlannedStep,
    data: &'a Value,
    found: &'a mut Vec<Problem>,
}

impl Checking<'_> {
    fn add(&mut self, field: &str, given: &Value, message: String, hint: Option<String>, fatal: bool) {
        let (field, given) = (field.to_owned(), given.clone());
        self.found.push(Problem { step: self.index, field, given, message, hint, fatal });
    }

    /// The whole map has no effect.
    fn unused(&mut self, map: &Map<String, Value>) {
        let open: Vec<&str> = required(&self.step.input_schema).filter(|name| !map.contains_key(*name)).collect();
        let (message, hint) = if open.is_empty() {
            (
                "the input_map is not used: the output of the step before fits as it is".to_owned(),
                "remove it".to_owned(),
            )
        } else {
            let open = open.join(", ");
            (format!("the input_map is not used: it leaves required fields open: {open}"), format!("add {open} to it"))
        };
        self.add("", &Value::Object(map.clone()), message, Some(hint), false);
    }

    /// Required fields of the first step that its map does not fill.
    fn open(&mut self, map: &Map<String, Value>) {
        let names: Vec<String> = required(&self.step.input_schema).map(str::to_owned).collect();
        for name in names.iter().filter(|name| !map.contains_key(*name)) {
            let message = format!("\"{}\" requires it, and the input_map has no entry for it", self.step.agent);
            let hint = format!("add {name}: \"$.trigger.{name}\"");
            self.add(name, &Value::Null, message, Some(hint), true);
        }
    }

    fn entry(&mut self, field: &str, given: &Value) {
        let target = match self.target(field) {
            Ok(target) => target.cloned().unwrap_or_else(|| json!({})),
            Err(hint) => {
                let message = format!("the input of \"{}\" has no field \"{field}\"", self.step.agent);
                let closed = self.step.input_schema.get("additionalProperties") == Some(&Value::Bool(false));
                return self.add(field, given, message, hint, closed);
            }
        };
        let is_required = required(&self.step.input_schema).any(|name| name == field);
        let trigger = trigger_schema(self.plan);
        let steps = self.plan.steps.iter().take(self.index).map(|step| (step.name.as_str(), &step.output_schema));
        let schemas = Schemas { trigger: &trigger, data: self.data, steps: steps.collect() };
        let source = match given.as_str() {
            Some(path) if path.starts_with("$.") => match reach(path, &schemas) {
                Ok(found) => found.cloned(),
                Err(why) => {
                    let hint = hint(&why);
                    // What a path does not find is left out, which only a required field does not survive.
                    return self.add(field, given, why.to_string(), hint, is_required);
                }
            },
            Some(name) => match self.data.get("properties").and_then(|all| all.get(name)) {
                Some(found) => Some(found.clone()),
                None => return self.fixed(field, given, &target),
            },
            None => return self.fixed(field, given, &target),
        };
        let Some(source) = source.filter(|source| !fits_property(source, &target)) else { return };
        let kind = |schema: &Value| schema["type"].as_str().unwrap_or("any").to_owned();
        let message = format!(
            "it finds a value of the type {}, and \"{field}\" of \"{}\" has the type {}; an input_map converts nothing",
            kind(&source),
            self.step.agent,
            kind(&target)
        );
        self.add(field, given, message, None, true);
    }

    /// A value that the map states itself.
    fn fixed(&mut self, field: &str, given: &Value, target: &Value) {
        let known = self.data.get("properties").and_then(Value::as_object);
        let meant = given.as_str().and_then(|text| nearest(text, known?.keys().map(String::as_str)));
        let path = given.as_str().filter(|text| {
            text.starts_with('$') || ["trigger.", "steps.", "steps["].iter().any(|begin| text.starts_with(begin))
        });
        let hint = match (meant, path) {
            (Some(meant), _) => Some(format!("did you mean the field \"{meant}\"?")),
            (None, Some(_)) => Some("a path begins with \"$.\", as in \"$.trigger.text\"".to_owned()),
            (None, None) => None,
        };
        let violations = Validator::compile(target).ok().and_then(|validator| validator.validate(given).err());
        match violations {
            Some(violations) => {
                let why = atlas_contract::joined(&violations);
                self.add(field, given, format!("it is a fixed value that \"{field}\" cannot have: {why}"), hint, true);
            }
            None if hint.is_some() => {
                let message = "it is a fixed text, and no path and no field of the output before".to_owned();
                self.add(field, given, message, hint, false);
            }
            None => {}
        }
    }

    /// The schema of a field of the input; none if the input may have any field. The error is what was probably meant.
    fn target(&self, field: &str) -> Result<Option<&Value>, Option<String>> {
        let schema = &self.step.input_schema;
        let Some(properties) = schema.get("properties").and_then(Value::as_object) else { return Ok(None) };
        if let Some(found) = properties.get(field) {
            return Ok(Some(found));
        }
        match schema.get("additionalProperties") {
            Some(Value::Bool(true) | Value::Object(_)) => Ok(None),
            _ => {
                let meant = nearest(field, properties.keys().map(String::as_str));
                Err(meant.map(|meant| format!("did you mean \"{meant}\"?")))
            }
        }
    }
}

fn required(schema: &Value) -> impl Iterator<Item = &str> {
    schema.get("required").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str)
}

fn hint(why: &Unreachable) -> Option<String> {
    let (name, known) = why.names()?;
    match nearest(name, known.iter().map(String::as_str)) {
        Some(meant) => Some(format!("did you mean \"{meant}\"?")),
        None if known.is_empty() => None,
        None => Some(format!("known are: {}", known.iter().take(20).cloned().collect::<Vec<_>>().join(", "))),
    }
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::*;

    fn step(name: &str, input: &Value, map: &Value) -> PlannedStep {
        let text = json!({"type": "string"});
        PlannedStep {
            agent: format!("agent-{name}"),
            version: "1.0.0".to_owned(),
            digest: String::new(),
            name: name.to_owned(),
            input_map: map.as_object().cloned(),
            input_schema: input.clone(),
            output_schema: json!({"type": "object", "properties": {"summary": text, "count": {"type": "integer"}}}),
            flow: None,
        }
    }

    #[expect(clippy::needless_pass_by_value, reason = "tests write values in place")]
    fn check(map: Value, expected: &Expect) {
        let input = json!({
            "type": "object", "required": ["text"], "additionalProperties": false,
            "properties": {"text": {"type": "string"}, "size": {"type": "integer"}, "any": {}},
        });
        let steps = vec![step("write", &json!({}), &Value::Null), step("read", &input, &map)];
        let plan = Plan { chain: "c".to_owned(), orchestrator: String::new(), steps };
        let line = |problem: &Problem| {
            let hint = problem.hint.as_ref().map(|hint| format!("; {hint}")).unwrap_or_default();
            let level = if problem.fatal { "error" } else { "warning" };
            format!("{level} step {} {}: {}{hint}\n", problem.step, problem.field, problem.message)
        };
        expected.assert_eq(&problems(&plan).iter().map(line).collect::<String>());
    }

    #[test]
    fn maps_that_work_have_no_problems() {
        for map in [
            json!({"text": "summary"}),
            json!({"text": "$.summary", "size": "$.steps.write.output.count", "any": "bold"}),
            json!({"text": "$.trigger.whatever.deep", "size": 3}),
        ] {
            check(map, &expect![""]);
        }
    }

    #[test]
    fn paths_that_never_find_anything_are_problems() {
        check(
            json!({"text": "$.sumary", "size": "$.steps.wirte.output.count"}),
            &expect![[r#"
                error step 1 text: the data of the step before has no field "sumary"; did you mean "summary"?
                warning step 1 size: there is no step "wirte" before this one; did you mean "write"?
            "#]],
        );
        check(
            json!({"text": "$.count", "txt": 1}),
            &expect![[r#"
                error step 1 text: it finds a value of the type integer, and "text" of "agent-read" has the type string; an input_map converts nothing
                error step 1 txt: the input of "agent-read" has no field "txt"; did you mean "text"?
            "#]],
        );
    }

    #[test]
    fn fixed_values_must_be_possible() {
        check(
            json!({"text": "sumary", "size": "many", "any": "trigger.x"}),
            &expect![[r#"
                warning step 1 text: it is a fixed text, and no path and no field of the output before; did you mean the field "summary"?
                error step 1 size: it is a fixed value that "size" cannot have: 'many' is not of type 'integer'
                warning step 1 any: it is a fixed text, and no path and no field of the output before; a path begins with "$.", as in "$.trigger.text"
            "#]],
        );
    }

    #[test]
    fn a_map_that_is_not_used_is_told() {
        check(
            json!({"size": 1}),
            &expect![[r#"
                warning step 1 : the input_map is not used: it leaves required fields open: text; add text to it
            "#]],
        );
        let first = step("write", &json!({"properties": {"text": {}}, "required": ["text"]}), &json!({"size": 1}));
        let plan = Plan { chain: "c".to_owned(), orchestrator: String::new(), steps: vec![first] };
        let found = problems(&plan);
        assert_eq!(found.iter().map(|problem| problem.fatal).collect::<Vec<_>>(), [false, true]);
        assert_eq!(found[1].field, "text");
    }
}
