//! Checks the output of the programs for panics and unexpected ends.

use super::check::Violation;
use super::scenario::Scenario;
use crate::machine::ENDED;

/// Number of lines before an end that are reported.
const LAST_WORDS: usize = 5;

/// Finds panics and unexpected ends in the output of a program.
pub(crate) fn check(name: &str, text: &str, scenario: &Scenario) -> Vec<Violation> {
    let lines: Vec<&str> = text.lines().collect();
    let found = lines.iter().enumerate().filter_map(|(at, line)| {
        let rule = match () {
            () if line.contains("panicked at") => "panic",
            () if line.starts_with(ENDED) && !scenario.may_end() => "end",
            () => return None,
        };
        let words = lines[at.saturating_sub(LAST_WORDS)..=at].join("\n    ");
        Some(Violation { rule, text: format!("{name} said\n    {words}") })
    });
    found.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules(scenario: &str, text: &str) -> Vec<&'static str> {
        let scenario = Scenario::named(scenario).expect("a scenario");
        check("c1", text, scenario).into_iter().map(|found| found.rule).collect()
    }

    #[test]
    fn a_panic_and_an_end_that_nobody_asked_for_are_found() {
        let killed = "INFO started\n--- killed\n";
        let ended = format!("{killed}error: the log is damaged\n{ENDED}Some(1)\n");
        assert_eq!(rules("leader-kill", killed), [""; 0]);
        assert_eq!(rules("leader-kill", &ended), ["end"]);
        assert_eq!(rules("member-replaced", &ended), [""; 0]);
        assert_eq!(rules("member-replaced", &format!("thread 'x' panicked at a.rs\n{ended}")), ["panic"]);
    }
}
