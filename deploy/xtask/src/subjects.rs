//! Commit subjects: one line of at most [`LONGEST`] characters each.

use std::process::Command;

use anyhow::{Result, bail};

use crate::command::root;

const LONGEST: usize = 72;

/// Commits up to this one are not checked, because they are older than the rule.
const SINCE: &str = "3dbc437c448fbadaedb99e107e8568f417b9660d";

/// Checks the subjects of all commits after [`SINCE`].
pub(crate) fn check() -> Result<()> {
    let range = format!("{SINCE}..HEAD");
    let output = Command::new("git").args(["log", "--format=%h %s", &range]).current_dir(root()).output();
    match output {
        Ok(output) if output.status.success() => report(&String::from_utf8_lossy(&output.stdout)),
        // Not a git repository, or one without the full history.
        _ => {
            eprintln!("xtask: commit subjects are not checked: git does not know {range}");
            Ok(())
        }
    }
}

/// Fails if a subject in `log` is too long; each line has a short hash and a subject.
fn report(log: &str) -> Result<()> {
    let too_long = |line: &&str| line.split_once(' ').is_some_and(|(_, subject)| subject.chars().count() > LONGEST);
    let found: Vec<_> = log.lines().filter(too_long).collect();
    if !found.is_empty() {
        bail!("commit subjects of more than {LONGEST} characters:\n  {}", found.join("\n  "));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::report;

    #[test]
    fn a_subject_has_at_most_72_characters() {
        let subject = "ä".repeat(72);
        report(&format!("abc1234 {subject}\nabc1235 short")).expect("short enough");
        let error = report(&format!("abc1234 {subject}x")).expect_err("too long");
        assert!(error.to_string().ends_with(&format!("\n  abc1234 {subject}x")), "{error}");
    }
}
