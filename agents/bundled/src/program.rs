//! Agents written in Rust. To run one, a worker starts its own program again as `@atlas agent-exec NAME`.

use std::ffi::OsStr;
use std::io::{self, Read, Write};
use std::process::ExitCode;

use serde_json::Value;

use crate::{search_docs, wordcount};

/// The first argument of a process that runs an agent.
const ARGUMENT: &str = "agent-exec";

/// Runs an agent if this process was started as one, and returns the exit code of the process. Like any exec agent, it
/// reads one JSON document from stdin and writes one to stdout. Every program that runs a worker must call this early
/// in `main`.
pub fn run_if_asked() -> Option<ExitCode> {
    let mut arguments = std::env::args_os().skip(1);
    if arguments.next().is_none_or(|first| first != ARGUMENT) {
        return None;
    }
    let done = run(arguments.next().as_deref(), io::stdin().lock(), io::stdout().lock());
    Some(match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // The worker takes this line as the job's error.
            let _ = writeln!(io::stderr(), "error: {error}");
            ExitCode::from(2)
        }
    })
}

fn run(name: Option<&OsStr>, mut input: impl Read, mut output: impl Write) -> Result<(), String> {
    let agent: fn(&[u8]) -> Result<Value, String> = match name.and_then(OsStr::to_str) {
        Some("search-docs") => |document| search_docs(document).map_err(|error| error.to_string()),
        Some("wordcount") => |document| wordcount(document).map_err(|error| error.to_string()),
        _ => return Err(format!("this program has no agent {name:?}; available: search-docs, wordcount")),
    };
    let mut document = Vec::new();
    input.read_to_end(&mut document).map_err(|error| format!("could not read the input: {error}"))?;
    let answer = agent(&document)?;
    writeln!(output, "{answer}").map_err(|error| format!("could not write the output: {error}"))
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;

    fn check(name: Option<&str>, input: &str, ends: &expect_test::Expect) {
        let mut output = Vec::new();
        let done = run(name.map(OsStr::new), input.as_bytes(), &mut output);
        ends.assert_eq(&done.map_or_else(|error| error, |()| String::from_utf8(output).expect("text")));
    }

    #[test]
    fn a_document_in_a_document_out() {
        check(
            Some("wordcount"),
            r#"{"input": {"text": "a"}}"#,
            &expect![[r#"
                {"lines":1,"words":1,"characters":1,"bytes":1,"top":[{"word":"a","count":1}]}
            "#]],
        );
        check(Some("wordcount"), "no JSON", &expect!["the input is not JSON"]);
        check(
            Some("other"),
            "",
            &expect![[r#"this program has no agent Some("other"); available: search-docs, wordcount"#]],
        );
        check(None, "", &expect!["this program has no agent None; available: search-docs, wordcount"]);
    }
}
