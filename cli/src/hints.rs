//! Checks that every command and option exists that a hint, an error or a page of the documentation names.

use std::fs;
use std::path::{Path, PathBuf};

use clap::{Command, CommandFactory};

use crate::arguments::Arguments;

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/..");

/// Verbs that take the options of controllers and workers. A text that names no program refers to these options only if
/// it is in the source of one of these verbs.
const CLUSTERS: [&str; 2] = ["dev", "dev-member"];

/// The generated pages of a server's options.
struct Servers {
    controller: String,
    worker: String,
}

impl Servers {
    fn read() -> Self {
        let page = |name: &str| fs::read_to_string(format!("{ROOT}/docs/reference/{name}-options.md")).expect("a page");
        Self { controller: page("controller"), worker: page("worker") }
    }
}

#[test]
fn options_in_hints_and_errors_exist() {
    let mut root = Arguments::command();
    root.build();
    let servers = Servers::read();
    let (mut wrong, mut seen) = (Vec::new(), 0);
    let mut check = |path: &str, text: &str| {
        for (before, option) in options(text) {
            seen += 1;
            if !exists(&root, &servers, path, before, option) {
                wrong.push(format!("{path}: --{option} in {text:?}"));
            }
        }
    };
    for folder in ["cli/src", "cli/dev/src", "cli/offline/src", "controller", "worker"] {
        for file in files(Path::new(ROOT), folder, "rs") {
            let source = fs::read_to_string(format!("{ROOT}/{file}")).expect("a file of ours");
            let source = source.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
            // A literal of a single word is an argument for another program, not a hint.
            literals(source).iter().filter(|text| text.contains(' ')).for_each(|text| check(&file, text));
        }
    }
    for file in files(Path::new(ROOT), "docs/reference/errors", "md") {
        let page = fs::read_to_string(format!("{ROOT}/{file}")).expect("a page");
        page.lines().for_each(|line| check(&file, line));
    }
    assert!(seen > 50, "only {seen} options are named");
    assert!(wrong.is_empty(), "these options do not exist:\n{}", wrong.join("\n"));
}

#[test]
fn an_option_belongs_to_the_program_before_it() {
    let mut root = Arguments::command();
    root.build();
    let servers = Servers { controller: "`--keys-max`".to_owned(), worker: "`--label`".to_owned() };
    let wrong = |path: &str, text: &str| {
        let all = options(text).into_iter();
        all.filter(|(before, option)| !exists(&root, &servers, path, before, option))
            .map(|(_, option)| option.to_owned())
            .collect::<Vec<_>>()
    };
    let doctor = "cli/src/command/doctor.rs";
    assert_eq!(wrong(doctor, "raise --port"), ["port"]);
    assert_eq!(wrong(doctor, "raise atlas-controller --keys-max, --label"), ["label"]);
    assert_eq!(wrong(doctor, "atlasctl job list --limit N, or --all; deploy with --no-test"), [""; 0]);
    assert_eq!(wrong(doctor, "atlasctl job show --limit N   or use another: --server URL"), ["limit"]);
    assert_eq!(wrong("cli/src/command/dev.rs", "take --port"), [""; 0]);
    assert_eq!(wrong("worker/node/src/options.rs", "take --label or --port"), ["port"]);
    let source = "// \"a --b\"\nlet c = '\"'; f(\"a \\\"--x\\\" \\\n   b\", r#\"--y \"z\"\"#);";
    assert_eq!(literals(source), ["a \"--x\" b", "--y \"z\""]);
}

#[test]
fn commands_in_hints_errors_and_pages_exist() {
    let mut root = Arguments::command();
    root.build();
    let (mut wrong, mut seen) = (Vec::new(), 0);
    let mut check = |path: &str, text: &str| {
        for (at, _) in text.match_indices("atlasctl ") {
            // `--audience atlasctl` is a name.
            if text[..at].split_whitespace().last().is_some_and(|before| before.starts_with("--")) {
                continue;
            }
            seen += 1;
            let line = text[at..].lines().next().unwrap_or_default();
            if let Err(word) = names_command(&root, line) {
                wrong.push(format!("{path}: no command \"{word}\" in {line:?}"));
            }
        }
    };
    for folder in ["cli", "controller", "worker", "agents", "deploy", "k8s"] {
        // Scripts of shells are no hints.
        let scripts = "cli/src/command/completion.rs";
        for file in files(Path::new(ROOT), folder, "rs").into_iter().filter(|file| file != scripts) {
            let source = fs::read_to_string(format!("{ROOT}/{file}")).expect("a file of ours");
            let source = source.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
            literals(source).iter().for_each(|text| check(&file, text));
        }
    }
    for file in files(Path::new(ROOT), "docs", "md").into_iter().chain(["README.md".to_owned()]) {
        // What was decided and done once names the commands of that time.
        if ["docs/adr", "docs/changes", "docs/internals"].iter().any(|past| file.starts_with(past)) {
            continue;
        }
        let page = fs::read_to_string(format!("{ROOT}/{file}")).expect("a page");
        code_in(&page).iter().for_each(|code| check(&file, code));
    }
    assert!(seen > 500, "only {seen} commands are named");
    assert!(wrong.is_empty(), "these commands do not exist:\n{}", wrong.join("\n"));
}

#[test]
fn a_command_is_followed_to_its_last_verb() {
    let mut root = Arguments::command();
    root.build();
    let check = |line: &str| names_command(&root, line).map_err(str::to_owned);
    for line in [
        "atlasctl job list --limit 5",
        "atlasctl -n team job list",
        "atlasctl --output json agent show x",
        "atlasctl dev --port 0",
        "atlasctl dev start c1",
        "atlasctl run hello name=Ada",
        "atlasctl NOUN VERB",
        "atlasctl {verb} x",
        "atlasctl job: the verbs of jobs",
        "atlasctl help job",
    ] {
        assert_eq!(check(line), Ok(()), "{line}");
    }
    assert_eq!(check("atlasctl jbo list"), Err("jbo".to_owned()));
    assert_eq!(check("atlasctl job lst --limit 5"), Err("lst".to_owned()));
    assert_eq!(check("atlasctl -n team job lst"), Err("lst".to_owned()));
    assert_eq!(code_in("a `b c` d `e`\n```sh\nf\n```\ng"), ["b c", "e", "f"]);
}

/// Follows the words of a command line through the tree of commands; the word that names none is the error.
fn names_command<'t>(root: &Command, line: &'t str) -> Result<(), &'t str> {
    /// Words after the program's name in sentences about it.
    const PROSE: [&str; 11] = ["and", "cannot", "in", "is", "of", "on", "or", "renews", "then", "to", "was"];
    let mut command = root;
    let mut words = line.split_whitespace().skip(1);
    while let Some(whole) = words.next() {
        let word = whole.trim_end_matches([',', ';', ':', '.', ')', '`', '"', '\'', '|']);
        if let Some(option) = word.strip_prefix('-') {
            let name = option.trim_start_matches('-').split('=').next().unwrap_or_default();
            let found = command.get_arguments().chain(root.get_arguments()).find(|arg| {
                arg.get_long() == Some(name)
                    || arg.get_short().is_some_and(|short| name.len() == 1 && name.starts_with(short))
            });
            if found.is_some_and(|arg| arg.get_action().takes_values()) && !option.contains('=') {
                words.next();
            }
        } else if !command.has_subcommands() || !word.starts_with(|c: char| c.is_ascii_lowercase()) || word == "help" {
            return Ok(());
        } else if let Some(found) = command.find_subcommand(word) {
            command = found;
        } else {
            return if PROSE.contains(&word) { Ok(()) } else { Err(word) };
        }
        if whole != word {
            return Ok(());
        }
    }
    Ok(())
}

/// The code of a page of Markdown: lines of blocks, and spans.
fn code_in(page: &str) -> Vec<&str> {
    let (mut code, mut block) = (Vec::new(), false);
    for line in page.lines() {
        if line.trim_start().starts_with("```") {
            block = !block;
        } else if block {
            code.push(line);
        } else {
            code.extend(line.split('`').skip(1).step_by(2));
        }
    }
    code
}

/// Each option in a text, with the preceding text of the same command or sentence.
fn options(text: &str) -> Vec<(&str, &str)> {
    let mut found = Vec::new();
    for (at, _) in text.match_indices("--") {
        let (before, name) = (&text[..at], &text[at + 2..]);
        let ends = name.find(|c: char| !c.is_ascii_lowercase() && !c.is_ascii_digit() && c != '-');
        let name = name[..ends.unwrap_or(name.len())].trim_end_matches('-');
        if before.ends_with(|c: char| c.is_alphanumeric() || c == '-')
            || !name.starts_with(|c: char| c.is_ascii_lowercase())
        {
            continue;
        }
        let starts = ["   or", ";", ". "].iter().filter_map(|end| before.rfind(end)).max().unwrap_or(0);
        found.push((&before[starts..], name));
    }
    found
}

fn exists(root: &Command, servers: &Servers, path: &str, before: &str, option: &str) -> bool {
    // `--name` or `--name VALUE`
    let lists = |page: &str| page.contains(&format!("`--{option}`")) || page.contains(&format!("`--{option} "));
    let served = lists(&servers.controller)
        || lists(&servers.worker)
        || ["config", "print-config", "check-config"].contains(&option);
    let last = |program: &'static str| before.rfind(program).map(|at| (at, program));
    match ["atlasctl", "atlas-controller", "atlas-worker"].into_iter().filter_map(last).max() {
        Some((at, "atlasctl")) => has(verb(root, before[at..].split_whitespace().skip(1)), option),
        Some((_, "atlas-controller")) => lists(&servers.controller),
        Some(_) => lists(&servers.worker),
        None if path.starts_with("cli/") => unnamed(root, path, before, option),
        // Pages name their program in prose, which this test cannot read, so any program's option is accepted.
        None if path.starts_with("docs/") => served || of_a_cluster(root, option) || anywhere(root, option),
        None => served,
    }
}

/// Whether a text without a program can refer to this option: to an option of the verb in whose file the text is, or of
/// a verb that the text names.
fn unnamed(root: &Command, path: &str, before: &str, option: &str) -> bool {
    let words = before.split(|c: char| !c.is_ascii_lowercase());
    let named = words.filter_map(|word| root.find_subcommand(word)).any(|verb| anywhere(verb, option));
    let own = match path.strip_prefix("cli/src/command/") {
        Some(file) => verb(root, file.trim_end_matches(".rs").split('/')),
        None if path.starts_with("cli/dev/") => return of_a_cluster(root, option),
        None => root,
    };
    named || anywhere(own, option)
}

fn of_a_cluster(root: &Command, option: &str) -> bool {
    CLUSTERS.iter().filter_map(|name| root.find_subcommand(name)).any(|verb| has(verb, option))
}

/// The command that the words name; words that name no command are skipped.
fn verb<'a, 'b>(root: &'a Command, words: impl Iterator<Item = &'b str>) -> &'a Command {
    words.fold(root, |command, word| {
        command.find_subcommand(word.trim_matches(['`', ',']).replace('_', "-")).unwrap_or(command)
    })
}

fn has(command: &Command, option: &str) -> bool {
    command.get_arguments().any(|argument| argument.get_long() == Some(option))
}

/// Whether a command or one of its subcommands has the option.
fn anywhere(command: &Command, option: &str) -> bool {
    let below = command.get_subcommands().filter(|child| !CLUSTERS.contains(&child.get_name()));
    has(command, option) || below.into_iter().any(|child| anywhere(child, option))
}

/// The paths of files below a folder, from the root of the repository.
fn files(root: &Path, folder: &str, extension: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut folders = vec![PathBuf::from(folder)];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(root.join(&folder)).expect("a folder of ours").flatten() {
            let path = folder.join(entry.file_name());
            let name = entry.file_name().to_string_lossy().into_owned();
            if entry.path().is_dir() {
                if !["tests", "target"].contains(&name.as_str()) {
                    folders.push(path);
                }
            } else if !["tests.rs", "hints.rs"].contains(&name.as_str())
                && path.extension().is_some_and(|kind| kind == extension)
            {
                found.push(path.to_string_lossy().into_owned());
            }
        }
    }
    found
}

/// The string literals of a Rust source; comments are skipped.
fn literals(source: &str) -> Vec<String> {
    let (mut found, mut rest) = (Vec::new(), source);
    while let Some(at) = rest.find(['"', '/', '\'']) {
        let (before, here) = rest.split_at(at);
        rest = if here.starts_with("//") {
            here.split_once('\n').map_or("", |(_, rest)| rest)
        } else if let Some(rest) = here.strip_prefix("'\"'") {
            rest
        } else if !here.starts_with('"') {
            &here[1..]
        } else {
            let marks = before.len() - before.trim_end_matches('#').len();
            let raw = before.trim_end_matches('#').ends_with('r');
            let (text, rest) = if raw { raw_literal(&here[1..], marks) } else { literal(&here[1..]) };
            found.push(text);
            rest
        };
    }
    found
}

fn raw_literal(rest: &str, marks: usize) -> (String, &str) {
    let (text, rest) = rest.split_once(&format!("\"{}", "#".repeat(marks))).unwrap_or((rest, ""));
    (text.to_owned(), rest)
}

fn literal(rest: &str) -> (String, &str) {
    let mut text = String::new();
    let mut characters = rest.char_indices();
    while let Some((at, c)) = characters.next() {
        match c {
            '"' => return (text, &rest[at + 1..]),
            '\\' => match characters.next() {
                // A backslash at the end of a line: the literal continues after the whitespace of the next line.
                Some((at, '\n')) => {
                    let (more, rest) = literal(rest[at..].trim_start());
                    return (text + &more, rest);
                }
                Some((_, 'n')) => text.push('\n'),
                Some((_, c)) => text.push(c),
                None => {}
            },
            c => text.push(c),
        }
    }
    (text, "")
}
