use std::io::{BufRead as _, BufReader, PipeReader, PipeWriter, Write as _, pipe};
use std::thread;

use clap::Parser;
use serde_json::{Value, json};

use super::line::Line;
use super::*;

#[derive(Debug, Parser)]
struct Command {
    #[command(flatten)]
    step: Options,
}

fn options(words: &[&str]) -> Options {
    let words = ["step"].iter().chain(words);
    Command::try_parse_from(words).unwrap_or_else(|error| panic!("{error}")).step
}

/// The worker's side of the pipes.
struct Worker {
    lines: BufReader<PipeReader>,
    answers: PipeWriter,
}

impl Worker {
    fn hears(&mut self) -> Value {
        let mut line = String::new();
        // Each line has an empty one before it.
        while line.trim().is_empty() {
            line.clear();
            assert_ne!(self.lines.read_line(&mut line).expect("a line"), 0, "it has ended");
        }
        serde_json::from_str(&line).expect("JSON")
    }

    fn says(&mut self, answer: &Value) {
        writeln!(self.answers, "{answer}").expect("it listens");
    }
}

/// Makes a step against a worker.
fn against(words: &[&str], worker: impl FnOnce(&mut Worker) + Send) -> Result<End, Failure> {
    let ((input, answers), (lines, output)) = (pipe().expect("a pipe"), pipe().expect("a pipe"));
    let (lines, options) = (BufReader::new(lines), options(words));
    thread::scope(|scope| {
        scope.spawn(move || worker(&mut Worker { lines, answers }));
        make(&mut Line::new(BufReader::new(input), output, 7), &options)
    })
}

fn text(end: Result<End, Failure>) -> String {
    match end.expect("it ends") {
        End::Printed(text) => String::from_utf8(text).expect("text"),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_step_is_made_and_recorded_and_then_only_read() {
    let words = ["charge", "--effects", "once", "--", "sh", "-c", "echo paid; echo $ATLAS_STEP_KEY $ATLAS_STEP_AGAIN"];
    let printed = text(against(&words, |worker| {
        let asked = worker.hears();
        let (kind, name, effects) = (&asked["kind"], &asked["name"], &asked["effects"]);
        assert_eq!((kind, name, effects), (&json!("step"), &json!("charge"), &json!("once")));
        assert_eq!((&asked["call"], &asked["args"]), (&json!(7), &json!(words[4..])));
        assert_eq!(asked["single"], true);
        worker.says(&json!({"call": 7, "make": true, "key": "ab12", "again": false}));
        let made = worker.hears();
        assert_eq!(made, json!({"made": 7, "value": {"stdout": "paid\nab12 false\n", "code": 0}}));
        worker.says(&json!({"call": 7, "value": made["value"]}));
    }));
    assert_eq!(printed, "paid\nab12 false\n");
    // The answer to a process that was killed is not the one to this.
    let recorded = text(against(&["charge", "--", "false"], |worker| {
        worker.hears();
        worker.says(&json!({"call": 3, "value": {"stdout": "other", "code": 0}}));
        worker.says(&json!({"call": 7, "value": {"stdout": "paid\n", "code": 0}, "at_us": 5}));
    }));
    assert_eq!(recorded, "paid\n");
}

#[test]
fn a_command_that_fails_is_tried_again_and_then_an_error_with_its_code() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("tries");
    let script = format!("echo x >>'{0}'; wc -l <'{0}'; exit 5", path.display());
    let words = ["check", "--retries", "1", "--args", "{\"id\": 1}", "--", "sh", "-c", &script];
    let end = against(&words, |worker| {
        assert_eq!(worker.hears()["args"], json!({"id": 1}));
        worker.says(&json!({"call": 7, "make": true, "key": "k"}));
        let made = worker.hears();
        let error = &made["error"];
        assert_eq!((&error["type"], &error["code"]), (&json!("CommandFailed"), &json!(5)));
        worker.says(&json!({"call": 7, "error": error}));
    });
    let Ok(End::Failed { error, code, printed }) = end else { panic!("{end:?}") };
    assert_eq!((error.as_str(), code), ("\"sh\" exited with 5", 5));
    assert_eq!(String::from_utf8_lossy(&printed).trim(), "2");
    // As a later attempt reads it, and as another program may have written it.
    for (error, expected) in [(json!({"type": "CommandFailed", "text": "no", "code": 5}), 5), (json!("no"), 1)] {
        let end = against(&["check", "--", "true"], |worker| {
            worker.hears();
            worker.says(&json!({"call": 7, "error": error}));
        });
        assert_eq!(end.ok(), Some(End::Failed { error: "no".to_owned(), code: expected, printed: Vec::new() }));
    }
}

#[test]
fn what_cannot_be_recorded_is_an_error_that_no_other_try_changes() {
    for (words, code, why) in [
        (vec!["no-such-program-of-atlas"], 127, "did not start"),
        (vec!["sh", "-c", "printf '\\377'"], 1, "no text"),
        (vec!["sh", "-c", "head -c 1100000 /dev/zero"], 1, "more than 1 MiB"),
        (vec!["sh", "-c", "kill -9 $$"], 137, "signal 9"),
    ] {
        let all: Vec<&str> = ["x", "--"].iter().chain(&words).copied().collect();
        let end = against(&all, |worker| {
            worker.hears();
            worker.says(&json!({"call": 7, "make": true, "key": "k"}));
            let made = worker.hears();
            worker.says(&json!({"call": 7, "error": made["error"]}));
        });
        let Ok(End::Failed { error, code: found, .. }) = end else { panic!("{words:?}: {end:?}") };
        assert!(found == code && error.contains(why), "{words:?}: {found} {error}");
    }
}

#[test]
fn json_is_recorded_as_json() {
    for (given, recorded, printed) in [
        ("{\"a\":  1}", json!({"a": 1}), "{\"a\":1}\n"),
        ("\"text\"", json!("\"text\"\n"), "\"text\"\n"),
        ("null", json!("null\n"), "null\n"),
    ] {
        let script = format!("printf '%s' '{given}'");
        let end = against(&["x", "--json", "--", "sh", "-c", &script], |worker| {
            worker.hears();
            worker.says(&json!({"call": 7, "make": true, "key": "k"}));
            let made = worker.hears();
            assert_eq!(made["value"]["stdout"], recorded);
            worker.says(&json!({"call": 7, "value": made["value"]}));
        });
        assert_eq!(text(end), printed);
    }
}

#[test]
fn a_command_that_succeeds_without_json_does_not_run_twice() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("tries");
    let script = format!("echo x >>'{}'; echo no", path.display());
    let end = against(&["x", "--effects", "once", "--json", "--retries", "2", "--", "sh", "-c", &script], |worker| {
        worker.hears();
        worker.says(&json!({"call": 7, "make": true, "key": "k"}));
        let made = worker.hears();
        worker.says(&json!({"call": 7, "error": made["error"]}));
    });
    let Ok(End::Failed { error, code: 1, .. }) = end else { panic!("{end:?}") };
    assert!(error.contains("did not print JSON"), "{error}");
    assert_eq!(std::fs::read_to_string(&path).expect("it ran"), "x\n");
}

#[test]
fn waits_say_what_they_wait_for_and_print_what_came() {
    let call = |words: &[&str]| call(&options(words));
    let asked = json!({"kind": "choose", "prompt": "Which?", "options": ["a", "b"], "timeout_us": 60_000_000_u64});
    for (words, expected) in [
        (&["--sleep", "10s"][..], json!({"kind": "sleep", "name": "", "for": 10.0, "args": [10.0]})),
        (
            &["--until", "2026-12-24T18:00:00Z"][..],
            json!({"kind": "sleep", "name": "", "until": "2026-12-24T18:00:00.000Z", "args": ["2026-12-24T18:00:00.000Z"]}),
        ),
        (
            &["--ask", "Which?", "--options", "a,b", "--timeout", "1m"][..],
            json!({"kind": "ask", "name": "choose", "question": asked, "args": asked}),
        ),
        (&["--receive", "go"][..], json!({"kind": "receive", "name": "go", "args": []})),
        (&["--receive", "", "--timeout", "5"][..], json!({"kind": "receive", "name": "", "for": 5.0, "args": []})),
        (
            &["--spawn", "echo", "--input", "{\"a\": 1}"][..],
            json!({"kind": "spawn", "name": "echo", "agent": "echo", "input": {"a": 1}, "args": {"a": 1}}),
        ),
    ] {
        assert_eq!(call(words), expected);
    }
    let answered = |words: &[&str], value: Value| {
        against(words, |worker| {
            worker.hears();
            worker.says(&json!({"call": 7, "value": value}));
        })
    };
    assert_eq!(text(answered(&["--sleep", "1"], json!(null))), "");
    assert_eq!(text(answered(&["--ask", "Go?", "--confirm"], json!(true))), "true\n");
    assert_eq!(text(answered(&["--ask", "Who?"], json!("Ada"))), "Ada\n");
    assert_eq!(answered(&["--ask", "Who?", "--timeout", "1"], json!(null)).ok(), Some(End::TimedOut));
    let message = json!({"id": "m1", "from": "ada", "at_us": 5, "body": {"n": 1}});
    assert_eq!(text(answered(&["--receive", "go"], message.clone())), "{\"n\":1}\n");
    assert_eq!(text(answered(&["--receive", "go", "--json"], message.clone())), format!("{message}\n"));
    assert_eq!(text(answered(&["--spawn", "a"], json!({"data": {"n": 1}}))), "{\"n\":1}\n");
    let words = "the job was not finished in 1 s, and is cancelled";
    let late = json!({"error": words, "timed_out": true});
    assert_eq!(answered(&["--spawn", "a", "--timeout", "1"], late).ok(), Some(End::TimedOut));
    // The same words of a job that failed.
    let failed = End::Failed { error: words.to_owned(), code: 10, printed: Vec::new() };
    assert_eq!(answered(&["--spawn", "a", "--timeout", "1"], json!({"error": words})).ok(), Some(failed));
    let failed = End::Failed { error: "no such agent".to_owned(), code: 10, printed: Vec::new() };
    assert_eq!(answered(&["--spawn", "a"], json!({"refused": "no such agent"})).ok(), Some(failed));
}

#[test]
fn a_job_that_cannot_go_on_says_why() {
    let end = |answer: &'static str| {
        let end = against(&["x", "--", "true"], |worker| {
            worker.hears();
            worker.answers.write_all(answer.as_bytes()).expect("it listens");
        });
        end.expect_err("it stops").to_string()
    };
    let differs = end("{\"call\": 7, \"stop\": \"E3013: the program differs from its record\"}\n");
    assert_eq!(differs, "error[E3013]: the program differs from its record");
    for (answer, why) in [
        ("", "it closed the connection"),
        ("{\"call\": 7", "it sent a broken line"),
        ("no\n", "could not be read"),
        ("{\"call\": 7}\n", "neither a value nor an error"),
    ] {
        let told = end(answer);
        assert!(told.starts_with("error[E0131]: ") && told.contains(why), "{told}");
    }
}

#[test]
fn a_step_is_one_thing() {
    for words in [
        &[][..],
        &["x"],
        &["--sleep", "1", "--ask", "y"],
        &["x", "--sleep", "1", "--", "true"],
        &["--until", "+5m"],
        &["--options", "a", "--sleep", "1"],
        &["x", "--effects", "twice", "--", "true"],
        &["x", "--args", "{", "--", "true"],
    ] {
        let all = ["step"].iter().chain(words);
        assert!(Command::try_parse_from(all).is_err(), "{words:?}");
    }
}

/// What a step prints would be the output of the job.
#[test]
fn examples_take_what_steps_print() {
    let page = include_str!("../../../../docs/agents/exec.md");
    let steps: Vec<&str> = page.lines().filter(|line| line.starts_with("atlasctl step ")).collect();
    assert!(!steps.is_empty(), "the page has an example");
    for line in steps {
        assert!(line.contains(" --sleep ") || line.contains(" --until ") || line.contains(">/dev/null"), "{line}");
    }
}

#[test]
fn parts_of_documents_are_printed() {
    let words = ["--search", "handbook", "--query", "how long?", "--top-k", "2", "--metadata", "team=ops"];
    let answer = json!({"data": {"hits": [{"source": "a.md", "text": "# Leave\n\nThirty days.\n"}, {"source": "b.md", "text": "x"}]}});
    let asks = |words: &[&str], answer: Value| {
        against(words, move |worker| {
            let asked = worker.hears();
            let input = json!({"base": "handbook", "query": "how long?", "top_k": 2, "metadata": {"team": "ops"}});
            assert_eq!((&asked["kind"], &asked["tool"]), (&json!("tool"), &json!("atlas.documents.search")));
            assert_eq!((&asked["input"], &asked["args"]), (&input, &input));
            worker.says(&json!({"call": 7, "value": answer}));
        })
    };
    assert_eq!(text(asks(&words, answer.clone())), "a.md\n  # Leave\n\n  Thirty days.\n\nb.md\n  x\n");
    let as_json = [&words[..], &["--json"]].concat();
    assert_eq!(
        text(asks(&as_json, answer)),
        "[{\"source\":\"a.md\",\"text\":\"# Leave\\n\\nThirty days.\\n\"},{\"source\":\"b.md\",\"text\":\"x\"}]\n"
    );
    assert_eq!(text(asks(&words, json!({"data": {"hits": []}}))), "");
    let refused = asks(&words, json!({"refused": "Agent not allowed"})).ok();
    assert_eq!(refused, Some(End::Failed { error: "Agent not allowed".to_owned(), code: 1, printed: Vec::new() }));
    for words in [&["--search", "x"][..], &["--query", "x"], &["--search", "x", "--query", "y", "--metadata", "z"]] {
        assert!(Command::try_parse_from(["step"].iter().chain(words)).is_err(), "{words:?}");
    }
}
