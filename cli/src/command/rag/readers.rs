//! Rules on who finds which documents, as people write and read them.

use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use atlas_api::types::DocumentReaders;
use atlas_contract::yaml::{Budget, load_strictly};
use serde_json::Value;

use super::metadata;
use crate::failure::Failure;

/// Most bytes of a file with rules.
const FILE_BYTES_MAX: u64 = 1 << 20;

/// How a rule is written on the command line.
const RULE: &str = "principal=WHO,source=PREFIX,metadata.NAME=VALUE";

/// What a value of a rule begins with that stands for something known of the caller.
const CALLER: &str = "caller.";

/// What to write where an empty rule was meant.
const ALL: &str = "principal=* is everyone, and --no-readers drops the rules";

/// Options about who finds which documents.
#[derive(Debug, clap::Args)]
#[group(skip)]
pub(crate) struct ReaderOptions {
    /// A rule on who finds which documents, such as 'principal=ann,source=hr/,metadata.team=caller.team'; can be repeated. Without a rule, all find all.
    /// An empty rule is refused: 'principal=*' is everyone.
    #[arg(long, value_name = "RULE")]
    reader: Vec<String>,
    /// A file with a list of such rules, each with `principals`, `source` and `metadata`, in YAML or JSON.
    #[arg(long, value_name = "FILE")]
    readers: Option<PathBuf>,
    /// Drop the rules, so that all find all.
    #[arg(long, conflicts_with_all = ["reader", "readers"])]
    no_readers: bool,
}

impl ReaderOptions {
    /// The rules that the options give; none if they say nothing about them.
    pub(super) fn rules(&self) -> Result<Option<Vec<DocumentReaders>>, Failure> {
        let mut rules = match &self.readers {
            Some(path) => of_file(path)?,
            None => Vec::new(),
        };
        for text in &self.reader {
            let given = if text.is_empty() { "''" } else { text };
            let wrong = |why: String| Failure::usage(format!("--reader {given}: {why}"));
            rules.push(
                read(text).map_err(|why| {
                    wrong(why).with_next(format!("write: atlasctl rag create NAME --reader '{RULE}'"))
                })?,
            );
        }
        let is_said = self.no_readers || self.readers.is_some() || !self.reader.is_empty();
        Ok(is_said.then_some(rules))
    }
}

fn of_file(path: &Path) -> Result<Vec<DocumentReaders>, Failure> {
    let wrong = |why: String| Failure::usage(format!("could not read the rules in {}: {why}", path.display()));
    let mut text = Vec::new();
    let read = File::open(path).and_then(|file| file.take(FILE_BYTES_MAX + 1).read_to_end(&mut text));
    read.map_err(|error| wrong(error.to_string()))?;
    if text.len() as u64 > FILE_BYTES_MAX {
        return Err(wrong(format!("it has more than {FILE_BYTES_MAX} bytes")));
    }
    listed(&text).map_err(wrong)
}

/// The rules of a document, which is their list.
fn listed(text: &[u8]) -> Result<Vec<DocumentReaders>, String> {
    match load_strictly(text, Budget::default()).map_err(|error| error.to_string())? {
        Value::Array(rules) if rules.iter().any(says_nothing) => {
            Err(format!("a rule, or a part of one, is empty; {ALL}"))
        }
        rules @ Value::Array(_) => serde_json::from_value(rules).map_err(|error| error.to_string()),
        Value::Null => Err("it is empty; `[]` is no rule".to_owned()),
        _ => Err("it is no list of rules".to_owned()),
    }
}

/// Whether a rule, or a part of it, is empty: everyone or everything would fit it, which is seldom meant.
fn says_nothing(rule: &Value) -> bool {
    let is_empty = |value: &Value| match value {
        Value::Null => true,
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(members) => members.is_empty(),
        _ => false,
    };
    is_empty(rule) || rule.as_object().is_some_and(|members| members.values().any(is_empty))
}

/// Reads a rule. Values of metadata are JSON if they read like it, otherwise texts. What is empty is refused: it often comes from a variable that
/// is not set, and would open documents to more people.
fn read(text: &str) -> Result<DocumentReaders, String> {
    if text.is_empty() {
        return Err(format!("the rule is empty; {ALL}"));
    }
    let mut rule = DocumentReaders::default();
    for part in text.split(',') {
        if part.is_empty() {
            return Err(format!("a part of the rule is empty; {ALL}"));
        }
        let (name, value) = part.split_once('=').ok_or_else(|| format!("\"{part}\" is not KEY=VALUE"))?;
        match (name, name.strip_prefix("metadata.")) {
            ("principal" | "source", _) if value.is_empty() => return Err(format!("the {name} is empty; {ALL}")),
            ("principal", _) => rule.principals.push(value.to_owned()),
            ("source", _) if rule.source.is_empty() => value.clone_into(&mut rule.source),
            ("source", _) => return Err("a rule has one source; write another rule".to_owned()),
            (_, Some(member)) if !member.is_empty() => {
                let value = serde_json::from_str(value).unwrap_or_else(|_| value.into());
                if rule.metadata.insert(member.to_owned(), value).is_some() {
                    return Err(format!("a rule has one value of {member}; write another rule"));
                }
            }
            _ => return Err(format!("\"{name}\" is neither principal, source nor metadata.NAME")),
        }
    }
    Ok(rule)
}

/// Rules as `show` prints them, a line each.
pub(super) fn text(rules: &[DocumentReaders]) -> String {
    let line = |rule: &DocumentReaders| {
        let asks_who = |value: &Value| value.as_str().is_some_and(|text| text.starts_with(CALLER));
        let who = match rule.principals.is_empty() {
            false => rule.principals.join(", "),
            true if rule.metadata.values().any(asks_who) => "callers that match".to_owned(),
            true => "everyone".to_owned(),
        };
        let mut what = Vec::new();
        what.extend((!rule.source.is_empty()).then(|| format!("source {}", rule.source)));
        what.extend((!rule.metadata.is_empty()).then(|| metadata(&rule.metadata)));
        let what = if what.is_empty() { "all documents".to_owned() } else { what.join("  ") };
        format!("found by {who}: {what}\n")
    };
    rules.iter().map(line).collect()
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::*;

    fn check(rule: &str, expected: &Expect) {
        expected.assert_eq(&read(rule).map_or_else(|why| why, |rule| text(&[rule])));
    }

    #[test]
    fn rules_are_pairs() {
        check("", &expect!["the rule is empty; principal=* is everyone, and --no-readers drops the rules"]);
        for empty in [",", "principal=ann,", "principal=ann,,source=a"] {
            check(
                empty,
                &expect!["a part of the rule is empty; principal=* is everyone, and --no-readers drops the rules"],
            );
        }
        check("principal=*", &expect!["found by *: all documents\n"]);
        check(
            "principal=ann,source=",
            &expect!["the source is empty; principal=* is everyone, and --no-readers drops the rules"],
        );
        check(
            "principal=",
            &expect!["the principal is empty; principal=* is everyone, and --no-readers drops the rules"],
        );
        check("source=wiki/", &expect!["found by everyone: source wiki/\n"]);
        check(
            "principal=ann,principal=corp:*,source=hr/,metadata.team=caller.team,metadata.year=2026",
            &expect!["found by ann, corp:*: source hr/  team=caller.team, year=2026\n"],
        );
        check("metadata.a.b=x", &expect!["found by everyone: a.b=x\n"]);
        check("metadata.team=caller.team", &expect!["found by callers that match: team=caller.team\n"]);
        check("ann", &expect![[r#""ann" is not KEY=VALUE"#]]);
        check("principals=ann", &expect![[r#""principals" is neither principal, source nor metadata.NAME"#]]);
        check("metadata.=x", &expect![[r#""metadata." is neither principal, source nor metadata.NAME"#]]);
        check("source=a,source=b", &expect!["a rule has one source; write another rule"]);
        check("metadata.a=1,metadata.a=2", &expect!["a rule has one value of a; write another rule"]);
    }

    #[test]
    fn files_have_lists_of_rules() {
        let read = |text: &str| listed(text.as_bytes()).map_or_else(|why| why, |rules| super::text(&rules));
        let yaml = "- principals: [ann]\n  metadata: {team: caller.team, n: 1}\n- source: wiki/\n";
        expect![[r#"
            found by ann: team=caller.team, n=1
            found by everyone: source wiki/
        "#]]
        .assert_eq(&read(yaml));
        assert_eq!(read("[]"), "");
        for empty in [
            "[{}]",
            "- source: a\n-\n",
            "[{principals: [], source: a}]",
            "[{principals: [ann], source: ''}]",
            "[{metadata: {}}]",
        ] {
            assert!(
                read(empty).starts_with("a rule, or a part of one, is empty; principal=* is everyone"),
                "{}",
                read(empty)
            );
        }
        assert_eq!(read(r#"[{"source": "a"}]"#), "found by everyone: source a\n");
        assert_eq!(read(""), "it is empty; `[]` is no rule");
        assert_eq!(read("source: a"), "it is no list of rules");
        assert!(read("[{who: ann}]").contains("unknown field `who`"), "{}", read("[{who: ann}]"));
        assert!(read("[").contains("line 1"), "{}", read("["));
    }
}
