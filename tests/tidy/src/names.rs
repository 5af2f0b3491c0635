//! Names of public types: a noun that says what a value is, and one that is not taken by types of many other crates.
//!
//! `Told` or `Asked` says what was done, and not what somebody holds who has one. A name that five crates use means five things to a reader.
//! Both rules began with names that existed; their tables only get shorter.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use crate::{manifests, tree};

/// Participles of verbs that do not end in `ed`, as far as somebody may name a type so.
const IRREGULAR: &[&str] = &[
    "Begun", "Broken", "Built", "Caught", "Chosen", "Cut", "Done", "Drawn", "Found", "Given", "Gone", "Grown", "Heard",
    "Held", "Hidden", "Kept", "Known", "Left", "Lost", "Made", "Met", "Overdue", "Owed", "Paid", "Read", "Said",
    "Seen", "Sent", "Shown", "Shut", "Spent", "Split", "Spoken", "Taken", "Thrown", "Told", "Torn", "Written",
];

/// Nouns that end like participles.
const NOUNS: &[&str] = &[
    "Beginning",
    "Ending",
    "Feed",
    "Finding",
    "Firing",
    "Listing",
    "Mapping",
    "Meaning",
    "Need",
    "Recording",
    "Routing",
    "Sampling",
    "Schooling",
    "Seed",
    "Setting",
    "Spelling",
    "Standing",
    "Thing",
    "Warning",
];

/// Participles that are names of public types, and of how many. Rename one, and take it from here.
const PARTICIPLES: &[(&str, usize)] = &[
    ("Answered", 1),
    ("Applied", 1),
    ("Arriving", 1),
    ("Attempted", 1),
    ("Backfilled", 1),
    ("Broken", 1),
    ("Carried", 1),
    ("Enrolled", 1),
    ("Failed", 1),
    ("Fetched", 1),
    ("Following", 1),
    ("Granted", 1),
    ("Held", 1),
    ("Issued", 1),
    ("Joining", 1),
    ("Loaded", 1),
    ("Made", 1),
    ("Outgoing", 1),
    ("Parked", 1),
    ("Pinned", 1),
    ("Received", 1),
    ("Refused", 1),
    ("Registered", 1),
    ("Running", 1),
    ("Selected", 1),
    ("Shown", 1),
    ("Spawned", 1),
    ("Spawning", 1),
    ("Submitted", 1),
    ("Unwanted", 1),
];

/// Names that many crates may have: a reader knows what they mean in each.
const SHARED: &[&str] = &["Error", "Kind", "Options"];

/// In how many crates a name may be that of a public type.
const CRATES_MAX: usize = 3;

/// Other names that more crates have, and how many. Rename one, and lower the number.
const CROWDED: &[(&str, usize)] = &[
    ("Decision", 4),
    ("Effect", 5),
    ("Event", 4),
    ("Failure", 4),
    ("Limits", 7),
    ("Plan", 5),
    ("Script", 4),
    ("Task", 4),
];

#[test]
fn public_types_are_nouns() {
    let types = types();
    let known: BTreeMap<&str, usize> = PARTICIPLES.iter().copied().collect();
    let found: BTreeMap<&str, &Vec<Declared>> =
        types.iter().filter(|(name, _)| is_participle(name)).map(|(name, places)| (name.as_str(), places)).collect();
    let mut findings = Vec::new();
    for (name, places) in &found {
        if places.len() > known.get(name).copied().unwrap_or_default() {
            let places: Vec<_> = places.iter().map(|place| place.file.display().to_string()).collect();
            findings.push(format!("{name} says what was done, and not what it is: {}", places.join(", ")));
        }
    }
    findings.extend(less(&known, |name| found.get(name).map_or(0, |places| places.len()), "PARTICIPLES"));
    tree::report("name a public type with a noun (`Told` is a `Notice`)", &findings);
}

#[test]
fn names_of_public_types_belong_to_few_crates() {
    let known: BTreeMap<&str, usize> = CROWDED.iter().copied().collect();
    let mut crates: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for (name, places) in types() {
        crates.entry(name).or_default().extend(places.into_iter().map(|place| place.package));
    }
    let mut findings = Vec::new();
    for (name, packages) in crates.iter().filter(|(name, _)| !SHARED.contains(&name.as_str())) {
        if packages.len() > known.get(name.as_str()).copied().unwrap_or(CRATES_MAX) {
            let packages: Vec<_> = packages.iter().map(String::as_str).collect();
            findings.push(format!("{name} is a type of {}", packages.join(", ")));
        }
    }
    let count = |name: &str| {
        Some(crates.get(name).map_or(0, BTreeSet::len)).filter(|count| *count > CRATES_MAX).unwrap_or_default()
    };
    findings.extend(less(&known, count, "CROWDED"));
    tree::report("a name in more than three crates means too many things: say what kind of it this is", &findings);
}

/// Rows of a table that say more than what is left.
fn less<'n>(
    known: &'n BTreeMap<&str, usize>,
    count: impl Fn(&str) -> usize + 'n,
    table: &str,
) -> impl Iterator<Item = String> + 'n {
    let table = format!("{table} in tests/tidy/src/names.rs");
    let left =
        known.iter().map(move |(name, most)| (*name, *most, count(name))).filter(|(_, most, count)| count < most);
    left.map(move |(name, _, count)| match count {
        0 => format!("{name} is gone: take it from {table}"),
        count => format!("{name} is left {count} times: lower the number in {table}"),
    })
}

/// Where a public type is declared.
struct Declared {
    package: String,
    file: PathBuf,
}

/// The public types of our crates by their names, tests left out.
fn types() -> BTreeMap<String, Vec<Declared>> {
    let package = |manifest: &Path| Some((manifest.parent()?.to_owned(), manifests::package_name(manifest)?));
    let packages: Vec<(PathBuf, String)> =
        tree::files(&["Cargo.toml"]).iter().filter_map(|path| package(path)).collect();
    let is_test =
        |path: &Path| path.starts_with("tests") || path.iter().any(|part| part == "tests" || part == "tests.rs");
    let mut types: BTreeMap<String, Vec<Declared>> = BTreeMap::new();
    for file in tree::files(&[".rs"]).into_iter().filter(|path| !is_test(path)) {
        let holding = packages.iter().filter(|(folder, _)| file.starts_with(folder));
        let Some((_, package)) = holding.max_by_key(|(folder, _)| folder.as_os_str().len()) else { continue };
        for name in declared(&tree::read(&file)) {
            types.entry(name).or_default().push(Declared { package: package.clone(), file: file.clone() });
        }
    }
    assert!(types.len() > 500, "the types are found");
    types
}

/// The names of the public types of a file, its own tests left out.
fn declared(text: &str) -> Vec<String> {
    let code = text.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
    let name = |line: &str| {
        let rest = line.trim_start().strip_prefix("pub ")?;
        let rest = ["struct ", "enum ", "trait ", "type ", "union "].iter().find_map(|word| rest.strip_prefix(word))?;
        let end = rest.find(|letter: char| !letter.is_alphanumeric() && letter != '_').unwrap_or(rest.len());
        Some(rest[..end].to_owned())
    };
    code.lines().filter_map(name).collect()
}

/// Whether a name is a participle, and nothing else.
fn is_participle(name: &str) -> bool {
    let is_word = name.chars().filter(|letter| letter.is_uppercase()).count() == 1;
    let is_one = IRREGULAR.contains(&name) || name.ends_with("ed") || name.ends_with("ing");
    is_word && is_one && !NOUNS.contains(&name)
}

#[test]
fn the_helpers_find_what_they_should() {
    let text = "pub struct Told(u8);\n    pub enum Asked<'a> {}\npub(crate) struct Not;\npub type X = u8;\n#[cfg(test)]\nmod tests {\n    pub struct No;\n";
    assert_eq!(declared(text), ["Told", "Asked", "X"]);
    assert!(is_participle("Told") && is_participle("Asked") && is_participle("Waiting"));
    assert!(!is_participle("Finding") && !is_participle("AskedQuestion") && !is_participle("Options"));
}
