//! How results are printed: one renderer a form, behind one function.

mod list;
mod path;
mod table;
mod yaml;

use std::borrow::Cow;
use std::str::FromStr;

use serde_json::Value;

use crate::failure::Failure;

pub(crate) use list::{Column, List, ListOptions, column, wide};
pub(crate) use path::{Path, Template};
pub(crate) use table::Table;
pub(crate) use yaml::write as yaml;

/// A result: what the API said, and how people read it.
#[derive(Debug, Default)]
pub(crate) struct Shown {
    /// As the API said it.
    pub(crate) value: Value,
    /// For people, with its line breaks.
    pub(crate) text: String,
    /// `job/job-4f3a09c1d27be685`, for pipes.
    pub(crate) names: Vec<String>,
}

/// A form of output.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Form {
    /// For people; may change between releases.
    Table,
    /// As table, with more columns.
    Wide,
    /// One document.
    Json,
    /// One object a line.
    Jsonl,
    /// As json.
    Yaml,
    /// Names alone, for pipes.
    Name,
    /// Lists alone: a head, then a line an object.
    Csv,
    /// A line an object, with its members in braces.
    Template(Template),
    /// The values at a path, a line each.
    Jsonpath(Path),
}

/// What `-o` takes, for `--help`.
pub(crate) const FORMS: &str = "table|wide|json|jsonl|yaml|name|csv|template=T|jsonpath=P";

impl FromStr for Form {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Ok(match text.split_once('=') {
            Some(("template", template)) => Self::Template(template.parse()?),
            Some(("jsonpath", path)) => Self::Jsonpath(path.parse()?),
            _ => match text {
                "table" => Self::Table,
                "wide" => Self::Wide,
                "json" => Self::Json,
                "jsonl" => Self::Jsonl,
                "yaml" => Self::Yaml,
                "name" => Self::Name,
                "csv" => Self::Csv,
                _ => return Err(format!("one of {FORMS}")),
            },
        })
    }
}

impl Form {
    /// Whether people read it.
    pub(crate) fn is_text(&self) -> bool {
        matches!(self, Self::Table | Self::Wide)
    }

    /// Whether a program reads it as data, so that errors are data as well.
    pub(crate) fn is_data(&self) -> bool {
        matches!(self, Self::Json | Self::Jsonl | Self::Yaml)
    }

    /// The result as text that ends in a line break, or is empty.
    pub(crate) fn render(&self, shown: &Shown) -> Result<String, Failure> {
        let each = || match &shown.value {
            Value::Array(items) => items.iter().collect(),
            value => vec![value],
        };
        Ok(match self {
            Self::Table | Self::Wide => shown.text.clone(),
            Self::Json => format!("{:#}\n", shown.value),
            Self::Jsonl => each().into_iter().map(|item| format!("{item}\n")).collect(),
            Self::Yaml => yaml(&shown.value),
            Self::Name => shown.names.iter().map(|name| format!("{name}\n")).collect(),
            Self::Csv => return Err(Failure::usage("-o csv is for lists").with_next("try: -o json")),
            Self::Template(template) => each().into_iter().map(|item| template.fill(item) + "\n").collect(),
            Self::Jsonpath(path) => path.all(&shown.value).into_iter().map(|found| plain(found) + "\n").collect(),
        })
    }
}

/// A value as a line of text: a string without its quotes.
fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Null => String::new(),
        value => value.to_string(),
    }
}

/// The text as a terminal may see it: what an agent or a server wrote must not move the cursor or set colours and titles.
pub(crate) fn visible(text: &str) -> Cow<'_, str> {
    let steers = |c: char| c.is_control() && c != '\n' && c != '\t';
    if !text.contains(steers) {
        return Cow::Borrowed(text);
    }
    let shown = |c: char| if steers(c) { format!("\\x{:02x}", u32::from(c)) } else { c.to_string() };
    Cow::Owned(text.chars().map(shown).collect())
}

#[cfg(test)]
mod tests {
    use expect_test::expect;
    use serde_json::json;

    use super::*;

    #[test]
    fn what_steers_a_terminal_is_shown() {
        assert_eq!(visible("a\tb\nc"), "a\tb\nc");
        assert_eq!(visible("\u{1b}]0;owned\u{7}\u{9b}31m\r"), r"\x1b]0;owned\x07\x9b31m\x0d");
    }

    #[test]
    fn every_form_has_its_renderer() {
        let shown = Shown {
            value: json!([{"id": "a", "k": 1}, {"id": "b", "k": null}]),
            text: "two\n".to_owned(),
            names: vec!["x/a".to_owned(), "x/b".to_owned()],
        };
        let forms = ["table", "json", "jsonl", "yaml", "name", "template={id}: {k}", "jsonpath=$[*].id"];
        let form = |form: &str| form.parse::<Form>().expect("a form").render(&shown).expect("rendered");
        let all: String = forms.iter().map(|name| format!("--- {name}\n{}", form(name))).collect();
        expect![[r#"
            --- table
            two
            --- json
            [
              {
                "id": "a",
                "k": 1
              },
              {
                "id": "b",
                "k": null
              }
            ]
            --- jsonl
            {"id":"a","k":1}
            {"id":"b","k":null}
            --- yaml
            - id: a
              k: 1
            - id: b
              k: null
            --- name
            x/a
            x/b
            --- template={id}: {k}
            a: 1
            b: 
            --- jsonpath=$[*].id
            a
            b
        "#]]
        .assert_eq(&all);
        assert!("xml".parse::<Form>().is_err());
        assert!(Form::Csv.render(&shown).is_err());
    }
}
