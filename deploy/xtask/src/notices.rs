//! Notices of passing tests: skipped tests and warnings. Tests write them to a file, which is listed after the last
//! test.

use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result};
use atlas_notice::{FILE, SKIPPED};

use crate::command::target_dir;

/// The file with the notices of one run.
pub(crate) struct Notices(PathBuf);

impl Notices {
    /// Creates an empty file.
    pub(crate) fn begin() -> Result<Self> {
        let file = target_dir().join("test-notices.txt");
        std::fs::write(&file, "").with_context(|| format!("could not write \"{}\"", file.display()))?;
        Ok(Self(file))
    }

    /// Passes the path of the file to the tests that `command` runs.
    pub(crate) fn pass_to(&self, command: &mut Command) {
        command.env(FILE, &self.0);
    }

    /// Prints the notices to stderr.
    pub(crate) fn print(&self) -> Result<()> {
        let text =
            std::fs::read_to_string(&self.0).with_context(|| format!("could not read \"{}\"", self.0.display()))?;
        eprint!("{}", list(&text));
        Ok(())
    }
}

/// Formats the warnings, then the skipped tests with their count.
fn list(notices: &str) -> String {
    let mut lines: Vec<_> = notices.lines().collect();
    lines.sort_unstable();
    let (skipped, others): (Vec<_>, Vec<_>) = lines.into_iter().partition(|line| line.starts_with(SKIPPED));
    let mut text: String = others.iter().map(|line| format!("xtask: {line}\n")).collect();
    match skipped.len() {
        0 => text.push_str("xtask: no test was skipped\n"),
        1 => text.push_str("xtask: 1 test was skipped:\n"),
        count => text.push_str(&format!("xtask: {count} tests were skipped:\n")),
    }
    text.extend(skipped.iter().map(|line| format!("  {}\n", line.trim_start_matches(SKIPPED))));
    text
}

#[cfg(test)]
mod tests {
    use super::list;

    #[test]
    fn skipped_tests_are_listed_with_their_count() {
        assert_eq!(list(""), "xtask: no test was skipped\n");
        assert_eq!(
            list("skipped: b: no compiler\nwarning: a: repeated\nskipped: a: no root\n"),
            "xtask: warning: a: repeated\nxtask: 2 tests were skipped:\n  a: no root\n  b: no compiler\n"
        );
    }
}
