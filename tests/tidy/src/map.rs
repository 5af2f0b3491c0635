//! The map of the code in `docs/internals/architecture.md`: every crate is on it, and the files that it names exist and belong to
//! the crates that it names.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::{manifests, tree};

const PAGE: &str = "docs/internals/architecture.md";
const HEADING: &str = "## Where to find things\n";
/// Past this nobody reads it from top to bottom.
const LINES_MAX: usize = 60;

/// A line of the map: who owns a subject, and where to begin to read.
#[derive(Debug, PartialEq, Eq)]
struct Row<'a> {
    subject: &'a str,
    crates: Vec<&'a str>,
    file: &'a str,
}

#[test]
fn every_crate_is_on_the_map() {
    let page = tree::read(Path::new(PAGE));
    let rows = rows(section(&page));
    let folders = folders();
    let is_named = |name: &&String| rows.iter().any(|row| row.crates.contains(&name.as_str()));
    let mut findings: Vec<_> =
        folders.keys().filter(|name| !is_named(name)).map(|name| format!("{name} has no row")).collect();
    for row in &rows {
        let unknown = row.crates.iter().filter(|name| !is_crate(&folders, name));
        findings.extend(unknown.map(|name| format!("{}: there is no crate {name}", row.subject)));
    }
    tree::report(&format!("{PAGE}, \"Where to find things\": name each crate in the row of its subject"), &findings);
}

#[test]
fn the_files_of_the_map_exist_and_belong_to_its_crates() {
    let page = tree::read(Path::new(PAGE));
    let folders = folders();
    let mut findings = Vec::new();
    for row in rows(section(&page)) {
        let is_own = |name: &&str| folders.get(*name).is_some_and(|folder| Path::new(row.file).starts_with(folder));
        if !tree::root().join(row.file).is_file() {
            findings.push(format!("{}: no such file {:?}", row.subject, row.file));
        } else if !row.crates.iter().any(is_own) {
            findings.push(format!("{}: {} belongs to none of {}", row.subject, row.file, row.crates.join(", ")));
        }
    }
    tree::report(&format!("{PAGE}, \"Where to find things\": name a file to open"), &findings);
}

#[test]
fn the_map_is_read_at_a_glance() {
    let page = tree::read(Path::new(PAGE));
    let lines = section(&page).lines().filter(|line| !line.is_empty()).count();
    assert!(
        lines <= LINES_MAX,
        "the map in {PAGE} has {lines} lines, more than {LINES_MAX}: let one row have more crates"
    );
}

/// Folders of our crates by their names.
fn folders() -> BTreeMap<String, PathBuf> {
    let folder = |manifest: PathBuf| {
        Some((manifests::package_name(&manifest)?, manifest.parent().unwrap_or(Path::new("")).to_owned()))
    };
    tree::files(&["Cargo.toml"]).into_iter().filter_map(folder).collect()
}

/// Whether a crate is ours, or stands in for a published one.
fn is_crate(folders: &BTreeMap<String, PathBuf>, name: &str) -> bool {
    folders.contains_key(name) || name == "serde_json"
}

/// What is between the heading of the map and the next one.
fn section(page: &str) -> &str {
    let after = page.split_once(HEADING).map_or("", |(_, after)| after);
    after.split("\n## ").next().unwrap_or_default()
}

/// The rows of the table.
fn rows(section: &str) -> Vec<Row<'_>> {
    let row = |line| {
        let mut cells = str::split(line, '|').map(str::trim).skip(1);
        let (subject, crates, file) = (cells.next()?, cells.next()?, cells.next()?);
        let file = file.strip_prefix('`')?.strip_suffix('`')?;
        Some(Row { subject, crates: crates.split(", ").collect(), file })
    };
    section.lines().filter_map(row).collect()
}

#[test]
fn the_helpers_find_what_they_should() {
    let page = "# P\n\n## Where to find things\n\nText.\n\n| subject | crate | file |\n|---|---|---|\n| a | x, y | `x/src/a.rs` |\n\n## Next\n";
    assert_eq!(rows(section(page)), [Row { subject: "a", crates: vec!["x", "y"], file: "x/src/a.rs" }]);
    assert_eq!(section(page).lines().filter(|line| !line.is_empty()).count(), 4);
}
