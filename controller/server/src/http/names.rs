//! Unknown names in the query and the body of a request.
//!
//! On the paths of Atlas for Python they are ignored, as it ignores them; the answer then has a warning about each member of the body.
//! Only what looks like a member of ours is refused there as well: no client of Atlas for Python sends it. On other paths all are refused: a
//! misspelt filter must not get the answer to another question.

use std::collections::{BTreeMap, BTreeSet};

use serde::de::IgnoredAny;
use serde_json::Value;

use atlas_api::types::{self, Shape};
use atlas_api::{Body, Kind, LIMIT_MAX, Operation, ParameterLocation, Verb};

use super::answer::Problem;
use super::query::Query;

/// Refuses a query with a name, or a word, that this operation does not know.
pub(crate) fn check_query(operation: &Operation, query: &Query<'_>) -> Result<(), Problem> {
    if operation.compatible {
        return Ok(());
    }
    let known = || operation.parameters().filter(|parameter| parameter.place == ParameterLocation::Query);
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
pub(crate) fn check_body(operation: &Operation, body: &[u8]) -> Result<(), Problem> {
    match operation.body {
        Body::Json(shape) | Body::MaybeJson(shape) if !operation.compatible => check_members(shape, body),
        _ => Ok(()),
    }
}

/// Whether a body would mean nothing, and is refused.
pub(crate) fn refuses_body(operation: &Operation) -> bool {
    operation.verb != Verb::Get && !operation.compatible && matches!(operation.body, Body::None)
}

/// The members that Atlas for Python has in the bodies of its paths.
const OF_PYTHON: [(Shape, &[&str]); 3] = [
    (types::of::<types::Submission>(), &["agent", "input", "priority"]),
    (types::of::<types::ChainStart>(), &["chain", "input"]),
    (types::of::<types::OrchestratorName>(), &["name"]),
];

/// Warnings about members of a body on a path of Atlas for Python that mean nothing. One that looks like a member of ours is refused, and in a
/// `strict` request each is. Every name is looked at, and the first ones are named.
pub(crate) fn ignored_members<'a>(
    shape: Shape,
    names: impl IntoIterator<Item = &'a str>,
    strict: bool,
) -> Result<Vec<String>, Problem> {
    let mut names = names.into_iter().peekable();
    if names.peek().is_none() {
        return Ok(Vec::new());
    }
    let known: Vec<&str> = shape.members().collect::<BTreeSet<_>>().into_iter().collect();
    let of_python =
        OF_PYTHON.iter().find(|(known, _)| known.name() == shape.name()).map_or(&[][..], |(_, members)| members);
    let ours: Vec<&str> = known.iter().copied().filter(|name| !of_python.contains(name)).collect();
    let (mut warnings, mut more) = (Vec::new(), 0_usize);
    for name in names {
        if strict || meant(name, &ours).is_some() {
            return Err(unknown("member", name, &known));
        }
        if warnings.len() == NAMED_MAX {
            more += 1;
            continue;
        }
        let meant = meant(name, &known).map(|meant| format!("; did you mean '{meant}'?")).unwrap_or_default();
        let shown: String = name.chars().take(SHOWN_MAX).flat_map(char::escape_default).collect();
        warnings.push(format!("the member '{shown}' is ignored{meant}"));
    }
    if more > 0 {
        warnings.push(format!("more members that are ignored: {more}"));
    }
    Ok(warnings)
}

/// Most unknown members that warnings name.
const NAMED_MAX: usize = 8;
/// Most characters of a name that is shown.
const SHOWN_MAX: usize = 64;

/// The known name that looks like this one, or differs from it by a unit at its end: `budget` means `budget_usd`.
fn meant<'k>(name: &str, known: &[&'k str]) -> Option<&'k str> {
    let is_longer = |name: &str, than: &str| name.strip_prefix(than).is_some_and(|rest| rest.starts_with('_'));
    let by_unit = || known.iter().copied().find(|known| is_longer(known, name) || is_longer(name, known));
    atlas_contract::nearest(name, known.iter().copied()).or_else(by_unit)
}

/// Refuses an object with a member that a type of the interface does not have. A value that is not an object is refused by its reader.
pub(crate) fn check_members(shape: Shape, object: &[u8]) -> Result<(), Problem> {
    let Ok(members) = serde_json::from_slice::<BTreeMap<String, IgnoredAny>>(object) else { return Ok(()) };
    let known: BTreeSet<&str> = shape.members().collect();
    if known.is_empty() {
        return Ok(());
    }
    match members.keys().find(|name| !known.contains(name.as_str())) {
        Some(name) => Err(unknown("member", name, &known.into_iter().collect::<Vec<_>>())),
        None => Ok(()),
    }
}

fn unknown(what: &str, name: &str, known: &[&str]) -> Problem {
    let shown = Value::from(name.chars().take(SHOWN_MAX).collect::<String>());
    let meant = match meant(name, known) {
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

    use super::*;

    fn check(path: &str, query: &str, body: &str, expected: &Expect) {
        let method = if body.is_empty() { Method::GET } else { Method::POST };
        let operation = atlas_api::route(path).and_then(|route| route.operation(&method)).expect("an operation");
        let checked =
            check_query(operation, &Query::new(Some(query))).and_then(|()| check_body(operation, body.as_bytes()));
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

    const SUBMISSION: Shape = types::of::<types::Submission>();
    const CHAIN_START: Shape = types::of::<types::ChainStart>();

    fn ignored(shape: Shape, names: &[&str], strict: bool, expected: &Expect) {
        let said = match ignored_members(shape, names.iter().copied(), strict) {
            Ok(warnings) => warnings.join("\n"),
            Err(problem) => format!("refused: {}", problem.into_error()),
        };
        expected.assert_eq(&said);
    }

    #[test]
    fn members_that_are_ignored_are_named_unless_they_look_like_ours() {
        ignored(
            SUBMISSION,
            &["inptu", "metadata", "a\"\u{e9}\n"],
            false,
            &expect![[r#"
                the member 'inptu' is ignored; did you mean 'input'?
                the member 'metadata' is ignored
                the member 'a\"\u{e9}\n' is ignored"#]],
        );
        ignored(SUBMISSION, &["inptu"], true, &expect![[r#"refused: unknown member "inptu"; did you mean "input"?"#]]);
        ignored(
            SUBMISSION,
            &["timout"],
            false,
            &expect![[r#"refused: unknown member "timout"; did you mean "timeout"?"#]],
        );
        for (name, meant) in [("budget", "budget_usd"), ("timeout_seconds", "timeout"), ("label", "labels")] {
            let refused = ignored_members(SUBMISSION, [name], false).expect_err(name).into_error().to_string();
            assert_eq!(refused, format!("unknown member \"{name}\"; did you mean \"{meant}\"?"));
        }
        ignored(CHAIN_START, &["inputs"], false, &expect!["the member 'inputs' is ignored; did you mean 'input'?"]);
        ignored(
            CHAIN_START,
            &["prioritiy"],
            false,
            &expect![[r#"refused: unknown member "prioritiy"; did you mean "priority"?"#]],
        );
        ignored(
            types::of::<types::OrchestratorName>(),
            &["nmae"],
            false,
            &expect!["the member 'nmae' is ignored; did you mean 'name'?"],
        );
    }

    #[test]
    fn the_first_ones_are_named_and_all_are_looked_at() {
        let mut names: Vec<String> = (0..10).map(|number| format!("x{number}{number}{number}")).collect();
        let told = |names: &[String]| {
            let told = ignored_members(SUBMISSION, names.iter().map(String::as_str), false);
            told.map_err(|problem| problem.into_error().to_string())
        };
        let warnings = told(&names).expect("ignored");
        assert_eq!((warnings.len(), warnings[7].as_str()), (9, "the member 'x777' is ignored"));
        assert_eq!(warnings[8], "more members that are ignored: 2");
        for (name, meant) in [("budget", "budget_usd"), ("timout", "timeout")] {
            names.push(name.to_owned());
            assert_eq!(told(&names), Err(format!("unknown member \"{name}\"; did you mean \"{meant}\"?")));
            names.pop();
        }
    }

    #[test]
    fn the_members_of_atlas_for_python_exist() {
        for (shape, members) in OF_PYTHON {
            let known: Vec<&str> = shape.members().collect();
            assert!(members.iter().all(|member| known.contains(member)), "{shape:?}");
        }
    }
}
