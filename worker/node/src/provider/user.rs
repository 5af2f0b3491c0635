//! The tools with which a model asks people (compatibility §18). The controller keeps the question; the job may park until it is answered.

use serde_json::{Value, json};

/// One tool.
#[derive(Debug)]
pub(crate) struct Tool {
    pub(crate) name: &'static str,
    pub(crate) description: &'static str,
    /// Whether it has options to choose from.
    options: bool,
}

impl Tool {
    /// JSON Schema of the arguments. Some models send a list as the text of one.
    pub(crate) fn input_schema(&self) -> Value {
        let question = json!({"type": "string", "description": "The question."});
        if !self.options {
            return json!({"type": "object", "properties": {"question": question}, "required": ["question"]});
        }
        let options = json!({
            "type": ["array", "string"],
            "items": {"type": "string"},
            "description": "What can be chosen.",
        });
        json!({
            "type": "object",
            "properties": {"question": question, "options": options},
            "required": ["question", "options"],
        })
    }
}

/// All of them.
pub(crate) const TOOLS: [Tool; 5] = [
    Tool {
        name: "user__ask",
        description: "Asks the user to choose one of several options. The user may answer with another text.",
        options: true,
    },
    Tool {
        name: "user__select",
        description: "Asks the user to choose one of several options. The user may answer with another text.",
        options: true,
    },
    Tool {
        name: "user__confirm",
        description: "Asks the user a question with the answers yes and no.",
        options: false,
    },
    Tool { name: "user__input", description: "Asks the user for a text, which may be empty.", options: false },
    Tool {
        name: "user__checkbox",
        description: "Asks the user to choose any number of several options.",
        options: true,
    },
];

/// The tool of a name.
pub(crate) fn find(name: &str) -> Option<&'static Tool> {
    TOOLS.iter().find(|tool| tool.name == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_a_list_or_the_text_of_one() {
        for tool in &TOOLS {
            let schema = tool.input_schema();
            let validator = atlas_contract::schema::Validator::compile(&schema).expect("a schema");
            assert!(!validator.is_valid(&json!({})), "{}", tool.name);
            assert_eq!(validator.is_valid(&json!({"question": "?"})), !tool.options, "{}", tool.name);
            for options in [json!(["a"]), json!("[\"a\"]")] {
                assert!(validator.is_valid(&json!({"question": "?", "options": options})), "{}", tool.name);
            }
        }
        assert!(find("user__ask").is_some() && find("user__other").is_none());
    }
}
