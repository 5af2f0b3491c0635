//! Slow tests: a page gives the reason for each of them. Slow tests without a reason are listed after the run.

use std::path::PathBuf;

use anyhow::{Context, Result};

use crate::command::{root, target_dir};

/// Tests that take longer than this need a reason.
const SECONDS_MAX: f64 = 10.0;

/// The path of the page, relative to the workspace root.
const PAGE: &str = "docs/internals/slow-tests.md";

/// A slow test from the runner's report.
#[derive(Debug, PartialEq)]
struct Slow {
    /// Package and test, as on the page.
    name: String,
    seconds: f64,
}

/// Removes the report of an earlier run.
pub(crate) fn begin() {
    // Before the first run, there is no report.
    let _ = std::fs::remove_file(file());
}

/// Prints the slow tests of the last run that are not on the page; prints nothing if the runner wrote no report.
pub(crate) fn print() -> Result<()> {
    let Ok(report) = std::fs::read_to_string(file()) else { return Ok(()) };
    let page = std::fs::read_to_string(root().join(PAGE)).with_context(|| format!("could not read \"{PAGE}\""))?;
    eprint!("{}", list(&report, &page));
    Ok(())
}

fn file() -> PathBuf {
    target_dir().join("nextest").join("default").join("junit.xml")
}

fn list(report: &str, page: &str) -> String {
    let explained = |slow: &Slow| page.contains(&format!("| `{}` |", slow.name));
    let mut slow: Vec<Slow> = slow_tests(report).into_iter().filter(|slow| !explained(slow)).collect();
    slow.sort_by(|one, other| other.seconds.total_cmp(&one.seconds));
    let lines = slow.iter().map(|slow| format!("  {} took {:.0} s\n", slow.name, slow.seconds));
    let lines: String = lines.collect();
    if lines.is_empty() { lines } else { format!("xtask: slow tests without a reason in {PAGE}:\n{lines}") }
}

/// The slow tests of a JUnit report.
fn slow_tests(report: &str) -> Vec<Slow> {
    let cases = report.split("<testcase ").skip(1).filter_map(|rest| rest.split_once('>')).map(|(tag, _)| tag);
    let slow = cases.filter_map(|tag| {
        let seconds: f64 = attribute(tag, "time")?.parse().ok()?;
        let name = format!("{} {}", attribute(tag, "classname")?, attribute(tag, "name")?);
        (seconds > SECONDS_MAX).then_some(Slow { name, seconds })
    });
    slow.collect()
}

fn attribute<'t>(tag: &'t str, name: &str) -> Option<&'t str> {
    let start = format!("{name}=\"");
    let at = tag.match_indices(&start).find(|(at, _)| *at == 0 || tag[..*at].ends_with(' '))?.0;
    tag[at + start.len()..].split('"').next()
}

#[cfg(test)]
mod tests {
    use super::list;

    #[test]
    fn slow_tests_without_a_reason_are_named_slowest_first() {
        let case = |name: &str, time: &str| {
            format!("<testcase name=\"tests::{name}\" classname=\"atlas-x\" timestamp=\"now\" time=\"{time}\"/>")
        };
        let report =
            [case("quick", "9.9"), case("slow", "10.4"), case("known", "70.0"), case("slower", "20.6")].concat();
        let page = "| `atlas-x tests::known` | it waits for a timeout of the protocol |";
        assert_eq!(
            list(&report, page),
            "xtask: slow tests without a reason in docs/internals/slow-tests.md:\n  atlas-x tests::slower took 21 s\n  atlas-x tests::slow took 10 s\n"
        );
        assert_eq!(list(&case("quick", "0.1"), page), "");
    }
}
