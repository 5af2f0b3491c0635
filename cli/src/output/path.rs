//! Paths into JSON values, and templates with paths in braces: `{id} {labels.demo}`, `$[*].contract.hardware.gpus[0]`.

use std::fmt;
use std::str::FromStr;

use atlas_contract::nearest;
use serde_json::Value;

use super::plain;

/// The member of an object, also by the word that tables and requests have for it.
pub(super) fn member<'a>(value: &'a Value, name: &str) -> Option<&'a Value> {
    value.get(name).or_else(|| value.get(alias(name)?))
}

/// The API's name of a member that people know by another word: jobs are submitted with an `agent` and an `input`.
pub(super) fn alias(word: &str) -> Option<&'static str> {
    Some(match word {
        "agent" => "agent_name",
        "input" => "input_data",
        "output" => "output_data",
        _ => return None,
    })
}

/// A path into a JSON value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Path(Vec<Step>);

#[derive(Debug, Clone, PartialEq, Eq)]
enum Step {
    Member(String),
    Index(usize),
    Every,
}

impl Path {
    /// All values at the path, in order; none if the path does not exist.
    pub(crate) fn all<'a>(&self, value: &'a Value) -> Vec<&'a Value> {
        let mut found = vec![value];
        for step in &self.0 {
            let next = |value: &'a Value| -> Vec<&'a Value> {
                match (step, value) {
                    (Step::Member(name), value) => member(value, name).into_iter().collect(),
                    (Step::Index(index), value) => value.get(*index).into_iter().collect(),
                    (Step::Every, Value::Array(items)) => items.iter().collect(),
                    (Step::Every, Value::Object(members)) => members.values().collect(),
                    (Step::Every, _) => Vec::new(),
                }
            };
            found = found.into_iter().flat_map(next).collect();
        }
        found
    }
}

impl Path {
    /// Like [`Self::all`], but fails if a step finds nothing in any of the values before it; the error has the missing
    /// path and a similar name. An empty list is no error.
    pub(crate) fn found<'a>(&self, value: &'a Value) -> Result<Vec<&'a Value>, Missing> {
        let mut at = Self(Vec::new());
        let mut before = vec![value];
        for step in &self.0 {
            at.0.push(step.clone());
            let after = Self(vec![step.clone()]);
            let next: Vec<&Value> = before.iter().copied().flat_map(|value| after.all(value)).collect();
            let empty = |value: &&Value| match (step, value) {
                (Step::Every, Value::Array(items)) => items.is_empty(),
                (Step::Every, Value::Object(members)) => members.is_empty(),
                _ => false,
            };
            if next.is_empty() && !before.is_empty() && !before.iter().any(empty) {
                let names = before.iter().filter_map(|value| value.as_object()).flat_map(|members| members.keys());
                let near = match step {
                    Step::Member(name) => nearest(name, names.map(String::as_str)).map(str::to_owned),
                    Step::Index(_) | Step::Every => None,
                };
                return Err(Missing { path: at.to_string(), near });
            }
            before = next;
        }
        Ok(before)
    }

    /// The member with which the path begins.
    pub(crate) fn root(&self) -> Option<&str> {
        match self.0.first() {
            Some(Step::Member(name)) => Some(name),
            Some(Step::Index(_) | Step::Every) | None => None,
        }
    }
}

/// A path that does not exist in a value.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Missing {
    /// The path up to the first step that finds nothing.
    pub(crate) path: String,
    /// A similar name.
    pub(crate) near: Option<String>,
}

impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("$")?;
        self.0.iter().try_for_each(|step| match step {
            Step::Member(name) if name.contains(['.', '[', ']', ' ']) => write!(f, "['{name}']"),
            Step::Member(name) => write!(f, ".{name}"),
            Step::Index(index) => write!(f, "[{index}]"),
            Step::Every => f.write_str("[*]"),
        })
    }
}

impl FromStr for Path {
    type Err = String;

    /// Parses a path; a leading `$` and surrounding braces are allowed, as in kubectl.
    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("\"{text}\" is not a path such as name, labels.demo or $[*].id");
        let inner = text.strip_prefix('{').and_then(|inner| inner.strip_suffix('}')).unwrap_or(text);
        let mut rest = inner.strip_prefix('$').unwrap_or(inner);
        let mut steps = Vec::new();
        while !rest.is_empty() {
            if let Some(after) = rest.strip_prefix('[') {
                let (index, after) = after.split_once(']').ok_or_else(wrong)?;
                let name = index.strip_prefix('\'').and_then(|name| name.strip_suffix('\''));
                steps.push(match (index, name) {
                    ("*", _) => Step::Every,
                    (_, Some(name)) => Step::Member(name.to_owned()),
                    (index, None) => Step::Index(index.parse().map_err(|_| wrong())?),
                });
                rest = after;
                continue;
            }
            let after = rest.strip_prefix('.').unwrap_or(rest);
            let end = after.find(['.', '[']).unwrap_or(after.len());
            let (name, after) = after.split_at(end);
            match name {
                "" => return Err(wrong()),
                "*" => steps.push(Step::Every),
                name => steps.push(Step::Member(name.to_owned())),
            }
            rest = after;
        }
        Ok(Self(steps))
    }
}

/// Text with paths in braces; `{{` is a literal brace, `\t` a tab and `\n` a line break.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Template(Vec<Piece>);

#[derive(Debug, Clone, PartialEq, Eq)]
enum Piece {
    Text(String),
    At(Path),
}

impl Template {
    /// The text for one value; several values at a path are separated by commas.
    pub(crate) fn fill(&self, value: &Value) -> String {
        let piece = |piece: &Piece| match piece {
            Piece::Text(text) => text.clone(),
            Piece::At(path) => path.all(value).into_iter().map(plain).collect::<Vec<_>>().join(","),
        };
        self.0.iter().map(piece).collect()
    }
}

impl Template {
    /// The members with which the template's paths begin.
    pub(crate) fn roots(&self) -> impl Iterator<Item = &str> {
        self.0.iter().filter_map(|piece| match piece {
            Piece::Text(_) => None,
            Piece::At(path) => path.root(),
        })
    }
}

impl FromStr for Template {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let text = text.replace("\\t", "\t").replace("\\n", "\n");
        let (mut pieces, mut rest) = (Vec::new(), text.as_str());
        while let Some((before, after)) = rest.split_once('{') {
            pieces.push(Piece::Text(before.to_owned()));
            if let Some(after) = after.strip_prefix('{') {
                pieces.push(Piece::Text("{".to_owned()));
                rest = after;
                continue;
            }
            let (path, after) = after.split_once('}').ok_or("a brace is not closed; write {{ for a brace")?;
            pieces.push(Piece::At(path.parse()?));
            rest = after;
        }
        pieces.push(Piece::Text(rest.to_owned()));
        Ok(Self(pieces))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn paths_lead_to_values() {
        let value = json!([{"id": "a", "l": {"x.y": 1, "z": [1, 2]}}, {"id": "b"}]);
        let at = |path: &str| {
            let path: Path = path.parse().unwrap_or_else(|error| panic!("{error}"));
            json!(path.all(&value))
        };
        assert_eq!(at("$[*].id"), json!(["a", "b"]));
        assert_eq!(at("{[0].l['x.y']}"), json!([1]));
        assert_eq!(at("[0].l.z[1]"), json!([2]));
        assert_eq!(at("[*].l.z.*"), json!([1, 2]));
        assert_eq!(at("[7].id"), json!([]));
        assert_eq!(at("$"), json!([value]));
        for wrong in ["a..b", "[x]", "[0", "a."] {
            assert!(wrong.parse::<Path>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_path_that_leads_nowhere_is_told_from_an_empty_list() {
        let value = json!({"jobs": [{"id": "a", "labels": {}}, {"id": "b"}], "none": [], "null": null});
        let at = |path: &str| {
            let path: Path = path.parse().unwrap_or_else(|error| panic!("{error}"));
            match path.found(&value) {
                Ok(found) => json!(found).to_string(),
                Err(Missing { path, near }) => format!("{path} {}", near.unwrap_or_default()),
            }
        };
        assert_eq!(at("jobs[*].id"), r#"["a","b"]"#);
        assert_eq!(at("jobs[*].labels.*"), "[]");
        assert_eq!(at("none[*].id"), "[]");
        assert_eq!(at("null"), "[null]");
        assert_eq!(at("jbos[*].id"), "$.jbos jobs");
        assert_eq!(at("jobs[*].idd.x"), "$.jobs[*].idd id");
        assert_eq!(at("jobs[2]"), "$.jobs[2] ");
        assert_eq!(at("jobs['a.b']"), "$.jobs['a.b'] ");
        assert_eq!(at("null[*]"), "$.null[*] ");
    }

    #[test]
    fn templates_are_filled() {
        let template: Template = r"{{x} {id}\t{l.*}!".parse().expect("a template");
        assert_eq!(template.fill(&json!({"id": "a", "l": [1, "b", null]})), "{x} a\t1,b,!");
        assert!("{id".parse::<Template>().is_err());
    }
}
