//! The tree as git sees it: tracked files, and new ones that git does not ignore.

use std::path::{Path, PathBuf};
use std::process::Command;

/// The root of the workspace.
pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().expect("the root exists")
}

/// Sources that others wrote: our rules are not theirs.
const FOREIGN: &str = "proto/json/";

/// Paths relative to the root that end in one of `endings`; an empty ending is every file. Without what others wrote.
pub(crate) fn files(endings: &[&str]) -> Vec<PathBuf> {
    let arguments = ["ls-files", "--cached", "--others", "--exclude-standard"];
    let output = Command::new("git").args(arguments).current_dir(root()).output().expect("git runs");
    assert!(output.status.success(), "git ls-files failed");
    let paths = String::from_utf8(output.stdout).expect("paths are UTF-8");
    let wanted = |path: &&str| endings.iter().any(|ending| path.ends_with(ending)) && root().join(path).is_file();
    let mut files: Vec<PathBuf> =
        paths.lines().filter(|path| !path.starts_with(FOREIGN)).filter(wanted).map(PathBuf::from).collect();
    files.sort();
    files
}

/// The text of a file of the tree.
pub(crate) fn read(path: &Path) -> String {
    std::fs::read_to_string(root().join(path))
        .unwrap_or_else(|error| panic!("could not read {}: {error}", path.display()))
}

/// Fails with all findings, one a line.
pub(crate) fn report(rule: &str, findings: &[String]) {
    assert!(findings.is_empty(), "{rule}:\n  {}", findings.join("\n  "));
}
