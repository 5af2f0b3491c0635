//! Checks of arguments and outputs against the schemas of a job's settings.

use atlas_contract::Violation;
use atlas_contract::schema::Validator;
use atlas_turn::{Checks, Format, Problem, Settings};
use serde_json::Value;

/// The compiled schemas.
pub(super) struct Schemas {
    /// In the order of the tools. None where the schema is not usable; then the tool checks its arguments itself.
    arguments: Vec<Option<Validator>>,
    output: Option<Validator>,
}

impl Schemas {
    pub(super) fn of(settings: &Settings) -> Self {
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
