//! What came of a call.

use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;

use serde_json::{Value, json};

/// A call that is over.
#[derive(Debug, Clone, PartialEq)]
pub struct CallResult {
    /// What the model gets.
    pub value: Value,
    /// Whether the tool failed.
    pub failed: bool,
    /// The end of what it wrote to its streams, for the log.
    pub log: String,
}

impl CallResult {
    pub(crate) fn error(text: impl Into<String>) -> Self {
        Self { value: json!({"tool_call_error": text.into()}), failed: true, log: String::new() }
    }
}

/// The value of a result: JSON as it is, other text in an object, nothing as a word that says that it worked.
pub(crate) fn result(text: &str) -> Value {
    match text {
        "" => json!("DONE"),
        _ => match serde_json::from_str(text) {
            Ok(Value::Null) => json!("DONE"),
            Ok(value) => value,
            Err(_) => json!({"output": text}),
        },
    }
}

/// The value of a process that failed; none if it did not.
pub(crate) fn failure(tool: &str, status: ExitStatus, stderr: &str) -> Option<Value> {
    let how = match (status.code(), status.signal()) {
        (Some(0), _) => return None,
        (Some(code), _) => format!("exited with code {code}"),
        (None, Some(signal)) => format!("was ended by signal {signal}"),
        (None, None) => "was ended".to_owned(),
    };
    let mut value = json!({"tool_call_error": format!("Tool call '{tool}' {how}")});
    if !stderr.is_empty() {
        value["stderr"] = json!(stderr);
    }
    Some(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_are_json_or_text() {
        assert_eq!(result(""), json!("DONE"));
        assert_eq!(result("null"), json!("DONE"));
        assert_eq!(result("{\"a\": 1}\n"), json!({"a": 1}));
        assert_eq!(result("5"), json!(5));
        assert_eq!(result("True"), json!({"output": "True"}));
        assert_eq!(result("a\n"), json!({"output": "a\n"}));
    }
}
