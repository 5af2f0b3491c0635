//! Citations: promises, decisions, sections of compatibility and the files that documents name all exist in the repository.

use std::collections::BTreeSet;
use std::path::Path;

use crate::tree;

const ENDINGS: [&str; 7] = [".rs", ".proto", ".py", ".toml", ".md", ".sh", ".json"];
const PROMISES: &str = "docs/internals/promises.md";
const ARCHITECTURE: &str = "docs/internals/architecture.md";
const COMPATIBILITY: &str = "docs/internals/compatibility.md";

#[test]
fn nothing_cites_a_document_outside_the_repository() {
    // Spelt in halves, so that this file does not find itself.
    let words = [
        concat!("spec", " §"),
        concat!("design", " §"),
        concat!("spec", "/spec"),
        concat!("reliability", ".md"),
        concat!("source", " system"),
    ];
    let found = |text: &str| words.iter().filter(|word| text.contains(**word)).map(|word| (*word).to_owned()).collect();
    report("cite a promise, an ADR or a section of compatibility.md; write Atlas for Python", found);
}

#[test]
fn cited_promises_exist() {
    let known: BTreeSet<String> = after(&read(PROMISES), "| B.", digits).collect();
    assert!(known.len() > 30, "{PROMISES} lists the promises");
    report(&format!("no such promise in {PROMISES}"), |text| {
        let cited = after(text, concat!("B", "."), digits).filter(|number| !known.contains(number));
        cited.map(|number| format!("B.{number}")).collect()
    });
}

#[test]
fn cited_decisions_exist() {
    let decisions = tree::files(&[".md"]).into_iter().filter(|path| path.starts_with("docs/adr"));
    let number = |path: std::path::PathBuf| path.file_name()?.to_str()?.get(..4)?.parse::<u32>().ok();
    let known: BTreeSet<u32> = decisions.filter_map(number).collect();
    report("no such decision in docs/adr", |text| {
        let cited = after(text, concat!("ADR", " "), digits).filter_map(|text| text.parse().ok());
        cited.filter(|number| !known.contains(number)).map(|number| format!("ADR {number}")).collect()
    });
}

#[test]
fn cited_sections_of_compatibility_exist() {
    let text = read(COMPATIBILITY);
    let starts = |line: &str| {
        after(line.trim_start_matches("## "), "§", section)
            .next()
            .filter(|_| line.trim_start_matches("## ").starts_with('§'))
    };
    let known: BTreeSet<String> = text.lines().filter_map(starts).collect();
    assert!(known.len() > 30, "{COMPATIBILITY} has the sections");
    report(&format!("no such section in {COMPATIBILITY}"), |text| {
        let cited = after(text, concat!("compatibility", " §"), section).filter(|section| !known.contains(section));
        cited.map(|section| format!("§{section}")).collect()
    });
}

#[test]
fn files_that_pages_for_engineers_name_exist() {
    let checklists = tree::files(&[".md"]).into_iter().filter(|path| path.starts_with("docs/checklists"));
    let pages = [PROMISES, COMPATIBILITY, ARCHITECTURE].map(std::path::PathBuf::from).into_iter().chain(checklists);
    let mut findings = Vec::new();
    for page in pages {
        let text = tree::read(&page);
        for path in paths(&text).filter(|path| !tree::root().join(path).exists()) {
            findings.push(format!("{}: {path}", page.display()));
        }
    }
    tree::report("no such file", &findings);
}

/// Paths of the tree in quotes, those with a place for a name (`KIND.rs`, `EXXXX.md`, `*`, `<data>`, `…`) up to the folder before it.
fn paths(text: &str) -> impl Iterator<Item = &str> {
    let folders = ["agents/", "cli/", "controller/", "deploy/", "docs/", "k8s/", "proto/", "tests/", "worker/"];
    let quoted = text.lines().flat_map(|line| line.split('`').skip(1).step_by(2));
    let open = |part: &str| {
        let stem = part.split('.').next().unwrap_or_default();
        part.contains(['*', '<', '…', '{'])
            || (stem != "README" && stem.len() > 2 && stem.chars().all(|letter| letter.is_ascii_uppercase()))
    };
    let known = move |path: &str| {
        let end = path.split('/').take_while(|part| !open(part)).map(|part| part.len() + 1).sum::<usize>();
        end.min(path.len())
    };
    quoted
        .filter(move |path| folders.iter().any(|folder| path.starts_with(folder)) && !path.contains(' '))
        .map(move |path| &path[..known(path)])
}

fn read(path: &str) -> String {
    tree::read(Path::new(path))
}

/// Reports what `wrong` finds in each line of each text of the tree.
fn report(rule: &str, wrong: impl Fn(&str) -> Vec<String>) {
    let mut findings = Vec::new();
    // The page of promises explains which numbers are missing.
    for path in tree::files(&ENDINGS).iter().filter(|path| !path.ends_with(PROMISES)) {
        for (number, line) in tree::read(path).lines().enumerate() {
            findings.extend(wrong(line).iter().map(|what| format!("{}:{}: {what}", path.display(), number + 1)));
        }
    }
    tree::report(rule, &findings);
}

/// What `take` accepts behind each `mark` that begins a word.
fn after<'a>(text: &'a str, mark: &'a str, take: fn(&str) -> &str) -> impl Iterator<Item = String> + 'a {
    let places = text.match_indices(mark).map(|(at, _)| at);
    let begins = |at: &usize| !text[..*at].ends_with(|before: char| before.is_alphanumeric() || before == '.');
    places.filter(begins).map(move |at| take(&text[at + mark.len()..]).to_owned()).filter(|found| !found.is_empty())
}

/// The digits at the beginning.
fn digits(text: &str) -> &str {
    let end = text.find(|next: char| !next.is_ascii_digit()).unwrap_or(text.len());
    &text[..end]
}

/// A number such as `7` or `7.1` at the beginning.
fn section(text: &str) -> &str {
    let end = text.find(|next: char| !next.is_ascii_digit() && next != '.').unwrap_or(text.len());
    text[..end].trim_end_matches('.')
}

#[test]
fn the_helpers_find_what_they_should() {
    let found = |text, mark, take| after(text, mark, take).collect::<Vec<_>>();
    assert_eq!(found("(X.16, X.7) AX.3 1.X.4 X.y", "X.", digits), ["16", "7"]);
    assert_eq!(found("see §7.1. Then §8 and §y", "§", section), ["7.1", "8"]);
    let named =
        "`cli/src/a.rs`, `docs/KIND.md`, `agents/x/NAME/y.rs`, `cargo test` and `worker/*`\nin `proto/…`, `k8s/chart`";
    assert_eq!(
        paths(named).collect::<Vec<_>>(),
        ["cli/src/a.rs", "docs/", "agents/x/", "worker/", "proto/", "k8s/chart"]
    );
}
