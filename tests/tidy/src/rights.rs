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
/// callers can neither check a right nor act for somebody else.
const DOORS: [&str; 3] = ["controller/server", "controller/gateway", "controller/webhooks"];

#[test]
fn doors_do_not_reach_the_desk() {
    let uses_it = |door: &str| tree::read(&Path::new(door).join("Cargo.toml")).contains("atlas-desk");
    let findings = DOORS.into_iter().filter(|door| uses_it(door)).map(|door| format!("{door} uses atlas-desk"));
    let findings: Vec<String> = findings.collect();
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
