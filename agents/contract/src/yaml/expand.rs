//! Expands a tree with shared aliases to JSON, within a budget.

use std::collections::{BTreeMap, HashMap};

use serde_json::{Map, Value};

use super::compose::{Kind, Node, meaning};
use super::scalar::Scalar;
use super::{Budget, Document, Foreign, Position, YamlError};
use crate::python;
use crate::violation::escaped;

/// Converts the tree to JSON and counts its values and text.
pub(super) struct Expand {
    budget: Budget,
    nodes: usize,
    text_bytes: usize,
    pointer: String,
    foreign: Vec<(String, Foreign)>,
    /// None if nobody wants them.
    lines: Option<BTreeMap<String, usize>>,
    /// Whether values without a JSON value are refused.
    strict: bool,
}

impl Expand {
    pub(super) fn new(budget: Budget) -> Self {
        Self {
            budget,
            nodes: 0,
            text_bytes: 0,
            pointer: String::new(),
            foreign: Vec::new(),
            lines: None,
            strict: false,
        }
    }

    /// The same, which refuses infinities, bytes and sets: JSON has nothing for them, and null means something else.
    pub(super) fn strictly(self) -> Self {
        Self { strict: true, ..self }
    }

    /// The value, and the line of each of its values by JSON pointer. A member has the line of its key.
    pub(super) fn with_lines(mut self, root: &Node) -> Result<(Value, BTreeMap<String, usize>), YamlError> {
        self.lines = Some(BTreeMap::from([(String::new(), root.place.line)]));
        let value = self.value(root, 0)?;
        Ok((value, self.lines.unwrap_or_default()))
    }

    pub(super) fn document(mut self, root: &Node) -> Result<Document, YamlError> {
        let value = self.value(root, 0)?;
        Ok(Document { value, foreign: self.foreign })
    }

    /// Converts a node. The depth is checked here too, because aliases can make the expanded tree deeper than the text.
    fn value(&mut self, node: &Node, depth: usize) -> Result<Value, YamlError> {
        if depth > self.budget.depth_max {
            return Err(YamlError::Budget { what: "levels", max: self.budget.depth_max });
        }
        self.nodes += 1;
        if self.nodes > self.budget.nodes_max {
            return Err(YamlError::Budget { what: "values", max: self.budget.nodes_max });
        }
        match &node.kind {
            Kind::Scalar(scalar) => self.scalar(scalar, node.place),
            Kind::Set => self.foreign(Foreign::Tagged("!!set"), node.place),
            Kind::Sequence(items) => {
                let mut array = Vec::with_capacity(items.len());
                for (index, item) in items.iter().enumerate() {
                    array.push(self.child(&index.to_string(), item, item.place, depth)?);
                }
                Ok(Value::Array(array))
            }
            Kind::Mapping(pairs) => {
                let mut keys = Vec::with_capacity(pairs.len());
                for (key, _) in pairs {
                    let key = key_text(key)?;
                    self.text(key.len())?;
                    keys.push(key);
                }
                // Of duplicate keys, the last value wins and takes the position of the first; the others are not
                // expanded.
                let mut last: HashMap<&str, _> = keys.iter().map(String::as_str).zip(pairs).collect();
                let mut object = Map::new();
                for key in &keys {
                    if let Some((name, value)) = last.remove(key.as_str()) {
                        object.insert(key.clone(), self.child(key, value, name.place, depth)?);
                    }
                }
                Ok(Value::Object(object))
            }
        }
    }

    fn child(&mut self, name: &str, node: &Node, place: Position, depth: usize) -> Result<Value, YamlError> {
        let len = self.pointer.len();
        self.pointer.push('/');
        self.pointer.push_str(&escaped(name));
        if let Some(lines) = &mut self.lines {
            lines.insert(self.pointer.clone(), place.line);
            self.text(self.pointer.len())?;
        }
        let value = self.value(node, depth + 1);
        self.pointer.truncate(len);
        value
    }

    fn scalar(&mut self, scalar: &Scalar, place: Position) -> Result<Value, YamlError> {
        match scalar {
            Scalar::Json(value) => {
                self.text(value.as_str().map_or(0, str::len))?;
                Ok(value.clone())
            }
            Scalar::Foreign(foreign) => self.foreign(foreign.clone(), place),
            Scalar::Merge => Err(meaning(place, "a plain << is allowed only as a key; quote it")),
            Scalar::Default => Err(meaning(place, "a plain = is allowed only as a key; quote it")),
        }
    }

    fn foreign(&mut self, foreign: Foreign, place: Position) -> Result<Value, YamlError> {
        match &foreign {
            Foreign::NonFinite(found) if self.strict => {
                return Err(meaning(
                    place,
                    format!("{found} is no number that JSON has; write a number, or quote it as text"),
                ));
            }
            Foreign::Tagged(tag) if self.strict => {
                return Err(meaning(place, format!("JSON has no value for {tag}; write a text or a list")));
            }
            _ => {}
        }
        // The pointer is output too, so it counts: many short values below a long key would multiply it.
        self.text(self.pointer.len())?;
        let value = match &foreign {
            Foreign::Date(iso) => Value::from(iso.as_str()),
            Foreign::NonFinite(_) | Foreign::Tagged(_) => Value::Null,
        };
        self.foreign.push((self.pointer.clone(), foreign));
        Ok(value)
    }

    fn text(&mut self, bytes: usize) -> Result<(), YamlError> {
        self.text_bytes += bytes;
        if self.text_bytes > self.budget.text_bytes_max {
            return Err(YamlError::Budget { what: "bytes of text", max: self.budget.text_bytes_max });
        }
        Ok(())
    }
}

/// A key as JSON text: `1` and `true` become strings; lists and mappings cannot be keys.
fn key_text(key: &Node) -> Result<String, YamlError> {
    match &key.kind {
        Kind::Scalar(Scalar::Json(Value::String(text))) => Ok(text.clone()),
        // An integer is a float here only if it has more than 64 bits, and Python writes its digits.
        Kind::Scalar(Scalar::Json(Value::Number(number)))
            if number.is_f64() && number.to_string().contains(['.', 'e']) =>
        {
            Ok(python::float(number.as_f64().unwrap_or_default()))
        }
        Kind::Scalar(Scalar::Json(value)) => Ok(value.to_string()),
        Kind::Scalar(Scalar::Merge) => Ok("<<".to_owned()),
        Kind::Scalar(Scalar::Default) => Ok("=".to_owned()),
        Kind::Scalar(Scalar::Foreign(Foreign::Date(text) | Foreign::NonFinite(text))) => Ok(text.clone()),
        _ => Err(meaning(key.place, "only a scalar can be a key")),
    }
}
