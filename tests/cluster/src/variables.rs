//! Empty environment variables: for every option of every program they count as unset.

use std::collections::BTreeSet;
use std::process::Command;

use crate::program::program;

/// The variables that the help of a command line names.
fn variables(name: &str, verbs: &[&str]) -> BTreeSet<String> {
    let output = Command::new(program(name)).args(verbs).arg("--help").output().expect("it ran");
    // Long lines are wrapped.
    let help = String::from_utf8_lossy(&output.stdout).split_whitespace().collect::<Vec<_>>().join(" ");
    let named = help.split("[env: ").skip(1).filter_map(|text| text.split(['=', ']']).next());
    named.map(str::to_owned).collect()
}

/// Runs a program with these variables set to nothing, and none of Atlas's others.
fn run(name: &str, arguments: &[&str], empty: &BTreeSet<String>) -> (bool, String) {
    let mut command = Command::new(program(name));
    let own = std::env::vars_os().map(|(name, _)| name).filter(|name| name.as_encoded_bytes().starts_with(b"ATLAS_"));
    own.for_each(|name| {
        command.env_remove(name);
    });
    let output = command.args(arguments).envs(empty.iter().map(|name| (name, ""))).output().expect("it ran");
    let text = [output.stdout, output.stderr].concat();
    (output.status.success(), String::from_utf8_lossy(&text).into_owned())
}

#[test]
fn empty_variables_of_controllers_and_workers_are_as_if_unset() {
    for (name, least) in [("atlas-controller", 60), ("atlas-worker", 40)] {
        let all = variables(name, &[]);
        assert!(all.len() >= least, "{name} has {all:?}");
        let without = run(name, &["--print-config"], &BTreeSet::new());
        assert!(without.0, "{name}: {}", without.1);
        assert_eq!(run(name, &["--print-config"], &all), without, "{name}");
    }
}

#[test]
fn empty_variables_of_clients_are_as_if_unset() {
    // The help of `atlasctl` does not show them.
    let own = ["ATLAS_SERVER", "ATLAS_CONTEXT", "ATLAS_CA_FILE", "ATLAS_NAMESPACE", "ATLAS_TOKEN", "ATLAS_LOG"];
    let mut all: BTreeSet<String> = own.map(str::to_owned).into();
    for verbs in [&["pool", "status"][..], &["serve"], &["mcp"], &["trigger", "list"]] {
        all.extend(variables("atlas", verbs));
    }
    assert!(all.contains("ATLAS_AUTH_TOKEN"), "{all:?}");
    // Nothing listens there, and that is what they say.
    let nowhere = ["--server", "http://127.0.0.1:1"];
    for (name, verbs) in [("atlasctl", &["node", "list"][..]), ("atlas", &["pool", "status", "node-1"])] {
        let arguments = &[verbs, &nowhere].concat();
        let without = run(name, arguments, &BTreeSet::new());
        assert!(without.1.contains("127.0.0.1:1"), "{name}: {}", without.1);
        assert_eq!(run(name, arguments, &all), without, "{name}");
    }
}
