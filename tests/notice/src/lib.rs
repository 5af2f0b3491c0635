//! Notices of passing tests: that a test was skipped and why, or other observations.
//!
//! A runner hides the output of passing tests, so each notice is printed and, if [`FILE`] names a file, appended to it as one
//! line. `cargo xtask test` sets the variable and prints the lines after the last test.

use std::fmt::Display;
use std::fs::File;
use std::io::Write;
use std::path::Path;

/// The environment variable that names the file of notices.
pub const FILE: &str = "ATLAS_TEST_NOTICES";

/// What the line of a skipped test begins with.
pub const SKIPPED: &str = "skipped: ";

/// Says that the running test is skipped, and why. The caller returns.
pub fn skip(reason: impl Display) {
    notice(&format!("{SKIPPED}{}: {reason}", test_name()));
}

/// Says something of the running test that its reader should know although it passes.
pub fn warn(text: impl Display) {
    notice(&format!("warning: {}: {text}", test_name()));
}

#[expect(clippy::print_stderr, reason = "a notice is for a person to see")]
fn notice(text: &str) {
    let line = text.lines().collect::<Vec<_>>().join(" ");
    eprintln!("{line}");
    if let Some(file) = std::env::var_os(FILE)
        && let Err(error) = append(file.as_ref(), &line)
    {
        eprintln!("could not write the notice to \"{}\": {error}", Path::new(&file).display());
    }
}

/// One write, so that lines of tests that run at once do not mix.
fn append(file: &Path, line: &str) -> std::io::Result<()> {
    File::options().append(true).create(true).open(file)?.write_all(format!("{line}\n").as_bytes())
}

/// The test runner names a test's thread after it.
fn test_name() -> String {
    std::thread::current().name().unwrap_or("a test").to_owned()
}

#[cfg(test)]
mod tests {
    use super::append;

    #[test]
    fn notices_are_appended_a_line_each() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("notices");
        append(&file, "skipped: one: no compiler").expect("written");
        append(&file, "warning: two: repeated").expect("written");
        let text = std::fs::read_to_string(&file).expect("readable");
        assert_eq!(text, "skipped: one: no compiler\nwarning: two: repeated\n");
    }
}
