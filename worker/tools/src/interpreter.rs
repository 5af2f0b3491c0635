//! Which program runs a script.

use atlas_tools::Language;

/// The words of the command before the script's path: those of its first line, or the usual ones of its language.
///
/// `is_there` tells whether a program is on the `PATH` of the tool.
pub(crate) fn of(language: Language, source: &str, is_there: impl Fn(&str) -> bool) -> Vec<String> {
    let words = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
    let first = source.lines().next().unwrap_or_default();
    if let Some(line) = first.strip_prefix("#!") {
        let line = words(line);
        let by_env = line.first().is_some_and(|program| program.ends_with("/env"));
        let skipped = if by_env { 1 + usize::from(line.get(1).is_some_and(|word| word == "-S")) } else { 0 };
        if line.len() > skipped {
            return line[skipped..].to_vec();
        }
    }
    match language {
        Language::Python => words("python3"),
        Language::TypeScript if is_there("tsx") => words("tsx"),
        // Part of Node.js; it runs the copy of a project or downloads one.
        Language::TypeScript => words("npx -y tsx"),
        Language::Bash => words("bash"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_line_decides() {
        let joined = |source: &str| of(Language::Python, source, |_| false).join(" ");
        assert_eq!(joined("x = 1\n"), "python3");
        assert_eq!(joined("#!/usr/bin/env python3.11 -u\n"), "python3.11 -u");
        assert_eq!(joined("#!/usr/bin/env -S uv run\n"), "uv run");
        assert_eq!(joined("#! /opt/python -I\n"), "/opt/python -I");
        assert_eq!(joined("#!\n"), "python3");
        assert_eq!(joined("#!/usr/bin/env\n"), "python3");
    }

    #[test]
    fn npx_stands_in_for_tsx() {
        assert_eq!(of(Language::TypeScript, "", |name| name == "tsx"), ["tsx"]);
        assert_eq!(of(Language::TypeScript, "", |_| false), ["npx", "-y", "tsx"]);
        assert_eq!(of(Language::TypeScript, "#!/usr/bin/env deno run", |_| false), ["deno", "run"]);
    }
}
