//! How the steps of a chain fit together, without running it.

use atlas_mediation::{Coercion, Level, Report};
use atlas_objects::models_of_tier;
use atlas_runs::{Chain, Plan, Source, join, schema_of, sources, unknown_agents};
use atlas_types::RunStrategy;
use serde_json::{Value, json};

use super::drive::{known_version, plan_of};
use super::{ChainSource, bridge, maps};
use crate::{Caller, Consistency, Error, Service};

impl Service {
    /// The versions that would run, and how each step would get its input from the step before.
    pub async fn check_chain(&self, caller: &Caller, chain: ChainSource) -> Result<Value, Error> {
        let state = self.state(Consistency::Linearizable).await?;
        let chain = match chain {
            ChainSource::Given(document) => super::read(&document)?,
            ChainSource::Named(name) => {
                let object = self.object(caller, "chain", &name, Consistency::Stale).await?;
                let chain = Chain::stored(&name, &object.value.spec);
                chain.map_err(|error| Error::Malformed(format!("Invalid chain definition: {error}")))?
            }
        };
        self.check_cycle(&state, &caller.namespace, &chain.name, &chain).await?;
        let state = self.with_chains(caller, &state, &chain).await?;
        let is_known = |agent: &str, range: Option<&str>| known_version(&state, caller, agent, range).is_some();
        if let Some(unknown) = unknown_agents(&chain, is_known) {
            return Err(Error::Malformed(unknown));
        }
        let plan = plan_of(self, &state, caller, chain).await?;
        let steps: Vec<Value> = (0..plan.steps.len()).map(|index| shown_step(&plan, index)).collect();
        let model = models_of_tier(&state, &caller.namespace, bridge::TIER);
        Ok(json!({
            "name": plan.chain,
            "steps": steps,
            "joins": joins(&plan),
            "problems": maps::problems(&plan).iter().map(maps::Problem::to_json).collect::<Vec<_>>(),
            "model": model.first().map_or("", |model| model.name.as_str()),
        }))
    }
}

fn shown_step(plan: &Plan, index: usize) -> Value {
    let step = &plan.steps[index];
    let mut shown = json!({"name": step.name, "agent": step.agent, "version": step.version});
    if let Some(flow) = &step.flow {
        shown["after"] = json!(flow.after);
        shown["when"] = json!(flow.words());
    }
    shown
}

/// How each step gets its input from those before, for all ways in which it can come.
fn joins(plan: &Plan) -> Vec<Value> {
    if !plan.has_branches() {
        let joins = (1..plan.steps.len()).filter_map(|index| Some(shown(plan, index, &join(plan, index)?)));
        return joins.collect();
    }
    let mut shown = Vec::new();
    for (index, step) in plan.steps.iter().enumerate() {
        for source in sources(plan, index) {
            let Some(schema) = schema_of(plan, &source) else { continue };
            let map = step.input_map.as_ref().filter(|map| !map.is_empty());
            let report = atlas_mediation::analyze(&schema, &step.input_schema, map);
            let mut join = shown_join(&schema, &step.input_schema, &report);
            join["from"] = match source {
                Source::Trigger => json!([]),
                Source::Step(before) => json!([before]),
                Source::Join(members) => json!(members),
            };
            join["to"] = json!(index);
            shown.push(join);
        }
    }
    shown
}

/// The report of a join, with the fields in a form for people.
fn shown(plan: &Plan, index: usize, report: &Report) -> Value {
    let (Some(before), Some(step)) = (plan.steps.get(index.wrapping_sub(1)), plan.steps.get(index)) else {
        return report.to_json();
    };
    shown_join(&before.output_schema, &step.input_schema, report)
}

fn shown_join(output: &Value, input: &Value, report: &Report) -> Value {
    let mut shown = report.to_json();
    let strategy = RunStrategy::named(report.level.strategy()).unwrap_or(RunStrategy::None);
    shown["cost"] = json!(strategy.cost());
    shown["fields"] = fields(output, input, report);
    shown
}

/// For each field of the input that gets a value: where the value comes from, and both types.
fn fields(output: &Value, input: &Value, report: &Report) -> Value {
    let kind = |schema: &Value, name: &str| match &schema["properties"][name]["type"] {
        Value::String(kind) => kind.clone(),
        _ => "any".to_owned(),
    };
    let field = |target: &str, source: &Value| {
        let name = source.as_str().filter(|name| output["properties"].get(name).is_some());
        let from = name.map(|name| kind(output, name));
        // Only a map has paths and values; its texts that are no field of the output are values.
        let how = match (name, source.as_str()) {
            (Some(_), _) => "field",
            (None, Some(path)) if path.starts_with("$.") => "path",
            _ => "value",
        };
        json!({"target": target, "source": source, "how": how, "from": from, "to": kind(input, target)})
    };
    if matches!(report.level, Level::Semantic | Level::Incompatible) {
        return json!([]);
    }
    let defaults = report.coercions.iter().filter_map(|coercion| match coercion {
        Coercion::Default { target, value } => {
            Some(json!({"target": target, "source": value, "how": "default", "from": null, "to": kind(input, target)}))
        }
        Coercion::Rename { .. } | Coercion::Cast { .. } => None,
    });
    report.mappings.iter().map(|(target, source)| field(target, source)).chain(defaults).collect()
}

#[cfg(test)]
mod tests {
    use atlas_runs::PlannedStep;
    use expect_test::{Expect, expect};

    use super::*;

    fn step(input: Value, output: Value, map: Option<Value>) -> PlannedStep {
        PlannedStep {
            agent: "a".to_owned(),
            version: "1.0.0".to_owned(),
            digest: String::new(),
            name: "step_0".to_owned(),
            input_map: map.and_then(|map| map.as_object().cloned()),
            input_schema: input,
            output_schema: output,
            flow: None,
        }
    }

    #[expect(clippy::needless_pass_by_value, reason = "tests write values in place")]
    fn check(output: Value, input: Value, map: Option<Value>, expected: Expect) {
        let steps = vec![step(json!({}), output, None), step(input, json!({}), map)];
        let plan = Plan { chain: "c".to_owned(), orchestrator: String::new(), steps };
        let shown = shown(&plan, 1, &join(&plan, 1).expect("a join"));
        let mut text = format!("{} cost {}\n", shown["strategy"], shown["cost"]);
        for field in shown["fields"].as_array().expect("fields") {
            let member = |name: &str| field[name].to_string();
            text += &format!(
                "{} {} ← {} {} {}\n",
                member("target"),
                member("to"),
                member("how"),
                member("source"),
                member("from")
            );
        }
        expected.assert_eq(&text);
    }

    fn texts(names: &[&str]) -> Value {
        let properties: Value = names.iter().map(|name| ((*name).to_owned(), json!({"type": "string"}))).collect();
        json!({"properties": properties, "required": names})
    }

    #[test]
    fn each_field_has_its_source_and_its_types() {
        check(
            texts(&["text", "more"]),
            texts(&["text"]),
            None,
            expect![[r#"
            "direct" cost 0.0
            "text" "string" ← "field" "text" "string"
        "#]],
        );
        let map = json!({"name": "more", "path": "$.trigger.x", "fixed": "hello", "number": 5});
        check(
            texts(&["text", "more"]),
            texts(&["name"]),
            Some(map),
            expect![[r#"
            "mapped" cost 0.0
            "name" "string" ← "field" "more" "string"
            "path" "any" ← "path" "$.trigger.x" null
            "fixed" "any" ← "value" "hello" null
            "number" "any" ← "value" 5 null
        "#]],
        );
        let target = json!({
            "properties": {"message_text": {"type": "string"}, "n": {"type": "integer", "default": 3}},
            "required": ["message_text", "n"],
        });
        check(
            texts(&["text"]),
            target,
            None,
            expect![[r#"
            "coerce" cost 0.0
            "message_text" "string" ← "field" "text" "string"
            "n" "integer" ← "default" 3 null
        "#]],
        );
        check(
            texts(&["text"]),
            texts(&["zzzz"]),
            None,
            expect![[r#"
            "llm_bridge" cost 1.0
        "#]],
        );
    }
}
