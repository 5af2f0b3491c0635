//! Rows: one JSON object per line.

use serde_json::{Map, Value, json};

/// One row.
#[derive(Debug, Clone, PartialEq)]
pub struct Row {
    /// The name in the output.
    pub id: String,
    /// The kind of behaviour that the row tests.
    pub kind: String,
    /// The input.
    pub input: Value,
    /// The expected result as a pattern, without informative members and with prefixes converted to patterns. The rows of
    /// Loki have no such members; what they expect is not changed.
    pub expect: Value,
    /// Where Atlas differs on purpose from what was recorded: a rule and a sentence that says how.
    pub differs: Vec<String>,
    /// The requirements of these differences, such as `REQ-31`.
    pub requirements: Vec<String>,
}

/// Why a text is not a row.
#[derive(Debug, thiserror::Error)]
pub enum RowError {
    /// A line is not JSON.
    #[error("line {line} is not JSON")]
    Json {
        /// The line number, from 1.
        line: usize,
        /// The parser's error.
        source: serde_json::Error,
    },
    /// A member is missing.
    #[error("line {line} has no \"{member}\"")]
    Member {
        /// The line number, from 1.
        line: usize,
        /// The name of the member.
        member: &'static str,
    },
}

impl Row {
    /// Parses the rows of a file; empty lines are skipped. The input is the member `in` or, in the rows of Loki, all members
    /// that have no meaning of their own.
    pub fn read_all(text: &str) -> Result<Vec<Self>, RowError> {
        let lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
        lines.map(|(index, line)| Self::read(index + 1, line)).collect()
    }

    fn read(line: usize, text: &str) -> Result<Self, RowError> {
        let mut row: Value = serde_json::from_str(text).map_err(|source| RowError::Json { line, source })?;
        let mut take =
            |member: &'static str| row.get_mut(member).map(Value::take).ok_or(RowError::Member { line, member });
        let text = |value: Value, member| match value {
            Value::String(text) => Ok(text),
            _ => Err(RowError::Member { line, member }),
        };
        let (id, kind) = (text(take("id")?, "id")?, text(take("kind")?, "kind")?);
        let expect = take("expect")?;
        if let Ok(input) = take("in") {
            return Ok(Self {
                id,
                kind,
                input,
                expect: pattern(expect),
                differs: Vec::new(),
                requirements: Vec::new(),
            });
        }
        let differs = items(&row, "differs");
        let differs = differs.map(|one| format!("{}: {}", self::text(one, "spec"), self::text(one, "ours"))).collect();
        let words = |one: &Value| self::text(one, "spec").split([' ', ',']).map(str::to_owned).collect::<Vec<_>>();
        let requirements = items(&row, "differs").flat_map(words).filter(|word| word.starts_with("REQ-")).collect();
        if let Value::Object(members) = &mut row {
            members.retain(|name, _| !["id", "kind", "expect", "differs", "tags"].contains(&name.as_str()));
        }
        Ok(Self { id, kind, input: row, expect, differs, requirements })
    }

    /// Whether Atlas differs on purpose in a requirement.
    pub(crate) fn differs_in(&self, requirement: &str) -> bool {
        self.requirements.iter().any(|known| known == requirement)
    }

    /// The names of the input's members, for messages.
    pub(crate) fn members(&self) -> String {
        members(&self.input).map(|(name, _)| format!("\"{name}\"")).collect::<Vec<_>>().join(", ")
    }

    /// A string member of the input; empty if it is missing or not a string.
    pub(crate) fn text(&self, member: &str) -> &str {
        text(&self.input, member)
    }
}

/// A string member of an object; empty if it is missing or not a string.
pub(crate) fn text<'a>(value: &'a Value, member: &str) -> &'a str {
    value.get(member).and_then(Value::as_str).unwrap_or_default()
}

/// The members of an object; none if the value is not an object.
pub(crate) fn members(value: &Value) -> impl Iterator<Item = (&String, &Value)> {
    value.as_object().into_iter().flatten()
}

/// The items of an array member; none if it is missing or not an array.
pub(crate) fn items<'a>(value: &'a Value, member: &str) -> impl Iterator<Item = &'a Value> {
    value.get(member).and_then(Value::as_array).into_iter().flatten()
}

/// The first member whose name is not among `known`.
pub(crate) fn unknown<'a>(value: &'a Value, known: &[&str]) -> Option<&'a str> {
    members(value).map(|(name, _)| name.as_str()).find(|name| !known.contains(name))
}

/// Removes informative members and converts prefixes to patterns.
fn pattern(expect: Value) -> Value {
    const PREFIXES: [(&str, &str); 3] =
        [("error_prefix", "error"), ("text_prefix", "text"), ("stderr_prefix", "stderr")];
    match expect {
        Value::Array(items) => items.into_iter().map(pattern).collect(),
        Value::Object(members) => {
            let mut out = Map::new();
            for (name, value) in members {
                let prefix = PREFIXES.iter().find(|(prefix, _)| *prefix == name).zip(value.as_str());
                match prefix {
                    _ if name == "informative" => {}
                    Some(((_, whole), prefix)) => {
                        out.insert((*whole).to_owned(), json!({"$regex": format!("^{}", regex::escape(prefix))}));
                    }
                    None => {
                        out.insert(name, pattern(value));
                    }
                }
            }
            Value::Object(out)
        }
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_informative_goes_and_prefixes_become_patterns() {
        let text =
            r#"{"id": "a", "kind": "k", "in": {}, "expect": {"jobs": [{"error_prefix": "Out: ", "informative": 1}]}}"#;
        let rows = Row::read_all(&format!("{text}\n\n")).expect("rows");
        assert_eq!(rows[0].expect, json!({"jobs": [{"error": {"$regex": "^Out: "}}]}));
    }

    #[test]
    fn a_row_of_loki_is_flat() {
        let text = r#"{"id": "a", "kind": "k", "expr": "e", "tags": ["t"], "differs": [{"spec": "s", "ours": "o"}],
            "expect": {"text_prefix": "x"}}"#;
        let rows = Row::read_all(&text.replace('\n', "")).expect("rows");
        assert_eq!(rows[0].input, json!({"expr": "e"}));
        assert_eq!((&rows[0].expect, &rows[0].differs[..]), (&json!({"text_prefix": "x"}), &["s: o".to_owned()][..]));
    }

    #[test]
    fn a_broken_line_is_named() {
        let error = |text| Row::read_all(text).map_err(|error| error.to_string());
        assert_eq!(error("\n{"), Err("line 2 is not JSON".to_owned()));
        assert_eq!(error(r#"{"id": "a", "in": {}}"#), Err("line 1 has no \"kind\"".to_owned()));
    }
}
