//! `atlasctl test`: runs the tests of agents, each as a job.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use atlas_contract::{EVAL_FILE, Eval};
use atlas_env::Env;
use atlas_package::Package;
use serde_json::json;

use crate::command::deploy::{folders, label, pack};
use crate::context::Context;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::Shown;
use crate::program::{Checker, RunsOn};
use crate::shipped;
use crate::trial::{self, Case, TestResult, Trial};
use crate::words::{self, could_not};

/// Options of `atlasctl test`.
#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// Folder of an agent, a folder of such folders, or the name of an agent that ships with Atlas.
    #[arg(default_value = ".")]
    path: PathBuf,
    /// Also write the results to this file, as JUnit XML.
    #[arg(long, value_name = "FILE")]
    junit: Option<PathBuf>,
    /// Also check each output with the agent's eval.yaml.
    #[arg(long)]
    evals: bool,
}

/// The result of one test.
struct Row {
    agent: String,
    path: String,
    name: String,
    took: Duration,
    /// The expected and the actual result, if they differ.
    wrong: Option<(String, String)>,
    /// How often it was repeated with a lost attempt.
    replays: usize,
}

pub(crate) async fn run(context: &Context, options: &Options) -> Result<Exit, Failure> {
    let mut agents = Vec::new();
    let checker = Checker::new(RunsOn::Here);
    let places = shipped::places(std::slice::from_ref(&options.path))?;
    let mut found = Vec::new();
    for path in &places.paths {
        found.extend(folders(path)?);
    }
    for folder in found {
        let (package, cases) = (pack(&folder)?, trial::cases(&folder)?);
        let agent = label(&package);
        let findings = checker.check(&folder, &package).await;
        if let Some(failure) = findings.refusal(&agent) {
            return Err(failure);
        }
        for warning in findings.warnings {
            context.note(&format!("{agent}   warning    {warning}"));
        }
        let evals = if options.evals { evals(&folder, package.contract.name.as_str())? } else { None };
        agents.push((package, cases, evals));
    }
    let clock = Env::system().clock;
    let is_durable = |(package, ..): &Tested| package.contract.durable;
    let trial = Trial::start(trial::Rules { loses_attempts: agents.iter().any(is_durable) }).await?;
    let since = clock.monotonic();
    let ran = all(context, &trial, &agents).await;
    let took = clock.monotonic().saturating_sub(since);
    trial.end().await;
    let rows = ran?;
    if let Some(file) = &options.junit {
        std::fs::write(file, junit(&rows, took)).map_err(|error| could_not("write", file, &error))?;
    }
    let value = |row: &Row| {
        let wrong = row.wrong.as_ref();
        json!({
            "agent": row.agent, "file": row.path, "name": row.name, "passed": wrong.is_none(), "took_ms": row.took.as_millis() as u64,
            "expected": wrong.map(|(expected, _)| expected), "actual": wrong.map(|(_, actual)| actual),
            "lost_attempts": row.replays,
        })
    };
    let names = rows.iter().map(|row| format!("test/{}", row.path)).collect();
    if !context.form.is_text() {
        context.show(&Shown { value: rows.iter().map(value).collect(), text: String::new(), names })?;
    }
    let failed = rows.iter().filter(|row| row.wrong.is_some()).count() as u64;
    let passed = words::count(rows.len() as u64 - failed, "test");
    let took = words::milliseconds(took.as_secs_f64() * 1000.0);
    match failed {
        0 if rows.is_empty() => context.note("no tests: add tests/NAME.yaml next to agent.yaml"),
        0 => context.note(&format!("{passed} passed in {took}")),
        failed => context.note(&format!("{passed} passed, {failed} failed in {took}")),
    }
    Ok(if failed == 0 && !rows.is_empty() { Exit::Done } else { Exit::Short })
}

/// An agent, its tests, and the checks of its outputs.
type Tested = (Package, Vec<Case>, Option<Eval>);

/// The checks of an agent; none if it has none.
fn evals(folder: &Path, agent: &str) -> Result<Option<Eval>, Failure> {
    let path = folder.join(EVAL_FILE);
    let text = match atlas_env::read_bytes(&path, atlas_env::CONFIGURATION_BYTES_MAX) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(could_not("read", &path, &error)),
    };
    let wrong = |error| Failure::usage(format!("{} cannot be used: {error}", path.display()));
    Eval::parse(&text, agent).map(Some).map_err(wrong)
}

/// Runs all tests. Every agent is registered before the first test, because agents may call each other.
async fn all(context: &Context, trial: &Trial, agents: &[Tested]) -> Result<Vec<Row>, Failure> {
    for (package, ..) in agents {
        trial.register(package).await?;
    }
    let width = agents.iter().flat_map(|(_, cases, _)| cases).map(|case| shown(&case.path).chars().count()).max();
    let mut rows = Vec::new();
    for (package, cases, evals) in agents {
        for case in cases {
            let verdict = trial.check(package, case, evals.as_ref()).await?;
            let row = row(package, case, verdict);
            if context.form.is_text() {
                context.print(&line(&row, width.unwrap_or(0)))?;
            }
            rows.push(row);
        }
    }
    Ok(rows)
}

fn row(package: &Package, case: &Case, verdict: TestResult) -> Row {
    Row {
        agent: label(package),
        path: shown(&case.path),
        name: case.fixture.name.clone(),
        took: verdict.took,
        replays: verdict.replays,
        wrong: verdict.mismatch.map(|mismatch| (mismatch.expected, mismatch.actual)),
    }
}

/// A path as a user would type it, without a leading `./`.
fn shown(path: &Path) -> String {
    path.strip_prefix(".").unwrap_or(path).display().to_string()
}

/// `ok    hello/tests/ok.yaml   9 ms   a greeting has the name in it`; for a failed test, the difference follows.
fn line(row: &Row, width: usize) -> String {
    let word = if row.wrong.is_none() { "ok" } else { "FAIL" };
    let took = words::milliseconds(row.took.as_secs_f64() * 1000.0);
    let mut line = format!("{word:<4}  {:width$}  {took:>7}  {}", row.path, row.name).trim_end().to_owned() + "\n";
    if row.wrong.is_none() && row.replays > 0 {
        line += &format!("      {}\n", trial::told_of_replays(row.replays));
    }
    if let Some((expected, actual)) = &row.wrong {
        line += &format!("      expected  {expected}\n      got       {actual}\n");
    }
    line
}

/// The results as JUnit XML, which build servers read.
fn junit(rows: &[Row], took: Duration) -> String {
    let failures = rows.iter().filter(|row| row.wrong.is_some()).count();
    let mut page = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
    let seconds = |took: Duration| format!("{:.3}", took.as_secs_f64());
    let _ = writeln!(
        page,
        "<testsuite name=\"atlas\" tests=\"{}\" failures=\"{failures}\" time=\"{}\">",
        rows.len(),
        seconds(took)
    );
    for row in rows {
        let (agent, path, time) = (escaped(&row.agent), escaped(&row.path), seconds(row.took));
        let _ = write!(page, "  <testcase classname=\"{agent}\" name=\"{path}\" time=\"{time}\"");
        let _ = match &row.wrong {
            None => writeln!(page, "/>"),
            Some((expected, actual)) => {
                let told = escaped(&format!("expected {expected}, got {actual}"));
                writeln!(page, "><failure message=\"{told}\"/></testcase>")
            }
        };
    }
    page + "</testsuite>\n"
}

/// Escapes a text for an XML attribute; XML cannot represent most control characters.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out += "&amp;",
            '<' => out += "&lt;",
            '>' => out += "&gt;",
            '"' => out += "&quot;",
            '\n' | '\t' | '\r' => out += &format!("&#{};", u32::from(c)),
            c if c.is_control() || matches!(c, '\u{fffe}' | '\u{ffff}') => out.push('\u{fffd}'),
            c => out.push(c),
        }
    }
    out
}

/// Runs the tests of one agent before it is deployed; returns how many passed and their duration. None if it has no
/// tests.
pub(crate) async fn before_deploy(
    trial: &Trial,
    package: &Package,
    cases: &[Case],
) -> Result<Option<(usize, Duration)>, Failure> {
    let clock = Env::system().clock;
    let since = clock.monotonic();
    let mut places = Vec::new();
    for case in cases {
        let verdict = trial.check(package, case, None).await?;
        if let Some(mismatch) = verdict.mismatch {
            places.push((shown(&case.path), mismatch.to_string()));
        }
    }
    if places.is_empty() {
        return Ok((!cases.is_empty()).then(|| (cases.len(), clock.monotonic().saturating_sub(since))));
    }
    let (name, version) = (&package.contract.name, package.contract.version);
    let message =
        format!("{} of {} of {name} {version} failed", places.len(), words::count(cases.len() as u64, "test"));
    let failure = Failure::new("E1121", Exit::Invalid, message);
    Err(Failure { places, ..failure.with_next("run them: atlasctl test DIR   or deploy without tests: --no-test") })
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;

    fn rows() -> [Row; 2] {
        let row = |path: &str, wrong: Option<(String, String)>| Row {
            agent: "hello 0.1.0".to_owned(),
            path: path.to_owned(),
            name: "a greeting".to_owned(),
            took: Duration::from_millis(9),
            replays: usize::from(wrong.is_none()) * 3,
            wrong,
        };
        [row("a.yaml", None), row("longer.yaml", Some(("{\"a\":1}".to_owned(), "the error \"<\u{1}>\"".to_owned())))]
    }

    #[test]
    fn a_test_is_a_line_and_a_failure_says_what_came_instead() {
        let all: String = rows().iter().map(|row| line(row, 11)).collect();
        expect![[r#"
            ok    a.yaml          9 ms  a greeting
                  the same after each of 3 lost attempts
            FAIL  longer.yaml     9 ms  a greeting
                  expected  {"a":1}
                  got       the error "<>"
        "#]]
        .assert_eq(&all.replace('\u{1}', ""));
    }

    #[test]
    fn build_servers_read_the_results() {
        let page = junit(&rows(), Duration::from_millis(20));
        expect![[r#"
            <?xml version="1.0" encoding="UTF-8"?>
            <testsuite name="atlas" tests="2" failures="1" time="0.020">
              <testcase classname="hello 0.1.0" name="a.yaml" time="0.009"/>
              <testcase classname="hello 0.1.0" name="longer.yaml" time="0.009"><failure message="expected {&quot;a&quot;:1}, got the error &quot;&lt;�&gt;&quot;"/></testcase>
            </testsuite>
        "#]]
        .assert_eq(&page);
    }
}
