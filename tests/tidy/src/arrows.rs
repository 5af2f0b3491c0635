//! The allowed dependencies between our crates: one table, compared with the manifests and with the code.
//!
//! A new dependency is a design change: a separate commit that explains it. Dependencies of tests (`dev-dependencies`) are free.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use crate::{manifests, tree};

/// A crate, and the crates of ours that it uses, without the prefix `atlas-`.
const ARROWS: &[(&str, &str)] = &[
    ("atlas-types", ""),
    ("atlas-access", "types"),
    ("atlas-api", "access types"),
    ("atlas-allocation", "types"),
    ("atlas-artifacts", "audit env history types"),
    ("atlas-audit", ""),
    ("atlas-format", "types"),
    ("atlas-wire", "types"),
    ("atlas-duty", "allocation objects runs scheduler state types"),
    ("atlas-history", "env format types"),
    ("atlas-limiter", "types"),
    ("atlas-log", "env"),
    ("atlas-raft", "duty env format log replica state types wire"),
    ("atlas-recovery", "env format history raft state types"),
    ("atlas-replica", "format state types"),
    ("atlas-scheduler", "allocation types"),
    (
        "atlas-controller",
        "access api contract env export format gateway heap history limiter model oauth openai otlp raft recovery service state stores telemetry tls types webhooks wire",
    ),
    ("atlas-export", "env history model raft telemetry types"),
    ("atlas-webhooks", "env http objects raft service telemetry types"),
    ("atlas-gateway", "access api bundled contract env service types"),
    ("atlas-desk", "access api artifacts audit contract env format history oauth objects raft state telemetry types"),
    ("atlas-lines", "artifacts desk raft types"),
    ("atlas-bases", "api artifacts desk objects retrieval types"),
    ("atlas-library", "api artifacts desk knowledge objects state types"),
    ("atlas-stores", "env http knowledge library"),
    ("atlas-trail", "api artifacts audit desk format raft state types"),
    ("atlas-identity", "access api desk mcp-spec model objects oidc pages state types"),
    ("atlas-vault", "artifacts desk env mcp-spec model oauth objects secrets state types"),
    ("atlas-upkeep", "artifacts desk history raft state types"),
    ("atlas-platform", "desk duty history limiter model raft state telemetry types"),
    ("atlas-records", "api contract desk duty format history identity lines model package platform state types"),
    ("atlas-registry", "artifacts contract desk objects policy state types vault"),
    ("atlas-jobs", "api artifacts contract desk duty format mcp-spec model platform raft registry state types vault"),
    ("atlas-conversations", "artifacts desk jobs objects raft records registry state types"),
    ("atlas-events", "desk history platform records types"),
    (
        "atlas-service",
        "access api artifacts audit bases contract conversations desk duty env events expressions format history identity jobs knowledge library limiter lines mcp-spec mediation model oauth objects package pages platform raft records registry retrieval runs state telemetry trail triggers types upkeep vault",
    ),
    ("atlas-objects", "access mcp-spec model pages types"),
    ("atlas-oidc", ""),
    ("atlas-openai", "model"),
    ("atlas-mediation", ""),
    ("atlas-expressions", ""),
    ("atlas-retrieval", ""),
    ("atlas-pages", ""),
    ("atlas-documents", "retrieval"),
    ("atlas-runs", "expressions mediation types"),
    ("atlas-triggers", "contract"),
    ("atlas-state", "allocation objects types"),
    ("atlas-inventory", "types"),
    (
        "atlas-worker",
        "bundled checks contract documents durable env format graph graph-run http inventory llm loki-agent mcp model otlp package pages policy retrieval sandbox secrets slots supervisor telemetry tls tool-runner tools turn types wire",
    ),
    ("atlas-sandbox", ""),
    ("atlas-slots", "allocation types"),
    ("atlas-graph-run", "checks contract documents env graph model package turn"),
    ("atlas-bundled", "package"),
    ("atlas-contract", "types"),
    ("atlas-package", "contract graph loki-agent toolbox types"),
    ("atlas-mcp", "env http llm mcp-spec model oauth secrets types"),
    ("atlas-mcp-spec", "model"),
    ("atlas-model", "secrets"),
    ("atlas-secrets", "types"),
    ("atlas-oauth", "model secrets types"),
    ("atlas-policy", "contract expressions secrets"),
    ("atlas-knowledge", "contract"),
    ("atlas-turn", "model"),
    ("atlas-tools", ""),
    ("atlas-toolbox", ""),
    ("atlas-tool-runner", "tools"),
    ("atlas-supervisor", "model"),
    ("atlas-loki-agent", "supervisor turn"),
    ("atlas-persona", ""),
    ("atlas-checks", "contract turn"),
    ("atlas-durable", ""),
    ("atlas-graph", ""),
    ("atlas-http", "env"),
    ("atlas-llm", "contract env http model oauth secrets types"),
    ("atlas-operator", "env package telemetry tls"),
    ("atlas-otlp", "env http telemetry types"),
    ("atlas-env", "types"),
    ("atlas-heap", ""),
    ("atlas-tls", "env"),
    ("atlas-telemetry", ""),
    ("xtask", "notice"),
    (
        "atlas-cli",
        "access api audit bundled chat checks contract dev documents env expressions graph heap http knowledge mcp-spec model oauth offline package pages retrieval secrets terminal tls tool-runner turn types",
    ),
    ("atlas-compat", "bundled cli contract dev env heap mcp-spec package policy turn types"),
    ("atlas-dev", "controller env telemetry types worker"),
    ("atlas-offline", "format raft recovery types"),
    ("atlas-terminal", ""),
    ("atlas-chat", ""),
    ("atlas-counts", "dev env package"),
    (
        "atlas-bench",
        "access cluster-tests dev duty env format heap log mediation package postgres raft retrieval service state types wire",
    ),
    ("atlas-cli-tests", ""),
    ("atlas-cluster-tests", "bundled contract env linearizability notice package"),
    (
        "atlas-conformance",
        "allocation bundled contract env graph graph-run inventory knowledge llm-server loki-agent mcp-spec mediation model package policy runs scheduler secrets service state supervisor tool-runner tools triggers turn types",
    ),
    ("atlas-engine", "notice"),
    ("atlas-golden", ""),
    ("atlas-kit", "types"),
    ("atlas-linearizability", ""),
    ("atlas-llm-server", ""),
    ("atlas-notice", ""),
    ("atlas-postgres", "notice"),
    ("atlas-sim", "durable duty format objects replica slots state triggers types"),
    ("atlas-tidy", ""),
    ("atlas-turmoil", "duty env format linearizability log raft replica sim slots state types"),
];

#[test]
fn crates_use_what_the_table_allows() {
    let allowed: BTreeMap<&str, BTreeSet<String>> = ARROWS
        .iter()
        .map(|(from, to)| (*from, to.split(' ').filter(|to| !to.is_empty()).map(full).collect()))
        .collect();
    let mut findings = Vec::new();
    for (name, manifest) in ours() {
        let Some(allowed) = allowed.get(name.as_str()) else {
            findings.push(format!("{name} has no row"));
            continue;
        };
        let used = dependencies(&manifest);
        findings.extend(used.difference(allowed).map(|to| format!("{name} → {to} is not in the table")));
        findings.extend(allowed.difference(&used).map(|to| format!("{name} → {to} is in the table alone")));
    }
    let names: BTreeSet<String> = ours().into_iter().map(|(name, _)| name).collect();
    let gone = allowed.keys().filter(|name| !names.contains(**name));
    findings.extend(gone.map(|name| format!("{name} is in the table and not in the tree")));
    tree::report("the arrows between our crates are those of the table in tests/tidy/src/arrows.rs", &findings);
}

#[test]
fn no_arrow_is_unused() {
    let manifests = ours();
    let folders: Vec<PathBuf> = manifests.iter().map(|(_, manifest)| folder(manifest)).collect();
    let sources = tree::files(&[".rs"]);
    let mut findings = Vec::new();
    for (name, manifest) in &manifests {
        let own: String = sources
            .iter()
            .filter(|path| owner(&folders, path) == Some(folder(manifest).as_path()))
            .filter(|path| !is_test(path, &folder(manifest)))
            .map(|path| without_tests(&tree::read(path)).to_owned())
            .collect();
        let unused = dependencies(manifest).into_iter().filter(|to| !own.contains(&to.replace('-', "_")));
        findings.extend(unused.map(|to| format!("{name} → {to}")));
    }
    tree::report("remove the dependency, or make it a dev-dependency if tests alone use it", &findings);
}

/// Names of our packages with their manifests.
fn ours() -> Vec<(String, PathBuf)> {
    let is_ours = |name: &String| name.starts_with("atlas-") || name == "xtask";
    let manifests = tree::files(&["Cargo.toml"]).into_iter();
    manifests.filter_map(|path| Some((manifests::package_name(&path).filter(is_ours)?, path))).collect()
}

fn full(short: &str) -> String {
    format!("atlas-{short}")
}

/// The crates of ours that the code of a package uses outside its tests.
fn dependencies(manifest: &Path) -> BTreeSet<String> {
    let table: toml::Table = toml::from_str(&tree::read(manifest)).expect("manifests are TOML");
    let dependencies = table.get("dependencies").and_then(toml::Value::as_table);
    let names = dependencies.into_iter().flatten().map(|(name, _)| name.clone());
    names.filter(|name| name.starts_with("atlas-")).collect()
}

fn folder(manifest: &Path) -> PathBuf {
    manifest.parent().unwrap_or(Path::new("")).to_owned()
}

/// The innermost of `folders` that holds a file: crates lie in folders of other crates.
fn owner<'a>(folders: &'a [PathBuf], file: &Path) -> Option<&'a Path> {
    let holding = folders.iter().filter(|folder| file.starts_with(folder));
    holding.max_by_key(|folder| folder.as_os_str().len()).map(PathBuf::as_path)
}

/// Whether a file of a crate is compiled for its tests alone.
fn is_test(file: &Path, folder: &Path) -> bool {
    let inside = file.strip_prefix(folder).unwrap_or(file);
    inside.iter().any(|part| part == "tests" || part == "tests.rs")
}

/// A file's text up to its own module of tests, which is the last thing in it.
fn without_tests(text: &str) -> &str {
    text.split("#[cfg(test)]\nmod tests {").next().unwrap_or(text)
}

#[test]
fn the_helpers_tell_tests_from_code() {
    let folders = [PathBuf::from("cli"), PathBuf::from("cli/dev")];
    assert_eq!(owner(&folders, Path::new("cli/dev/src/lib.rs")), Some(Path::new("cli/dev")));
    assert_eq!(owner(&folders, Path::new("cli/src/lib.rs")), Some(Path::new("cli")));
    assert!(is_test(Path::new("cli/src/tests/a.rs"), Path::new("cli")));
    assert!(!is_test(Path::new("tests/sim/src/a.rs"), Path::new("tests/sim")));
    assert_eq!(without_tests("a\n#[cfg(test)]\nmod tests {\nb"), "a\n");
}
