//! Unknown names in the query and the body of a request.
//!
//! On the paths of Atlas for Python they are ignored, as it ignores them. On other paths they are refused: a misspelt
//! filter must not get the answer to another question.

use std::collections::{BTreeMap, BTreeSet};

use serde::de::IgnoredAny;
use serde_json::Value;

use super::document::schemas;
use super::{Body, Kind, Operation, ParameterLocation};
use crate::http::answer::Problem;
use crate::http::query::{LIMIT_MAX, Query};

impl Operation {
    /// Refuses a query with a name, or a word, that this operation does not know.
    pub(crate) fn check_query(&self, query: &Query<'_>) -> Result<(), Problem> {
        if self.lenient {
            return Ok(());
        }
        let known = || self.parameters().filter(|parameter| parameter.place == ParameterLocation::Query);
        for (name, value) in query.members() {
            let Some(parameter) = known().find(|parameter| parameter.name == name) else {
                let names: Vec<&str> = known().map(|parameter| parameter.name).collect();
                return Err(unknown("parameter", &name, &names));
            };
            if let Kind::Word(words) = parameter.kind
                && !words.contains(&&*value)
            {
                return Err(unknown(&format!("value of \"{name}\""), &value, words));
            }
            let within = |value: &str| value.parse().is_ok_and(|limit: u64| (1..=LIMIT_MAX).contains(&limit));
            if matches!(parameter.kind, Kind::Limit) && !value.is_empty() && !within(&value) {
                return Err(Problem::malformed(format!("'{name}' must be a whole number from 1 to {LIMIT_MAX}")));
            }
        }
        Ok(())
    }

    /// Refuses a JSON body with a member that this operation does not know.
    pub(crate) fn check_body(&self, body: &[u8]) -> Result<(), Problem> {
        match self.body {
            Body::Json(schema) | Body::MaybeJson(schema) if !self.lenient => check_members(schema, body),
            _ => Ok(()),
        }
    }
}

/// Refuses an object with a member that a schema of the interface does not have. A value that is not an object is refused by its reader.
pub(crate) fn check_members(schema: &str, object: &[u8]) -> Result<(), Problem> {
    let Ok(members) = serde_json::from_slice::<BTreeMap<String, IgnoredAny>>(object) else { return Ok(()) };
    let Some(schema) = schemas().get(schema) else { return Ok(()) };
    // A request of several forms has the members of all; its reader refuses a mixture.
    let forms = schema["oneOf"].as_array().map_or(std::slice::from_ref(schema), Vec::as_slice);
    let known: BTreeSet<&str> = forms
        .iter()
        .filter_map(|form| form["properties"].as_object())
        .flatten()
        .map(|(name, _)| name.as_str())
        .collect();
    if known.is_empty() {
        return Ok(());
    }
    match members.keys().find(|name| !known.contains(name.as_str())) {
        Some(name) => Err(unknown("member", name, &known.into_iter().collect::<Vec<_>>())),
        None => Ok(()),
    }
}

fn unknown(what: &str, name: &str, known: &[&str]) -> Problem {
    let shown = Value::from(name.chars().take(64).collect::<String>());
    let meant = match atlas_contract::nearest(name, known.iter().copied()) {
        Some(meant) => format!("; did you mean \"{meant}\"?"),
        None if known.is_empty() => String::from("; none are known here"),
        None => format!("; known here: {}", known.join(", ")),
    };
    Problem::malformed(format!("unknown {what} {shown}{meant}"))
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};
    use http::Method;

    use super::super::find;
    use super::*;

    fn check(path: &str, query: &str, body: &str, expected: &Expect) {
        let method = if body.is_empty() { Method::GET } else { Method::POST };
        let operation = find(path, &method).expect("an operation");
        let checked =
            operation.check_query(&Query::new(Some(query))).and_then(|()| operation.check_body(body.as_bytes()));
        let said = match checked {
            Ok(()) => "fine".to_owned(),
            Err(Problem::Service(error)) => error.to_string(),
            Err(other) => format!("{other:?}"),
        };
        expected.assert_eq(&said);
    }

    #[test]
    fn names_of_our_own_paths_are_checked() {
        check("/api/nodes", "limit=2&offset=1", "", &expect!["fine"]);
        check("/api/nodes", "limt=2", "", &expect![[r#"unknown parameter "limt"; did you mean "limit"?"#]]);
        for limit in ["limit=abc", "limit=0", "limit=-1", "limit=1001", "limit=1.5"] {
            check("/api/nodes", limit, "", &expect!["'limit' must be a whole number from 1 to 1000"]);
        }
        check("/api/nodes", "limit=1000", "", &expect!["fine"]);
        check("/api/nodes", "=2", "", &expect![[r#"unknown parameter ""; known here: limit, offset, consistency"#]]);
        check(
            "/api/nodes",
            "consistency=stail",
            "",
            &expect![[r#"unknown value of "consistency" "stail"; known here: stale, linearizable"#]],
        );
        check("/api/version", "%00=1", "", &expect![[r#"unknown parameter "\u0000"; none are known here"#]]);
        check(
            "/api/nodes/{name}/drain",
            "",
            r#"{"deadline": 1}"#,
            &expect![[r#"unknown member "deadline"; did you mean "deadline_s"?"#]],
        );
        check("/api/nodes/{name}/drain", "", r#"{"deadline_s": 1}"#, &expect!["fine"]);
        check("/api/nodes/{name}/drain", "", "[1]", &expect!["fine"]);
    }

    #[test]
    fn paths_of_atlas_for_python_ignore_what_they_do_not_know() {
        check("/api/jobs", "stauts=failed&view=tall&limit=abc", "", &expect!["fine"]);
        check("/api/jobs", "vlidate=refuse", r#"{"agnt": "echo"}"#, &expect!["fine"]);
    }
}
