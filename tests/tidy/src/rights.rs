//! Rights are decided at the gate: doors name operations, and no door decides by itself.

use std::path::Path;

use crate::tree;

/// The files of the controller that may name a right besides the rows of operations, and why.
const WITH_RIGHTS: &[(&str, &str)] = &[
    ("controller/desk/src/ownership.rs", "what one began oneself"),
    ("controller/desk/src/gate.rs", "each kind of object has a right of its own"),
    ("controller/server/src/http/access.rs", "public operations take no token"),
];

/// The crates that define rights.
const OF_RIGHTS: [&str; 2] = ["controller/access", "controller/objects"];

/// The doors. What decides about callers is in the desk, which they do not reach: they name operations, and what `atlas-service` hands on of
/// callers, submissions and keys can neither check a right, act for somebody else, nor open a secret.
const DOORS: [&str; 3] = ["controller/server", "controller/gateway", "controller/webhooks"];

/// What only the functions behind the doors use: the crate, and its module.
const BEHIND_DOORS: [(&str, &str); 6] = [
    ("atlas-desk", "gate"),
    ("atlas-desk", "on_behalf"),
    ("atlas-desk", "ownership"),
    ("atlas-desk", "requests"),
    ("atlas-jobs", "relations"),
    ("atlas-vault", "seal"),
];

#[test]
fn doors_do_not_reach_what_is_behind_them() {
    let mut findings = Vec::new();
    let handed_on = tree::read(Path::new("controller/service/src/lib.rs"));
    for (name, module) in BEHIND_DOORS {
        for door in DOORS {
            if tree::read(&Path::new(door).join("Cargo.toml")).contains(&format!("{name}.")) {
                findings.push(format!("{door} uses {name}"));
            }
        }
        let words = |line: &str| line.split(|c: char| !c.is_alphanumeric() && c != '_').any(|word| word == module);
        if handed_on.lines().any(|line| !line.starts_with("//") && words(line)) {
            findings.push(format!("atlas-service hands on {module} of {name}"));
        }
        let file = Path::new("controller").join(&name["atlas-".len()..]).join("src/lib.rs");
        if !tree::read(&file).contains(&format!("pub mod {module};")) {
            findings.push(format!("{name} has no module {module}"));
        }
    }
    tree::report("doors call functions of atlas-service", &findings);
}

#[test]
fn rights_are_decided_at_the_gate() {
    let of_doors = |path: &Path| {
        path.starts_with("controller")
            && !OF_RIGHTS.iter().any(|folder| path.starts_with(folder))
            && !path.ends_with("tests.rs")
            && !path.iter().any(|part| part == "tests")
    };
    let known = |path: &Path| WITH_RIGHTS.iter().any(|(known, _)| path == Path::new(known));
    let names_a_right = |path: &Path| tree::read(path).contains("Right::");
    let files = tree::files(&[".rs"]);
    let doors = || files.iter().filter(|path| of_doors(path));
    let mut findings: Vec<String> = doors()
        .filter(|path| !known(path) && names_a_right(path))
        .map(|path| format!("{} names a right: name the operation, and let Caller::may decide", path.display()))
        .collect();
    let idle = |path: &Path| !doors().any(|door| door == path && names_a_right(door));
    findings.extend(
        WITH_RIGHTS.iter().filter(|(path, _)| idle(Path::new(path))).map(|(path, _)| format!("{path} names no right")),
    );
    tree::report("rights are decided at the gate", &findings);
}
