//! Manifests: one table of versions, one table of lints, folders named after packages.

use std::path::Path;

use crate::tree;

/// The name of the package of a manifest; none for the workspace's own.
pub(crate) fn package_name(manifest: &Path) -> Option<String> {
    let table: toml::Table = toml::from_str(&tree::read(manifest)).expect("manifests are TOML");
    Some(table.get("package")?.get("name")?.as_str()?.to_owned())
}

#[test]
fn every_crate_takes_lints_versions_and_licence_from_the_workspace() {
    let mut findings = Vec::new();
    let root: toml::Table = toml::from_str(&tree::read(Path::new("Cargo.toml"))).expect("manifests are TOML");
    let patches = root.get("patch").and_then(|patch| patch.get("crates-io")).and_then(toml::Value::as_table);
    for path in tree::files(&["Cargo.toml"]) {
        let table: toml::Table = toml::from_str(&tree::read(&path)).expect("manifests are TOML");
        let Some(package) = table.get("package") else { continue };
        let from_workspace = |value: Option<&toml::Value>| {
            value.and_then(|value| value.get("workspace")).and_then(toml::Value::as_bool) == Some(true)
        };
        let name = path.display();
        if !from_workspace(table.get("lints")) {
            findings.push(format!("{name}: `[lints] workspace = true` is missing"));
        }
        // What stands in for a published package has that one's version.
        let stands_in =
            patches.is_some_and(|patches| patches.keys().any(|patch| package["name"].as_str() == Some(patch)));
        for key in ["version", "edition", "rust-version", "license", "publish"] {
            let own = stands_in && key == "version";
            if !own && !from_workspace(package.get(key)) {
                findings.push(format!("{name}: `{key}.workspace = true` is missing"));
            }
        }
        if package.get("description").is_none() {
            findings.push(format!("{name}: a description is missing"));
        }
        for section in ["dependencies", "dev-dependencies", "build-dependencies"] {
            let dependencies = table.get(section).and_then(toml::Value::as_table);
            for (dependency, value) in dependencies.into_iter().flatten() {
                if !from_workspace(Some(value)) {
                    findings.push(format!("{name}: {dependency} has a version of its own"));
                }
            }
        }
    }
    tree::report("one table of versions and lints, in the root manifest", &findings);
}

#[test]
fn workers_and_controllers_do_not_know_each_other() {
    let mut findings = Vec::new();
    for path in tree::files(&["Cargo.toml"]) {
        let links = ["cli/dev/Cargo.toml", "cli/offline/Cargo.toml"].map(Path::new);
        let side = |folder: &str| path.starts_with(folder) && !links.contains(&path.as_path());
        let table: toml::Table = toml::from_str(&tree::read(&path)).expect("manifests are TOML");
        let dependencies = table.get("dependencies").and_then(toml::Value::as_table);
        for name in dependencies.into_iter().flatten().map(|(name, _)| name.as_str()) {
            let controller = [
                "atlas-state",
                "atlas-scheduler",
                "atlas-duty",
                "atlas-replica",
                "atlas-raft",
                "atlas-history",
                "atlas-desk",
                "atlas-events",
                "atlas-conversations",
                "atlas-jobs",
                "atlas-registry",
                "atlas-records",
                "atlas-platform",
                "atlas-upkeep",
                "atlas-vault",
                "atlas-identity",
                "atlas-trail",
                "atlas-lines",
                "atlas-library",
                "atlas-bases",
                "atlas-stores",
            ];
            let controller = controller.contains(&name) || name == "atlas-service" || name == "atlas-controller";
            let worker = ["atlas-slots", "atlas-inventory", "atlas-worker"].contains(&name);
            if (side("worker") && controller)
                || (side("controller") && worker)
                || (side("cli") && (controller || worker))
            {
                findings.push(format!("{} depends on {name}", path.display()));
            }
        }
    }
    tree::report("only cli/dev links both sides, and cli/offline that of the controller", &findings);
}
