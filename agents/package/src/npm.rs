//! Folders `node_modules` as npm leaves them. Packages that only development needs, such as compilers, are not packed: npm knows which.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::Read as _;
use std::path::Path;

use serde_json::Value;

/// The folder of packages.
pub(crate) const FOLDER: &str = "node_modules";

/// What npm notes in it of what it has installed.
const NOTES: &str = ".package-lock.json";

/// The largest notes that are read. Those of a package that can be deployed are much smaller.
const NOTES_BYTES_MAX: u64 = 16 << 20;

/// The packages of a folder that only development needs: `typescript`, `@types/node`. None without notes that can be read.
pub(crate) fn development(folder: &Path) -> BTreeSet<String> {
    let mut text = String::new();
    let read = File::open(folder.join(NOTES)).and_then(|file| file.take(NOTES_BYTES_MAX).read_to_string(&mut text));
    let notes = read.ok().and_then(|_| serde_json::from_str::<Value>(&text).ok()).unwrap_or_default();
    let packages = notes["packages"].as_object().into_iter().flatten();
    let named = |path: &String| Some(path.strip_prefix(FOLDER)?.strip_prefix('/')?.to_owned());
    packages.filter(|(_, package)| package["dev"] == true).filter_map(|(path, _)| named(path)).collect()
}
