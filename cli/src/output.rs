//! Output formats: one renderer per format, behind one function.

mod list;
mod look;
pub(crate) mod members;
mod path;
pub(crate) mod screen;
mod table;
mod yaml;

use std::borrow::Cow;
use std::str::FromStr;

use atlas_contract::nearest;
use serde_json::Value;

use crate::exit::Exit;
use crate::failure::Failure;
use crate::words;

pub(crate) use list::{Column, List, ListOptions, column, rare, wide};
pub(crate) use look::{Look, TimeForm};
pub(crate) use members::Members;
pub(crate) use path::{Path, Template};
pub(crate) use table::Table;
pub(crate) use yaml::write as yaml;

/// A result: the API's answer, and its text for users.
#[derive(Debug, Default)]
pub(crate) struct Shown {
    /// The API's answer.
    pub(crate) value: Value,
    /// The text for users, with its line breaks.
    pub(crate) text: String,
    /// Names for pipes, such as `job/job-4f3a09c1d27be685`.
    pub(crate) names: Vec<String>,
}

/// An output format.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Form {
    /// For users; may change between releases.
    Table,
    /// Like table, with more columns.
    Wide,
    /// One document.
    Json,
    /// One object per line.
    Jsonl,
    /// One document, like json.
    Yaml,
    /// Only names, for pipes.
    Name,
    /// Only for lists: a heading, then one line per object.
    Csv,
    /// One line per object, from a template with its members in braces.
    Template(Template),
    /// The values at a path, one per line.
    Jsonpath(Path),
}

/// The values of `-o`, for `--help`.
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
                text => {
                    let named = text.split(['=', ' ']).next().unwrap_or_default();
                    let known = FORMS.split('|').map(|form| form.split('=').next().unwrap_or(form));
                    return Err(words::meant(named, known));
                }
            },
        })
    }
}

impl Form {
    /// Whether the format is for users.
    pub(crate) fn is_text(&self) -> bool {
        matches!(self, Self::Table | Self::Wide)
    }

    /// Whether the format is data for programs; errors are then printed as data too.
    pub(crate) fn is_data(&self) -> bool {
        matches!(self, Self::Json | Self::Jsonl | Self::Yaml)
    }

    /// The result as text, which is empty or ends in a line break.
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
            Self::Csv => return Err(no_csv()),
            Self::Template(template) => {
                let has = |name: &str| each().iter().any(|item| path::member(item, name).is_some());
                if let Some(name) = template.roots().find(|name| !each().is_empty() && !has(name)) {
                    let names = each().into_iter().filter_map(Value::as_object).flat_map(|members| members.keys());
                    return Err(missing(&format!("$.{name}"), nearest(name, names.map(String::as_str))));
                }
                each().into_iter().map(|item| template.fill(item) + "\n").collect()
            }
            Self::Jsonpath(path) => {
                let found = path.found(&shown.value);
                let found = found.map_err(|absent| missing(&absent.path, absent.near.as_deref()))?;
                found.into_iter().map(|found| plain(found) + "\n").collect()
            }
        })
    }

    /// Refuses a format that is only for lists; called before the command changes anything.
    pub(crate) fn fits_one(&self) -> Result<(), Failure> {
        if *self == Self::Csv { Err(no_csv()) } else { Ok(()) }
    }

    /// Like [`Self::fits_one`]; also refuses a format that names none of these members.
    pub(crate) fn fits(&self, members: Members) -> Result<(), Failure> {
        self.fits_one()?;
        let roots: Vec<&str> = match self {
            Self::Template(template) => template.roots().collect(),
            Self::Jsonpath(path) => path.root().into_iter().collect(),
            _ => Vec::new(),
        };
        let known = |name: &str| members.has(name) || path::alias(name).is_some_and(|name| members.has(name));
        match roots.into_iter().find(|name| !known(name)) {
            Some(name) => Err(unknown(name, "to print", members.names().into_iter())),
            None => Ok(()),
        }
    }
}

fn no_csv() -> Failure {
    Failure::usage("-o csv is for lists").with_next("try: -o json")
}

/// The format names a path that the result does not have.
fn missing(path: &str, near: Option<&str>) -> Failure {
    let failure = Failure::new("E0127", Exit::Short, format!("the result has no value at {path}"));
    failure.with_next(match near {
        Some(near) => format!("did you mean {near}?"),
        None => "show the whole result: -o json".to_owned(),
    })
}

/// Refuses an unknown name; suggests a similar one, or lists all known names.
fn unknown<'a>(name: &str, what_for: &str, known: impl Iterator<Item = &'a str> + Clone) -> Failure {
    let failure = Failure::usage(format!("no object has \"{name}\" {what_for}"));
    failure.with_next(words::meant(name, known))
}

/// A value as a line of text: a string without its quotes.
fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Null => String::new(),
        value => value.to_string(),
    }
}

/// Escapes control characters, and those that change the direction of text: text from an agent or a server must not move the terminal's
/// cursor, set colours and titles, or show characters in another order than they are in.
pub(crate) fn visible(text: &str) -> Cow<'_, str> {
    let turns = |c: char| matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    let steers = |c: char| (c.is_control() && c != '\n' && c != '\t') || turns(c);
    if !text.contains(steers) {
        return Cow::Borrowed(text);
    }
    let shown = |c: char| match c {
        c if turns(c) => c.escape_unicode().to_string(),
        c if steers(c) => format!("\\x{:02x}", u32::from(c)),
        c => c.to_string(),
    };
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
        assert_eq!(visible("paid\u{202e}elif\u{2066} שלום"), r"paid\u{202e}elif\u{2066} שלום");
    }

    #[test]
    fn a_form_that_cannot_print_is_refused_before_anything_is_done() {
        let told = |form: &str| match form.parse::<Form>().expect("a form").fits(members::JOB) {
            Ok(()) => "fits".to_owned(),
            Err(failure) => failure.to_string(),
        };
        for form in
            ["table", "jsonpath=output_data.anything", "jsonpath=$", "template={id} {labels.x}", "template={agent}"]
        {
            assert_eq!(told(form), "fits", "{form}");
        }
        assert_eq!(told("csv"), "error: -o csv is for lists\ntry: -o json");
        let slip = "error: no object has \"outptu_data\" to print\ndid you mean output_data?";
        assert_eq!(told("jsonpath=outptu_data.x"), slip);
        assert_eq!(told("template={id} {outptu_data}"), slip);
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
        for (path, told) in [
            ("jsonpath=$[*].idd", "$[*].idd\ndid you mean id?"),
            ("jsonpath=$[7]", "$[7]\nshow the whole result: -o json"),
            ("template={kk}", "$.kk\ndid you mean k?"),
        ] {
            let failure = path.parse::<Form>().expect("a form").render(&shown).expect_err("nothing is there");
            assert_eq!(failure.to_string(), format!("error[E0127]: the result has no value at {told}"));
        }
        assert_eq!("jsn".parse::<Form>(), Err("did you mean json?".to_owned()));
        assert_eq!("tempalte={id}".parse::<Form>(), Err("did you mean template?".to_owned()));
        assert_eq!(
            "xml".parse::<Form>(),
            Err("one of table, wide, json, jsonl, yaml, name, csv, template, jsonpath".to_owned())
        );
        let job = Shown { value: json!({"agent_name": "hello", "output_data": 5}), ..Shown::default() };
        let of_job = |form: &str| form.parse::<Form>().expect("a form").render(&job).expect("rendered");
        assert_eq!(of_job("template={agent} {output}"), "hello 5\n");
        assert_eq!(of_job("jsonpath=output"), "5\n");
        assert!(Form::Csv.render(&shown).is_err());
    }
}
