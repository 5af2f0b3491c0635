//! Files of secrets: one JSON or YAML object, whose values become texts as Python's `str` makes them (compatibility §25.5).

use std::collections::BTreeMap;

use serde_json::Value;

use crate::python;
use crate::yaml::{self, Budget, YamlError};

/// Why a file contains no secrets. No text shows a part of the file.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SecretFileError {
    #[error("the file is not JSON: line {line}, column {column}")]
    Json { line: usize, column: usize },
    /// The position alone: the parser's text may quote a value.
    #[error("the file is not YAML{}", place.map(|place| format!(": {place}")).unwrap_or_default())]
    Yaml { place: Option<yaml::Position> },
    #[error("a value in the file cannot be read: {place}")]
    Value { place: yaml::Position },
    #[error("the file has more than {max} bytes")]
    TooLarge { max: usize },
    #[error("the file is not an object of names and values")]
    NotAnObject,
}

/// The values of a file by name. `.yaml` and `.yml` at the end of its name make it YAML; otherwise it is JSON. An empty YAML file has no
/// values.
pub fn read(file_name: &str, bytes: &[u8]) -> Result<BTreeMap<String, String>, SecretFileError> {
    let budget = Budget::default();
    let is_yaml = [".yaml", ".yml"].iter().any(|suffix| file_name.ends_with(suffix));
    let document = if is_yaml {
        yaml::load_strictly(bytes, budget).map_err(|error| yaml_error(&error))?
    } else if bytes.len() > budget.bytes_max {
        return Err(SecretFileError::TooLarge { max: budget.bytes_max });
    } else {
        let place = |error: serde_json::Error| SecretFileError::Json { line: error.line(), column: error.column() };
        serde_json::from_slice(bytes).map_err(place)?
    };
    match document {
        Value::Object(members) => {
            Ok(members.iter().map(|(name, value)| (name.clone(), python::display(value))).collect())
        }
        Value::Null if is_yaml => Ok(BTreeMap::new()),
        _ => Err(SecretFileError::NotAnObject),
    }
}

fn yaml_error(error: &YamlError) -> SecretFileError {
    match error {
        YamlError::NotUtf8 { place } | YamlError::Syntax { place, .. } => SecretFileError::Yaml { place: Some(*place) },
        YamlError::Meaning { place, .. } => SecretFileError::Value { place: *place },
        YamlError::Budget { .. } => SecretFileError::Yaml { place: None },
    }
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::*;

    fn check(name: &str, text: &str, expected: &Expect) {
        let shown = match read(name, text.as_bytes()) {
            Ok(values) => format!("{values:?}"),
            Err(error) => format!("error: {error}"),
        };
        expected.assert_eq(&shown);
    }

    #[test]
    fn values_become_texts() {
        check(
            "s.json",
            r#"{"K": "v", "N": 5, "F": 1.5, "T": true, "Z": null, "L": [1, "a"]}"#,
            &expect![[r#"{"F": "1.5", "K": "v", "L": "[1, 'a']", "N": "5", "T": "True", "Z": "None"}"#]],
        );
        check("s.yaml", "K: v\nN: 5\nT: yes\n", &expect![[r#"{"K": "v", "N": "5", "T": "True"}"#]]);
        check("s.yml", "", &expect!["{}"]);
        check("s", r#"{"K": "v"}"#, &expect![[r#"{"K": "v"}"#]]);
    }

    #[test]
    fn errors_show_nothing_of_the_file() {
        check("s.json", "{\"K\": canary}", &expect!["error: the file is not JSON: line 1, column 7"]);
        check("s.json", "[\"canary\"]", &expect!["error: the file is not an object of names and values"]);
        check("s.json", "", &expect!["error: the file is not JSON: line 1, column 0"]);
        check("s.yaml", "K: !canary v", &expect!["error: a value in the file cannot be read: line 1, column 12"]);
        check("s.yaml", "canary", &expect!["error: the file is not an object of names and values"]);
        check("s.yaml", "A: b\nK: .inf", &expect!["error: a value in the file cannot be read: line 2, column 4"]);
        check("s.yaml", "K: [", &expect!["error: the file is not YAML: line 1, column 4"]);
        let large = " ".repeat(1 << 21);
        check("s.json", &large, &expect!["error: the file has more than 1048576 bytes"]);
        check("s.yaml", &large, &expect!["error: the file is not YAML"]);
    }
}
