//! The checks of the agent loop: arguments and outputs against the compiled schemas of a turn's settings. The worker that runs a turn and
//! whoever replays it use the same ones.

use atlas_contract::Violation;
use atlas_contract::schema::Validator;
use atlas_turn::{Checks, Format, Problem, Settings};
use serde_json::Value;

/// The compiled schemas.
#[derive(Debug)]
pub struct Schemas {
    /// In the order of the tools. None where the schema is not usable; then the tool checks its arguments itself.
    arguments: Vec<Option<Validator>>,
    output: Option<Validator>,
}

impl Schemas {
    /// Compiles the schemas of the settings.
    pub fn of(settings: &Settings) -> Self {
        let tools = settings.tools.iter();
        let output = match &settings.format {
            Format::Schema { schema, .. } => Validator::compile(schema).ok(),
            Format::Json | Format::Text => None,
        };
        Self { arguments: tools.map(|offered| Validator::compile(&offered.tool.input_schema).ok()).collect(), output }
    }
}

impl Checks for Schemas {
    fn arguments(&self, tool: usize, arguments: &Value) -> Vec<Problem> {
        problems(self.arguments.get(tool).and_then(Option::as_ref), arguments)
    }

    fn output(&self, output: &Value) -> Vec<Problem> {
        problems(self.output.as_ref(), output)
    }
}

fn problems(validator: Option<&Validator>, value: &Value) -> Vec<Problem> {
    let found = validator.map_or(Ok(()), |validator| validator.validate(value));
    let problem = |Violation { pointer, message, .. }| Problem { pointer, message };
    found.err().unwrap_or_default().into_iter().map(problem).collect()
}

#[cfg(test)]
mod tests {
    use atlas_model::Tool;
    use atlas_turn::OfferedTool;
    use serde_json::json;

    use super::*;

    fn offered(schema: Value) -> OfferedTool {
        let tool = Tool { name: "t".to_owned(), description: String::new(), input_schema: schema };
        OfferedTool { name: "t".to_owned(), tool }
    }

    /// The loop knows the tool that spawns jobs by its name.
    #[test]
    fn the_tool_that_runs_agents_has_one_name() {
        assert_eq!(atlas_turn::record::RUN, atlas_contract::platform::RUN);
    }

    #[test]
    fn arguments_and_outputs_are_checked() {
        let schema = json!({"required": ["a"]});
        let format = Format::Schema { name: "o".to_owned(), schema: schema.clone(), repairs: 1 };
        // The second tool's schema is not usable: the tool checks its arguments itself.
        let tools = vec![offered(schema), offered(json!({"type": "nothing"}))];
        let checks = Schemas::of(&Settings { tools, format, ..Settings::default() });
        let pointers = |problems: Vec<Problem>| problems.into_iter().map(|problem| problem.pointer).collect::<Vec<_>>();
        assert_eq!(pointers(checks.arguments(0, &json!({}))), ["/"]);
        assert!(checks.arguments(0, &json!({"a": 1})).is_empty() && checks.arguments(1, &json!({})).is_empty());
        assert_eq!(pointers(checks.output(&json!({}))), ["/"]);
    }
}
