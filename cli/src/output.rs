//! How results are printed: one renderer a form, behind one trait.

mod table;
mod yaml;

use std::borrow::Cow;

use serde_json::Value;

pub(crate) use table::Table;

/// A result: what the API said, and how people read it.
#[derive(Debug)]
pub(crate) struct Shown {
    /// As the API said it.
    pub(crate) value: Value,
    /// For people, with its line breaks.
    pub(crate) text: String,
    /// `job/job-4f3a09c1d27be685`, for pipes.
    pub(crate) names: Vec<String>,
}

/// A form of output.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Form {
    /// For people; may change between releases.
    Table,
    /// One document.
    Json,
    /// One object a line.
    Jsonl,
    /// As json.
    Yaml,
    /// Names alone, for pipes.
    Name,
}

impl Form {
    /// The result as text that ends in a line break, or is empty.
    pub(crate) fn render(self, shown: &Shown) -> String {
        let renderer: &dyn Render = match self {
            Self::Table => &Text,
            Self::Json => &Json,
            Self::Jsonl => &Jsonl,
            Self::Yaml => &Yaml,
            Self::Name => &Name,
        };
        renderer.render(shown)
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

trait Render {
    fn render(&self, shown: &Shown) -> String;
}

struct Text;
impl Render for Text {
    fn render(&self, shown: &Shown) -> String {
        shown.text.clone()
    }
}

struct Json;
impl Render for Json {
    fn render(&self, shown: &Shown) -> String {
        format!("{:#}\n", shown.value)
    }
}

struct Jsonl;
impl Render for Jsonl {
    fn render(&self, shown: &Shown) -> String {
        match &shown.value {
            Value::Array(items) => items.iter().map(|item| format!("{item}\n")).collect(),
            value => format!("{value}\n"),
        }
    }
}

struct Yaml;
impl Render for Yaml {
    fn render(&self, shown: &Shown) -> String {
        yaml::write(&shown.value)
    }
}

struct Name;
impl Render for Name {
    fn render(&self, shown: &Shown) -> String {
        shown.names.iter().map(|name| format!("{name}\n")).collect()
    }
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
        let forms = [Form::Table, Form::Json, Form::Jsonl, Form::Yaml, Form::Name];
        let all: String = forms.iter().map(|form| format!("--- {form:?}\n{}", form.render(&shown))).collect();
        expect![[r#"
            --- Table
            two
            --- Json
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
            --- Jsonl
            {"id":"a","k":1}
            {"id":"b","k":null}
            --- Yaml
            - id: a
              k: 1
            - id: b
              k: null
            --- Name
            x/a
            x/b
        "#]]
        .assert_eq(&all);
    }
}
