//! The pure crates depend on nothing that can do I/O, wait or draw a number.

use std::process::Command;

use crate::tree;

const PURE: [&str; 31] = [
    "atlas-types",
    "atlas-access",
    "atlas-api",
    "atlas-allocation",
    "atlas-audit",
    "atlas-format",
    "atlas-objects",
    "atlas-state",
    "atlas-scheduler",
    "atlas-duty",
    "atlas-limiter",
    "atlas-replica",
    "atlas-slots",
    "atlas-expressions",
    "atlas-retrieval",
    "atlas-pages",
    "atlas-mediation",
    "atlas-mcp-spec",
    "atlas-model",
    "atlas-secrets",
    "atlas-oauth",
    "atlas-openai",
    "atlas-turn",
    "atlas-tools",
    "atlas-supervisor",
    "atlas-loki-agent",
    "atlas-persona",
    "atlas-durable",
    "atlas-graph",
    "atlas-terminal",
    "atlas-linearizability",
];

const IMPURE: [&str; 13] = [
    "tokio",
    "mio",
    "async-std",
    "smol",
    "hyper",
    "axum",
    "tonic",
    "reqwest",
    "rand",
    "getrandom",
    "rusqlite",
    "tracing",
    "atlas-env",
];

#[test]
fn pure_crates_stay_pure() {
    let mut findings = Vec::new();
    for pure in PURE {
        let arguments = ["tree", "--locked", "--offline", "-p", pure, "-e", "normal", "--prefix", "none"];
        let cargo = std::env::var_os("CARGO").unwrap_or_else(|| env!("CARGO").into());
        let output = Command::new(cargo).args(arguments).current_dir(tree::root()).output().expect("cargo runs");
        assert!(output.status.success(), "cargo tree -p {pure}: {}", String::from_utf8_lossy(&output.stderr));
        let text = String::from_utf8(output.stdout).expect("cargo prints UTF-8");
        let names = text.lines().filter_map(|line| line.split(' ').next());
        findings.extend(names.filter(|name| IMPURE.contains(name)).map(|name| format!("{pure} depends on {name}")));
    }
    findings.sort();
    findings.dedup();
    tree::report("a pure crate decides over plain data; take times, ids and bytes as arguments", &findings);
}

#[test]
fn pure_crates_ban_clocks_files_and_hashed_order() {
    let folders = tree::files(&["Cargo.toml"]);
    let mut findings = Vec::new();
    for manifest in folders {
        let name = crate::manifests::package_name(&manifest);
        if !name.is_some_and(|name| PURE.contains(&name.as_str())) {
            continue;
        }
        let clippy = manifest.with_file_name("clippy.toml");
        if !tree::root().join(&clippy).is_file() {
            findings.push(format!("{} is missing", clippy.display()));
            continue;
        }
        let text = tree::read(&clippy);
        let banned = ["SystemTime::now", "Instant::now", "env::var", "fs::File", "HashMap", "HashSet"];
        findings.extend(
            banned
                .iter()
                .filter(|ban| !text.contains(*ban))
                .map(|ban| format!("{} does not ban {ban}", clippy.display())),
        );
    }
    tree::report("a clippy.toml in each pure crate bans what could differ between replicas", &findings);
}
