//! Circles of modules inside a crate: top-level modules that all reach each other by what they use.
//!
//! A circle is understood, tested and taken out as a whole or not at all, so a large one is a wall that is missing.

mod graph;
mod paths;

use std::path::PathBuf;

use crate::{manifests, tree};

/// The most lines of a circle that needs no row.
const LINES_MAX: usize = 2_000;

/// Rows have full steps of lines, so that not every edit renews them.
const STEP: usize = 500;

/// The circles that are larger, by crate: modules, and lines rounded up to a step. A row may only shrink: who takes a module out of a
/// circle renews it, and what would enlarge it is built another way.
const TABLE: &[(&str, usize, usize)] = &[("atlas-sim", 13, 4_500), ("atlas-turmoil", 14, 4_500)];

#[test]
fn no_circle_of_modules_is_large() {
    let sources: Vec<(PathBuf, String)> =
        tree::files(&[".rs"]).into_iter().map(|path| (path.clone(), tree::read(&path))).collect();
    let mut found: Vec<(String, usize, usize)> = Vec::new();
    for manifest in tree::files(&["Cargo.toml"]) {
        let Some(name) = manifests::package_name(&manifest) else { continue };
        let source = manifest.with_file_name("src");
        let own = |(path, text): &(PathBuf, String)| Some((path.strip_prefix(&source).ok()?.to_owned(), text.clone()));
        let files: Vec<(PathBuf, String)> = sources.iter().filter_map(own).collect();
        let large = graph::circles(&files).into_iter().filter(|circle| circle.lines > LINES_MAX);
        found.extend(large.map(|circle| (name.clone(), circle.modules.len(), circle.lines.next_multiple_of(STEP))));
    }
    let rows = TABLE.iter().map(|(name, modules, lines)| ((*name).to_owned(), *modules, *lines));
    let rows: Vec<_> = rows.collect();
    let row = |(name, modules, lines): &(String, usize, usize)| format!("(\"{name}\", {modules}, {lines})");
    let mut findings: Vec<String> = found
        .iter()
        .filter(|circle| !rows.contains(circle))
        .map(|circle| format!("{} is not in the table", row(circle)))
        .collect();
    findings.extend(
        rows.iter()
            .filter(|circle| !found.contains(circle))
            .map(|circle| format!("{} is in the table alone", row(circle))),
    );
    tree::report(
        "a circle of modules (crate, modules, lines) that is new or larger is cut, a smaller one gets its smaller row in tests/tidy/src/circles.rs",
        &findings,
    );
}
