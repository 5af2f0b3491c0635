//! The skills of a row: deployed if an agent of the row requires one.

use std::fs;
use std::path::PathBuf;

use serde_json::Value;

use crate::bench::Bench;
use crate::cluster::Cluster;
use crate::result::{Judged, Stop};
use crate::row::{Row, items};

/// Skills of ours that rows name.
const KNOWN: [&str; 2] = ["reverse", "upper"];

/// Deploys the skills that the row lists. An empty list is a registry without skills, which Atlas has only if another skill is deployed.
pub(crate) fn deploy(row: &Row, required: &[String], bench: &Bench, cluster: &Cluster) -> Judged {
    if row.input.get("skills").is_none() || required.is_empty() {
        return Ok(());
    }
    let listed: Vec<&str> = items(&row.input, "skills").filter_map(Value::as_str).collect();
    if let Some(unknown) = listed.iter().find(|name| !KNOWN.contains(*name)) {
        return Err(Stop::skip(format!("the skill {unknown}")));
    }
    let other = KNOWN.iter().find(|name| !required.iter().any(|required| required == *name)).copied();
    for name in if listed.is_empty() { other.into_iter().collect() } else { listed } {
        let folder = folder(name, bench)?;
        let package = atlas_package::pack_skill(&folder).map_err(|error| Stop::system("pack a skill", error))?;
        cluster.deploy_skill(package.bytes)?;
    }
    Ok(())
}

/// Deploys the skills in a folder, in the order of their paths. Without that folder, the bundled skills stand for it.
pub(crate) fn deploy_found(path: &str, bench: &Bench, cluster: &Cluster) -> Judged {
    let ours = bench.workplace()?.path();
    let path = PathBuf::from(path.replace("{examples}", &ours.join("agents").display().to_string()));
    let mut open = vec![if path.is_dir() { path } else { ours.join("skills") }];
    let mut found = Vec::new();
    while let Some(folder) = open.pop() {
        let entries = fs::read_dir(&folder).map_err(|error| Stop::system("list a folder of skills", error))?;
        open.extend(entries.flatten().map(|entry| entry.path()).filter(|path| path.is_dir()));
        if folder.join("skill.yaml").is_file() {
            found.push(folder);
        }
    }
    found.sort();
    for folder in found {
        // Skills that are invalid are left out, as a server does that finds them.
        let Ok(package) = atlas_package::pack_skill(&folder) else { continue };
        cluster.deploy_skill(package.bytes)?;
    }
    Ok(())
}

fn folder(name: &str, bench: &Bench) -> Result<PathBuf, Stop> {
    let mock = bench.mocks().join(name);
    if mock.is_dir() { Ok(mock) } else { Ok(bench.workplace()?.path().join("skills").join(name)) }
}

/// The skills that the agents of a row require.
pub(crate) fn required(row: &Row) -> Vec<String> {
    let contracts = items(&row.input, "agents").map(crate::agents::contract_text);
    let parsed = contracts.filter_map(|text| atlas_contract::parse(text.as_bytes()).ok());
    let names = parsed.flat_map(|contract| contract.requires.skills);
    names.filter(|name| atlas_contract::platform::find(name).is_none()).collect()
}
