//! Why `venv` or `pip` failed, from the end of what they printed.

/// How many lines of one kind are told.
const LINES_MAX: usize = 3;

/// Pip's errors with the reason of the program that it ran, or the last line.
///
/// ```text
/// fatal: unable to access 'https://host/p.git/': Could not resolve host      × python setup.py egg_info did not run successfully.
/// error: subprocess-exited-with-error                                        ╰─> [4 lines of output]
/// × git clone … did not run successfully.                                    RuntimeError: needs a compiler
/// note: This error originates from a subprocess                              [end of output]
/// ```
pub(super) fn last_words(printed: &str) -> String {
    let lines: Vec<&str> = printed.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    let starting = |mark: &str| {
        let mut found: Vec<&str> = lines.iter().filter_map(|line| line.strip_prefix(mark)).map(str::trim).collect();
        found.dedup();
        found.split_off(found.len().saturating_sub(LINES_MAX))
    };
    // A traceback of pip itself follows this one, and ends with the exception.
    let errors: Vec<&str> = starting("ERROR: ").into_iter().filter(|error| *error != "Exception:").collect();
    let failed = lines.iter().find_map(|line| line.strip_prefix('×')).map(|text| text.trim().trim_end_matches('.'));
    let told = if errors.is_empty() { failed.map(str::to_owned) } else { Some(errors.join("; ")) };
    let end = lines.iter().position(|line| line.starts_with("[end of output]"));
    let reason = match end.and_then(|end| lines.get(end.checked_sub(1)?)) {
        Some(last) => Some((*last).to_owned()),
        None => Some(starting("fatal: ").join("; ")).filter(|reason| !reason.is_empty()),
    };
    match (told, reason) {
        (Some(told), Some(reason)) => format!("{told}: {reason}"),
        (Some(told), None) => told,
        (None, _) => lines.last().map_or_else(|| "no error output".to_owned(), |line| (*line).to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::*;

    fn check(printed: &str, told: &Expect) {
        told.assert_eq(&last_words(printed));
    }

    #[test]
    fn errors_of_pip_are_told_together() {
        check("", &expect!["no error output"]);
        check("No module named venv\n\n", &expect!["No module named venv"]);
        check(
            "Looking\nERROR: Could not find a version that satisfies the requirement p==9 (from versions: 1.0)\nERROR: No matching distribution found for p==9\n[notice] new pip\n",
            &expect![
                "Could not find a version that satisfies the requirement p==9 (from versions: 1.0); No matching distribution found for p==9"
            ],
        );
        check(
            "ERROR: Exception:\nTraceback (most recent call last):\n  File \"x\"\nOSError: no room\n",
            &expect!["OSError: no room"],
        );
    }

    #[test]
    fn the_program_that_pip_ran_has_the_reason() {
        let git = "Collecting git+https://host/p.git
  Running command git clone --quiet https://host/p.git /tmp/p
  fatal: unable to access 'https://host/p.git/': Could not resolve host: host
  error: subprocess-exited-with-error

  × git clone --quiet https://host/p.git /tmp/p did not run successfully.
  │ exit code: 128
  ╰─> See above for output.

  note: This error originates from a subprocess, and is likely not a problem with pip.
error: subprocess-exited-with-error

× git clone --quiet https://host/p.git /tmp/p did not run successfully.
│ exit code: 128
╰─> See above for output.

note: This error originates from a subprocess, and is likely not a problem with pip.
";
        check(
            git,
            &expect![
                "git clone --quiet https://host/p.git /tmp/p did not run successfully: unable to access 'https://host/p.git/': Could not resolve host: host"
            ],
        );
        let build = "  error: subprocess-exited-with-error
  × python setup.py egg_info did not run successfully.
  │ exit code: 1
  ╰─> [2 lines of output]
      Traceback (most recent call last):
      RuntimeError: needs a compiler
      [end of output]
  note: This error originates from a subprocess, and is likely not a problem with pip.
error: metadata-generation-failed
× Encountered error while generating package metadata.
╰─> See above for output.
hint: See above for details.
";
        check(build, &expect!["python setup.py egg_info did not run successfully: RuntimeError: needs a compiler"]);
        let wheel = format!("{build}ERROR: Failed building wheel for p\n");
        check(&wheel, &expect!["Failed building wheel for p: RuntimeError: needs a compiler"]);
    }
}
