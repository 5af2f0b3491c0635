//! Bills of materials: the crates that a program is made of, in the format of CycloneDX.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context, Result};
use serde_json::{Value, json};

use crate::command::{cargo, read};

/// What cargo knows of the workspace and its dependencies on the system of the images, for both processors.
pub(crate) fn metadata() -> Result<Value> {
    let on_linux = ["x86_64", "aarch64"].map(|processor| format!("--filter-platform={processor}-unknown-linux-gnu"));
    let text = read(cargo(&["metadata", "--format-version", "1", "--locked"]).args(on_linux))?;
    serde_json::from_slice(&text).context("could not read the answer of \"cargo metadata\"")
}

/// The bill of one program, as JSON.
pub(crate) fn of(metadata: &Value, program: &str) -> Result<String> {
    let packages: BTreeMap<&str, &Value> =
        list(&metadata["packages"]).filter_map(|one| Some((one["id"].as_str()?, one))).collect();
    let owner = packages.iter().find(|(_, package)| {
        list(&package["targets"]).any(|target| target["name"] == program && target["kind"][0] == "bin")
    });
    let (root, owner) = owner.with_context(|| format!("no package has the program \"{program}\""))?;
    let linked = closure(metadata, root);
    let mut components: Vec<Value> =
        linked.iter().filter(|id| *id != root).filter_map(|id| Some(component(packages.get(id)?))).collect();
    components.sort_by_key(|one| one["purl"].to_string());
    let bill = json!({
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": { "component": { "type": "application", "name": program, "version": owner["version"] } },
        "components": components,
    });
    serde_json::to_string_pretty(&bill).map(|text| text + "\n").context("could not write a bill of materials")
}

/// A package with all that is linked into it: neither its tests' nor its build scripts' dependencies.
fn closure<'a>(metadata: &'a Value, root: &'a str) -> BTreeSet<&'a str> {
    let nodes: BTreeMap<&str, &Value> =
        list(&metadata["resolve"]["nodes"]).filter_map(|node| Some((node["id"].as_str()?, node))).collect();
    let (mut found, mut next) = (BTreeSet::from([root]), vec![root]);
    while let Some(id) = next.pop() {
        let Some(node) = nodes.get(id) else { continue };
        for dependency in list(&node["deps"]) {
            let is_linked = list(&dependency["dep_kinds"]).any(|kind| kind["kind"].is_null());
            if let Some(id) = dependency["pkg"].as_str().filter(|id| is_linked && found.insert(id)) {
                next.push(id);
            }
        }
    }
    found
}

fn component(package: &Value) -> Value {
    let [name, version] = ["name", "version"].map(|member| package[member].as_str().unwrap_or_default());
    let mut component =
        json!({ "type": "library", "name": name, "version": version, "purl": format!("pkg:cargo/{name}@{version}") });
    if let Some(license) = package["license"].as_str() {
        // Older packages separate choices by a slash.
        component["licenses"] = json!([{ "expression": license.replace('/', " OR ") }]);
    }
    component
}

fn list(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bill_has_what_is_linked_and_nothing_else() {
        let package = |name: &str, kind: &str, license: Value| json!({ "id": name, "name": name, "version": "1.0.0", "license": license, "targets": [{ "name": name, "kind": [kind] }] });
        let on = |name: &str, kind: Value| json!({ "pkg": name, "dep_kinds": [{ "kind": kind }] });
        let metadata = json!({
            "packages": [
                package("prog", "bin", json!("MIT")), package("near", "lib", json!("MIT/Apache-2.0")),
                package("far", "lib", Value::Null), package("tested", "lib", json!("MIT")),
            ],
            "resolve": { "nodes": [
                { "id": "prog", "deps": [on("near", Value::Null), on("tested", json!("dev"))] },
                { "id": "near", "deps": [on("far", Value::Null), on("tested", json!("build"))] },
                // Cargo lists a circle of development dependencies too.
                { "id": "far", "deps": [on("near", Value::Null)] },
            ] },
        });
        let bill: Value = serde_json::from_str(&of(&metadata, "prog").expect("a bill")).expect("JSON");
        assert_eq!(bill["metadata"]["component"]["name"], "prog");
        let components = json!([
            { "type": "library", "name": "far", "version": "1.0.0", "purl": "pkg:cargo/far@1.0.0" },
            {
                "type": "library", "name": "near", "version": "1.0.0", "purl": "pkg:cargo/near@1.0.0",
                "licenses": [{ "expression": "MIT OR Apache-2.0" }],
            },
        ]);
        assert_eq!(bill["components"], components);
        assert!(of(&metadata, "near").is_err(), "a library is no program");
    }
}
