//! Words that a definition has without quotes and that YAML 1.1 takes for something other than text: a property `on` is called `true`,
//! and `enum: [NO, SE]` holds `false`. The dialect is that of Atlas for Python, so it stays; a schema that contradicts itself by it gets
//! a warning.

use serde_json::Value;

use crate::violation::member;
use crate::warning::Warning;
use crate::yaml::{self, Budget, MarkedDocument};

/// Most warnings of one definition.
const WARNINGS_MAX: usize = 20;

/// Keys of a schema whose members are schemas by names that people choose.
const NAMED: [&str; 6] =
    ["properties", "patternProperties", "$defs", "definitions", "dependentSchemas", "dependencies"];
/// Keys of a schema that hold a schema or a list of schemas.
const NESTED: [&str; 17] = [
    "items",
    "prefixItems",
    "additionalItems",
    "unevaluatedItems",
    "additionalProperties",
    "unevaluatedProperties",
    "propertyNames",
    "contains",
    "allOf",
    "anyOf",
    "oneOf",
    "not",
    "if",
    "then",
    "else",
    "contentSchema",
    "extends",
];

/// The warnings about the schemas of a definition under `key` (`agent`, `skill`). A text that is no YAML has none.
pub fn warnings(text: &[u8], key: &str) -> Vec<Warning> {
    let budget = Budget::default();
    let (Ok(value), Ok(texts)) = (yaml::load(text, budget), yaml::load_texts(text, budget)) else { return Vec::new() };
    let root = if value.get(key).is_some() { format!("/{key}") } else { String::new() };
    let mut found = Found { texts: &texts, warnings: Vec::new() };
    for side in ["input", "output"] {
        let at = format!("{root}/{side}/schema");
        if let (Some(schema), Some(text)) = (value.pointer(&at), texts.value.pointer(&at)) {
            // Warnings name the place in the document as it is read.
            found.schema(schema, text, &Place { shown: format!("/{key}/{side}/schema"), written: at });
        }
    }
    found.warnings
}

/// Where a value is: as the document is read, and as it is written.
struct Place {
    shown: String,
    written: String,
}

impl Place {
    fn child(&self, shown: &str, written: &str) -> Self {
        Self { shown: member(&self.shown, shown), written: member(&self.written, written) }
    }
}

struct Found<'a> {
    texts: &'a MarkedDocument,
    warnings: Vec<Warning>,
}

impl Found<'_> {
    fn schema(&mut self, schema: &Value, text: &Value, place: &Place) {
        let (Some(members), Some(texts)) = (schema.as_object(), text.as_object()) else { return };
        for (name, value) in members {
            let Some(text) = texts.get(name) else { continue };
            let at = place.child(name, name);
            match name.as_str() {
                name if NAMED.contains(&name) => self.named(value, text, &at),
                "enum" | "examples" => self.values(value, text, schema.get("type"), &at),
                // Null is how people write that there is no default.
                "default" if value.is_null() => {}
                "default" | "const" | "example" => self.value(value, text, schema.get("type"), false, &at),
                name if NESTED.contains(&name) => match (value, text) {
                    (Value::Array(items), Value::Array(texts)) => {
                        for (index, (item, text)) in items.iter().zip(texts).enumerate() {
                            let index = index.to_string();
                            self.schema(item, text, &at.child(&index, &index));
                        }
                    }
                    _ => self.schema(value, text, &at),
                },
                _ => {}
            }
        }
    }

    /// Schemas by names.
    fn named(&mut self, value: &Value, text: &Value, place: &Place) {
        let (Some(members), Some(texts)) = (value.as_object(), text.as_object()) else { return };
        // Where two words mean the same key, such as `on` and `yes`, there is no telling which was kept.
        if members.len() != texts.len() {
            let message = format!("{}two names are the same in YAML 1.1, and the last one counts", self.line(place));
            return self.add(place, message, "write names such as \"on\" and \"1\" in quotes");
        }
        for ((name, schema), (word, text)) in members.iter().zip(texts) {
            let at = place.child(name, word);
            if name != word {
                let message =
                    format!("{}{word} is {} in YAML 1.1, so the name is \"{name}\"", self.line(&at), meaning(name));
                self.add(&at, message, &format!("write \"{word}\" in quotes"));
            }
            self.schema(schema, text, &at);
        }
    }

    fn values(&mut self, value: &Value, text: &Value, kind: Option<&Value>, place: &Place) {
        let (Some(values), Some(texts)) = (value.as_array(), text.as_array()) else { return };
        let among_texts = values.iter().any(Value::is_string);
        for (index, (value, text)) in values.iter().zip(texts).enumerate() {
            let index = index.to_string();
            self.value(value, text, kind, among_texts, &place.child(&index, &index));
        }
    }

    /// A value that does not have the type that its schema declares; without a type, one among texts that was written as a word.
    fn value(&mut self, value: &Value, text: &Value, kind: Option<&Value>, among_texts: bool, place: &Place) {
        let word = text.as_str().filter(|_| !value.is_string());
        let read = value.to_string();
        let declared = kind.filter(|kind| kind.is_string() || kind.is_array());
        let (why, wants_text) = match declared {
            Some(kind) if !is_of(value, kind) => {
                let texts = of(kind).any(|kind| kind == "string");
                (format!("the type is {}", of(kind).collect::<Vec<_>>().join(" or ")), texts)
            }
            None if among_texts && word.is_some_and(|word| word != read) => {
                ("the other values are text".to_owned(), true)
            }
            _ => return,
        };
        let told = match word {
            Some(word) if word != read => format!("{word} is {} in YAML 1.1", meaning(&read)),
            _ => format!("the value is {value}"),
        };
        let hint = match word {
            Some(word) if wants_text && !word.is_empty() => format!("write \"{word}\" in quotes"),
            _ => "write a value of that type, or change the type".to_owned(),
        };
        let message = format!("{}{told}, and {why}", self.line(place));
        self.add(place, message, &hint);
    }

    fn line(&self, place: &Place) -> String {
        self.texts.lines.get(&place.written).map(|line| format!("line {line}: ")).unwrap_or_default()
    }

    fn add(&mut self, place: &Place, message: String, hint: &str) {
        if self.warnings.len() < WARNINGS_MAX {
            self.warnings.push(Warning::new(place.shown.clone(), message).with_hint(hint));
        }
    }
}

/// What JSON a word became, in words.
fn meaning(json: &str) -> String {
    match json {
        "null" => "null".to_owned(),
        "true" | "false" => format!("the boolean {json}"),
        _ if json.starts_with(|c: char| c.is_ascii_digit() || c == '-') && !json.contains('T') => {
            format!("the number {json}")
        }
        _ => json.to_owned(),
    }
}

/// The types that a schema declares.
fn of(kind: &Value) -> impl Iterator<Item = &str> {
    let many = kind.as_array().into_iter().flatten().filter_map(Value::as_str);
    kind.as_str().into_iter().chain(many)
}

fn is_of(value: &Value, kind: &Value) -> bool {
    of(kind).any(|kind| match kind {
        "string" => value.is_string(),
        "boolean" => value.is_boolean(),
        "null" => value.is_null(),
        "number" => value.is_number(),
        "integer" => crate::schema::is_integer(value),
        "array" => value.is_array(),
        "object" => value.is_object(),
        // An unknown type is refused elsewhere.
        _ => true,
    })
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::warnings;

    fn check(schema: &str, expected: &Expect) {
        let indented: String = schema.lines().map(|line| format!("      {line}\n")).collect();
        let text = format!("agent:\n  name: a\n  input:\n    schema:\n{indented}");
        let told: String = warnings(text.as_bytes(), "agent").iter().map(|warning| format!("{warning}\n")).collect();
        expected.assert_eq(&told);
    }

    #[test]
    fn names_that_are_no_text() {
        check(
            "properties:\n  on: {type: string}\n  1:30: {}\n  \"off\": {}\n  1: {}\n  plain: {properties: {NO: {}}}",
            &expect![[r#"
                /agent/input/schema/properties/true: line 6: on is the boolean true in YAML 1.1, so the name is "true"; write "on" in quotes
                /agent/input/schema/properties/90: line 7: 1:30 is the number 90 in YAML 1.1, so the name is "90"; write "1:30" in quotes
                /agent/input/schema/properties/plain/properties/false: line 10: NO is the boolean false in YAML 1.1, so the name is "false"; write "NO" in quotes
            "#]],
        );
        check(
            "properties: {on: {}, yes: {}}",
            &expect![[r#"
            /agent/input/schema/properties: line 5: two names are the same in YAML 1.1, and the last one counts; write names such as "on" and "1" in quotes
        "#]],
        );
    }

    #[test]
    fn values_that_are_not_of_the_type() {
        check(
            "properties:\n  country: {type: string, enum: [NO, SE, \"ON\"]}\n  code: {enum: [012, a]}\n  day: {type: string, default: 2024-01-01}\n  at: {type: [string, 'null'], default: 1:30}\n  n: {type: integer, default: 1.5, examples: [1.0, x]}\n  flag: {type: boolean, default: yes}\n  none: {type: string, default: null}\n  list: {items: [{const: off, type: string}]}",
            &expect![[r#"
                /agent/input/schema/properties/country/enum/0: line 6: NO is the boolean false in YAML 1.1, and the type is string; write "NO" in quotes
                /agent/input/schema/properties/code/enum/0: line 7: 012 is the number 10 in YAML 1.1, and the other values are text; write "012" in quotes
                /agent/input/schema/properties/at/default: line 9: 1:30 is the number 90 in YAML 1.1, and the type is string or null; write "1:30" in quotes
                /agent/input/schema/properties/n/default: line 10: the value is 1.5, and the type is integer; write a value of that type, or change the type
                /agent/input/schema/properties/n/examples/1: line 10: the value is "x", and the type is integer; write a value of that type, or change the type
                /agent/input/schema/properties/list/items/0/const: line 13: off is the boolean false in YAML 1.1, and the type is string; write "off" in quotes
            "#]],
        );
    }

    #[test]
    fn sound_definitions_and_other_texts_have_no_warnings() {
        check("type: object\nproperties: {\"on\": {enum: [a, b]}, n: {enum: [1, 2, true]}}", &expect![""]);
        assert_eq!(warnings(b"a: [", "agent"), []);
        assert_eq!(warnings(b"name: a\ninput: {schema: {properties: {on: {}}}}", "agent").len(), 1);
    }
}
