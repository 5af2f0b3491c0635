//! Rules for `Cargo.lock`: bans, a bound, and crates that must have a single version.

use std::collections::BTreeMap;

use crate::tree;

/// deny.toml says why; repeated here because cargo-deny is not everywhere.
const BANNED: [&str; 5] = ["aws-lc-sys", "openssl-sys", "native-tls", "protobuf-src", "rocksdb"];

/// Types of these crates cross the boundaries of ours: two versions would not meet.
const SINGLE: [&str; 7] = ["tokio", "tonic", "prost", "axum", "hyper", "http", "imbl"];

/// A build from scratch must end in under ten minutes on two cores.
const PACKAGES_MAX: usize = 750;

#[test]
fn no_banned_crate_is_locked() {
    let locked = locked();
    let findings: Vec<_> =
        BANNED.iter().filter(|name| locked.contains_key(**name)).map(|name| (*name).to_owned()).collect();
    tree::report("banned in deny.toml; find who brings it with `cargo tree -i NAME --target all`", &findings);
}

#[test]
fn shared_crates_have_one_version() {
    let locked = locked();
    let versions = |name: &&str| locked.get(*name).filter(|versions| versions.len() > 1);
    let findings: Vec<_> =
        SINGLE.iter().filter_map(|name| versions(name).map(|found| format!("{name}: {}", found.join(", ")))).collect();
    tree::report("one version each, in the root table", &findings);
}

#[test]
fn the_lock_file_stays_small() {
    let count: usize = locked().values().map(Vec::len).sum();
    assert!(count <= PACKAGES_MAX, "Cargo.lock has {count} packages, more than {PACKAGES_MAX}");
}

fn locked() -> BTreeMap<String, Vec<String>> {
    let lock: toml::Table = toml::from_str(&tree::read("Cargo.lock".as_ref())).expect("Cargo.lock is TOML");
    let mut versions = BTreeMap::<String, Vec<String>>::new();
    for package in lock["package"].as_array().expect("packages") {
        let text = |key: &str| package[key].as_str().expect("text").to_owned();
        versions.entry(text("name")).or_default().push(text("version"));
    }
    versions
}
