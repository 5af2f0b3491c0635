//! The input of a job: a JSON argument, `--input J|@F|-`, or `key=value` arguments that build the object.

use std::io::{ErrorKind, Read};
use std::path::Path;

use atlas_contract::range;
use serde_json::{Map, Value};

use crate::exit::Exit;
use crate::failure::Failure;
use crate::words::could_not;

/// Maximum size of an input from a file or stdin.
const INPUT_BYTES_MAX: u64 = 64 << 20;

/// The input as the command line gives it.
#[derive(Debug, PartialEq)]
pub(crate) enum Source {
    Whole(Value),
    /// Pairs of keys and values, whose types the agent's contract defines.
    Pairs(Vec<(String, String)>),
}

/// Reads the input from the words after the agent's name and from `--input`.
pub(crate) fn source(words: &[String], input: Option<&str>) -> Result<Source, Failure> {
    match (words, input) {
        ([], None) => Ok(Source::Whole(Value::Object(Map::new()))),
        ([], Some(input)) => Ok(Source::Whole(whole(input, "--input")?)),
        (_, Some(_)) => Err(Failure::usage("the input was given twice: as --input and as arguments after the agent")),
        ([word], None) if word.trim_start().starts_with('{') => Ok(Source::Whole(json(word, "the argument")?)),
        (words, None) => words.iter().map(|word| pair(word)).collect::<Result<_, _>>().map(Source::Pairs),
    }
}

/// Whether a text is `key=value`, and neither JSON nor `@FILE`.
pub(crate) fn is_pair(text: &str) -> bool {
    let key = text.split_once('=').map_or("", |(key, _)| key);
    !key.is_empty() && !key.starts_with(['{', '[', '"', '@', '-'])
}

/// Builds the object; each value gets the type of its property in the contract's schema.
pub(crate) fn object(pairs: Vec<(String, String)>, schema: &Value) -> Result<Value, Failure> {
    let mut members = Map::new();
    for (key, text) in pairs {
        let text = match text.strip_prefix('@') {
            Some(path) => read_file(Path::new(path))?,
            None => text,
        };
        let wanted = &schema["properties"][&key]["type"];
        let value = typed(text, wanted);
        members.insert(key, value);
    }
    Ok(Value::Object(members))
}

/// Converts a text to the type in the schema. The value stays a string if the schema has no type or the text does not
/// fit the type; the contract then refuses it with an exact message.
fn typed(text: String, wanted: &Value) -> Value {
    let wants = |name: &str| match wanted {
        Value::String(one) => one == name,
        Value::Array(some) => some.iter().any(|one| one == name),
        _ => false,
    };
    if wants("string") || !["integer", "number", "boolean", "array", "object", "null"].iter().any(|name| wants(name)) {
        return Value::String(text);
    }
    serde_json::from_str(&text).unwrap_or(Value::String(text))
}

/// A JSON value from the argument itself, from `@FILE` or from stdin (`-`).
pub(crate) fn whole(input: &str, option: &str) -> Result<Value, Failure> {
    match input.strip_prefix('@') {
        Some(path) => json(&read_file(Path::new(path))?, &format!("\"{path}\"")),
        None if input == "-" => json(&read_stdin()?, "stdin"),
        None => json(input, option),
    }
}

/// A text from the argument itself, from `@FILE` or from stdin (`-`), without the line end after it.
pub(crate) fn text(input: &str) -> Result<String, Failure> {
    let read = match input.strip_prefix('@') {
        Some(path) => read_file(Path::new(path))?,
        None if input == "-" => read_stdin()?,
        None => return Ok(input.to_owned()),
    };
    Ok(read.strip_suffix('\n').unwrap_or(&read).to_owned())
}

/// Like [`text`], where people may leave out the quotes around a text of several words.
pub(crate) fn words(first: &str, more: &[String]) -> Result<String, Failure> {
    if more.is_empty() { text(first) } else { Ok(joined(first, more)) }
}

/// Words with spaces between them.
pub(crate) fn joined(first: &str, more: &[String]) -> String {
    std::iter::once(first).chain(more.iter().map(String::as_str)).collect::<Vec<_>>().join(" ")
}

fn pair(word: &str) -> Result<(String, String), Failure> {
    let found = word.split_once('=').filter(|(key, _)| !key.is_empty());
    let (key, value) = found.ok_or_else(|| {
        Failure::usage(format!("\"{word}\" is neither key=value nor a JSON object"))
            .with_next("write: atlasctl run AGENT key=value   or: atlasctl run AGENT '{\"key\": \"value\"}'")
    })?;
    Ok((key.to_owned(), value.to_owned()))
}

fn json(text: &str, what: &str) -> Result<Value, Failure> {
    serde_json::from_str(text).map_err(|error| match range::out_of_range(text) {
        Some(place) => Failure::usage(format!("{what}: the number at {place:?} is beyond the range of numbers")),
        None => Failure::usage(format!("{what} is not JSON: {error}")),
    })
}

pub(crate) fn read_file(path: &Path) -> Result<String, Failure> {
    let file = std::fs::File::open(path).map_err(|error| could_not("read", path, &error))?;
    bounded(file, path)
}

pub(crate) fn read_stdin() -> Result<String, Failure> {
    bounded(std::io::stdin().lock(), Path::new("stdin"))
}

fn bounded(reader: impl Read, path: &Path) -> Result<String, Failure> {
    atlas_env::read_text_from(reader, INPUT_BYTES_MAX).map_err(|error| {
        if error.kind() != ErrorKind::FileTooLarge {
            return could_not("read", path, &error);
        }
        let message = format!("\"{}\" is larger than {INPUT_BYTES_MAX} bytes", path.display());
        Failure::new("E3006", Exit::Invalid, message).with_next("what it means: atlasctl explain-error E3006")
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn built(words: &[&str], schema: &Value) -> Value {
        let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
        match source(&words, None).expect("a source") {
            Source::Whole(value) => value,
            Source::Pairs(pairs) => object(pairs, schema).expect("an object"),
        }
    }

    #[test]
    fn words_build_what_the_schema_wants() {
        let schema = json!({"properties": {
            "n": {"type": "integer"}, "s": {"type": "string"}, "l": {"type": ["array", "null"]}, "either": {"type": ["string", "number"]},
        }});
        let value = built(&["n=5", "s=5", "l=[1]", "either=7", "other=1", "empty=", "eq=a=b"], &schema);
        let wanted = json!({"n": 5, "s": "5", "l": [1], "either": "7", "other": "1", "empty": "", "eq": "a=b"});
        assert_eq!(value, wanted);
        assert_eq!(built(&["n=five"], &schema), json!({"n": "five"}));
        assert_eq!(built(&[r#"{"a": 1}"#], &schema), json!({"a": 1}));
        assert_eq!(built(&[], &schema), json!({}));
    }

    #[test]
    fn files_are_read_where_an_at_sign_says_so() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("in.json");
        std::fs::write(&path, r#"{"a": "b"}"#).expect("written");
        let path = path.to_str().expect("UTF-8");
        assert_eq!(source(&[], Some(&format!("@{path}"))), Ok(Source::Whole(json!({"a": "b"}))));
        assert_eq!(built(&[&format!("text=@{path}")], &Value::Null), json!({"text": r#"{"a": "b"}"#}));
    }

    #[test]
    fn an_input_that_no_controller_takes_is_refused_as_they_do() {
        let failure = bounded(std::io::repeat(b' '), Path::new("stdin")).expect_err("endless");
        assert_eq!((failure.code.as_deref(), failure.exit), (Some("E3006"), Exit::Invalid));
    }

    #[test]
    fn wrong_use_is_said_plainly() {
        let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
        let message = |words: &[String], input| source(words, input).expect_err("wrong").message;
        assert_eq!(message(&words(&["hello"]), None), "\"hello\" is neither key=value nor a JSON object");
        assert!(message(&words(&["a=b"]), Some("{}")).contains("twice"));
        assert!(message(&[], Some("{")).starts_with("--input is not JSON"));
        assert!(message(&[], Some("@/no/such/file")).starts_with("could not read"));
    }
}
