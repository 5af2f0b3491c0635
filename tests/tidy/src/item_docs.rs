//! Public items of library crates have a comment. Fields and variants need one only where their name does not say everything,
//! which is why this is not rustc's `missing_docs`.

use std::path::Path;

use crate::tree;

/// Crates whose public items others read.
const CRATES: [&str; 41] = [
    "agents/bundled",
    "agents/contract",
    "agents/model",
    "agents/package",
    "cli/dev",
    "cli/offline",
    "controller/desk",
    "controller/conversations",
    "controller/duty",
    "controller/histogram",
    "controller/history",
    "controller/log",
    "controller/recovery",
    "controller/replica",
    "controller/scheduler",
    "controller/server",
    "controller/openai",
    "controller/lines",
    "controller/trail",
    "controller/identity",
    "controller/vault",
    "controller/upkeep",
    "controller/platform",
    "controller/records",
    "controller/registry",
    "controller/jobs",
    "controller/events",
    "controller/service",
    "controller/state",
    "proto/env",
    "proto/telemetry",
    "proto/allocation",
    "proto/format",
    "proto/types",
    "tests/conformance",
    "tests/linearizability",
    "tests/sim",
    "tests/turmoil",
    "worker/inventory",
    "worker/llm",
    "worker/slots",
];

#[test]
fn public_items_say_what_they_are() {
    let mut findings = Vec::new();
    let ours = |path: &&std::path::PathBuf| CRATES.iter().any(|folder| path.starts_with(Path::new(folder).join("src")));
    for path in tree::files(&[".rs"]).iter().filter(ours).filter(|path| !path.iter().any(|part| part == "tests")) {
        findings.extend(undocumented(&tree::read(path)).iter().map(|item| format!("{}:{item}", path.display())));
    }
    tree::report("a public item has a comment (`///`)", &findings);
}

/// Line and text of each public item without a comment, tests left out.
fn undocumented(text: &str) -> Vec<String> {
    let code = text.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
    let (mut documented, mut attribute) = (false, 0_i32);
    let mut found = Vec::new();
    for (number, line) in code.lines().enumerate() {
        let line = line.trim();
        let depth = || line.matches(['(', '[']).count() as i32 - line.matches([')', ']']).count() as i32;
        if attribute > 0 {
            attribute += depth();
        } else if line.starts_with("#[") {
            documented |= line.starts_with("#[doc");
            attribute = depth();
        } else if line.starts_with("///") || line.starts_with("$(#[") {
            documented = true;
        } else {
            if is_item(line) && !documented {
                found.push(format!("{}: {line}", number + 1));
            }
            documented = false;
        }
    }
    found
}

fn is_item(line: &str) -> bool {
    let Some(mut rest) = line.strip_prefix("pub ") else { return false };
    for word in ["const ", "async ", "unsafe "] {
        let is_constant = word == "const " && !rest.starts_with("const fn ");
        rest = if is_constant { rest } else { rest.strip_prefix(word).unwrap_or(rest) };
    }
    ["fn ", "struct ", "enum ", "trait ", "type ", "const ", "static "].iter().any(|word| rest.starts_with(word))
}

#[test]
fn the_helper_finds_what_it_should() {
    let text = "pub struct A {\n    pub b: u8,\n}\n/// Said.\n#[derive(\n    Debug,\n)]\npub enum C { D }\n\n\
                impl A {\n    pub const fn e() {}\n    pub(crate) fn f() {}\n}\npub use g;\npub mod h;\n";
    assert_eq!(undocumented(text), ["1: pub struct A {", "11: pub const fn e() {}"]);
}
