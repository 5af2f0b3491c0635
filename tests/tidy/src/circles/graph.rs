//! Which top-level modules of a crate reach each other by the paths in their sources.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use super::paths::{declared, written};

/// Modules that all reach each other.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Circle {
    pub(super) modules: BTreeSet<String>,
    /// Lines of their files, without tests.
    pub(super) lines: usize,
}

/// The name under which the root of a crate takes part, with what it declares beside modules and re-exports.
const ROOT: &str = "(root)";

/// Modules with the names that each uses.
type Uses<'a> = BTreeMap<&'a str, BTreeSet<&'a str>>;

/// The circles of a crate, the largest first. `files` are paths below its `src`, with their texts.
pub(super) fn circles(files: &[(PathBuf, String)]) -> Vec<Circle> {
    let only_tests = of_tests(files);
    let code: Vec<(Vec<String>, &str)> = files
        .iter()
        .map(|(path, text)| (place(path), without_tests(text)))
        .filter(|(place, _)| !only_tests.iter().any(|tests| place.starts_with(tests)))
        .collect();
    let modules: BTreeSet<&str> = code.iter().filter_map(|(place, _)| place.first()).map(String::as_str).collect();
    let known = exports(&code, &modules);
    let of_root: BTreeSet<&str> =
        code.iter().filter(|(place, _)| place.is_empty()).flat_map(|(_, text)| declared(text)).collect();

    let mut lines: BTreeMap<&str, usize> = BTreeMap::new();
    let mut uses = Uses::new();
    for (place, text) in &code {
        let own = place.first().map_or(ROOT, String::as_str);
        *lines.entry(own).or_default() += text.lines().count();
        let paths = written(text).into_iter().filter(|path| own != ROOT || !path.is_exported);
        let names = paths.filter_map(|path| absolute(place, &path.parts));
        let used = names.filter_map(|name| match modules.get(name) {
            Some(module) => Some(*module),
            None if own == ROOT => None,
            None => known.get(name).copied().or_else(|| of_root.contains(name).then_some(ROOT)),
        });
        uses.entry(own).or_default().extend(used.filter(|used| *used != own));
    }
    let mut found: Vec<Circle> = together(&uses)
        .into_iter()
        .map(|circle| Circle {
            lines: circle.iter().filter_map(|module| lines.get(module)).sum(),
            modules: circle.into_iter().map(str::to_owned).collect(),
        })
        .collect();
    found.sort_by_key(|circle| std::cmp::Reverse(circle.lines));
    found
}

/// The modules that a file is, from the top: `a/b.rs` is `a`, `b`. Empty for the root.
fn place(path: &Path) -> Vec<String> {
    let path = path.with_extension("");
    let mut parts: Vec<String> = path.iter().map(|part| part.to_string_lossy().into_owned()).collect();
    let is_root = matches!(parts.as_slice(), [one] if one == "lib" || one == "main");
    if is_root || parts.last().is_some_and(|last| last == "mod") {
        parts.pop();
    }
    parts
}

/// The modules that only tests have: declared behind `#[cfg(test)]`, or named `tests`.
fn of_tests(files: &[(PathBuf, String)]) -> BTreeSet<Vec<String>> {
    let mut found = BTreeSet::new();
    for (path, text) in files {
        let place = place(path);
        if let Some(at) = place.iter().position(|part| part == "tests") {
            found.insert(place.iter().take(at + 1).cloned().collect());
        }
        for after in text.split("#[cfg(test)]\n").skip(1) {
            let line = after.lines().next().unwrap_or_default().trim();
            let name = line.strip_prefix("mod ").or_else(|| line.strip_prefix("pub(crate) mod "));
            if let Some(name) = name.and_then(|name| name.strip_suffix(';')) {
                found.insert(place.iter().cloned().chain([name.to_owned()]).collect());
            }
        }
    }
    found
}

/// A file's text up to its own module of tests, which is the last thing in it.
fn without_tests(text: &str) -> &str {
    text.split("#[cfg(test)]\nmod tests {").next().unwrap_or(text)
}

/// The names that the root gives to what modules hold, with these modules.
fn exports<'a>(code: &[(Vec<String>, &'a str)], modules: &BTreeSet<&'a str>) -> BTreeMap<&'a str, &'a str> {
    let root = code.iter().filter(|(place, _)| place.is_empty());
    let paths = root.flat_map(|(place, text)| {
        written(text)
            .into_iter()
            .filter(|path| path.is_exported)
            .filter_map(|path| Some((path.name()?, *absolute(place, &path.parts).as_ref()?)))
    });
    paths.filter_map(|(name, module)| Some((name, *modules.get(module)?))).collect()
}

/// The top-level name that a path leads to, as seen from a module. None for a path that begins with a name in scope there.
fn absolute<'a>(place: &'a [String], path: &[&'a str]) -> Option<&'a str> {
    let mut base: Vec<&str> = match *path.first()? {
        "crate" => Vec::new(),
        "self" | "super" => place.iter().map(String::as_str).collect(),
        _ if place.is_empty() => Vec::new(),
        _ => return None,
    };
    for part in path {
        match *part {
            "crate" | "self" => {}
            "super" => drop(base.pop()),
            name => base.push(name),
        }
    }
    base.first().copied()
}

/// The sets of modules that all reach each other.
fn together<'a>(uses: &Uses<'a>) -> BTreeSet<BTreeSet<&'a str>> {
    let reached: Uses<'a> = uses.keys().map(|module| (*module, reachable(uses, module))).collect();
    let with = |one: &'a str| {
        let others = reached.get(one).into_iter().flatten().copied();
        others.filter(|other| reached.get(other).is_some_and(|back| back.contains(one))).collect::<BTreeSet<_>>()
    };
    uses.keys().map(|module| with(module)).filter(|circle| circle.len() > 1).collect()
}

fn reachable<'a>(uses: &Uses<'a>, from: &'a str) -> BTreeSet<&'a str> {
    let (mut found, mut open) = (BTreeSet::new(), vec![from]);
    while let Some(module) = open.pop() {
        open.extend(uses.get(module).into_iter().flatten().copied().filter(|used| found.insert(*used)));
    }
    found
}

/// What a made-up crate of these files has.
fn found(files: &[(&str, &str)]) -> Vec<String> {
    let files: Vec<_> = files.iter().map(|(path, text)| (PathBuf::from(path), (*text).to_owned())).collect();
    let shown = circles(&files).into_iter();
    shown.map(|circle| format!("{} {}", circle.lines, Vec::from_iter(circle.modules).join(" "))).collect()
}

#[test]
fn modules_that_reach_each_other_are_a_circle() {
    let files = [
        ("lib.rs", "mod a;\nmod b;\nmod c;\nmod d;\npub use b::B;\n"),
        ("a.rs", "use crate::B;\n"),
        ("b.rs", "mod inner;\n"),
        ("b/inner.rs", "use super::super::c::C;\n\n"),
        ("c.rs", "fn f() { crate::a::g() }\nuse super::d::D;\n"),
        ("d.rs", "// crate::a\n"),
    ];
    assert_eq!(found(&files), ["6 a b c"]);
}

#[test]
fn tests_make_no_circle_and_the_root_can_be_in_one() {
    let tests = [
        ("lib.rs", "mod a;\n#[cfg(test)]\nmod testing;\n"),
        ("a.rs", "use crate::testing::T;\n#[cfg(test)]\nmod tests {\nuse crate::a::A;\n}\n"),
        ("testing.rs", "use crate::a::A;\n"),
    ];
    assert_eq!(found(&tests), [""; 0]);
    let root = [("lib.rs", "mod a;\npub struct Options;\nfn main() { a::run() }\n"), ("a.rs", "use crate::Options;\n")];
    assert_eq!(found(&root), ["4 (root) a"]);
}
