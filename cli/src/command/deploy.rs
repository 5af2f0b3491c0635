//! `atlasctl deploy`: from a folder with an agent to a registered version.

use std::path::{Path, PathBuf};

use atlas_package::{PackError, Package};
use serde_json::{Value, json};

use crate::context::Context;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::Shown;
use crate::words;

/// What to deploy.
#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// Folders that hold an agent.yaml.
    #[arg(required = true, value_name = "PATH")]
    paths: Vec<PathBuf>,
    /// Checks and packs, and sends nothing.
    #[arg(long)]
    dry_run: bool,
}

pub(crate) async fn run(context: &Context, options: &Options) -> Result<Exit, Failure> {
    let client = context.client()?;
    let mut answers = Vec::new();
    let mut names = Vec::new();
    // All are packed before the first is sent: a mistake in the last one leaves nothing half done.
    let packages = options.paths.iter().map(|path| pack(path)).collect::<Result<Vec<_>, _>>()?;
    for package in packages {
        let agent = format!("{} {}", package.contract.name, package.contract.version);
        let digest = package.digest.to_string();
        let (files, size) = (words::count(package.files as u64, "file"), words::bytes(package.bytes.len() as u64));
        context.note(&format!("{agent}   checked    contract valid"));
        context.note(&format!("{agent}   packed     {files}, {size}, {}", digest.get(..15).unwrap_or(&digest)));
        names.push(format!("agent/{}", package.contract.name));
        if options.dry_run {
            let (name, version) = (package.contract.name.to_string(), package.contract.version.to_string());
            answers.push(json!({"name": name, "version": version, "digest": digest}));
            continue;
        }
        answers.push(client.upload(&["api", "agents"], package.bytes).await?);
        context.note(&format!("{agent}   live       {} → {}", package.contract.name, package.contract.version));
    }
    if let (Some(name), false) = (names.last(), options.dry_run) {
        let name = name.trim_start_matches("agent/");
        context.next(&format!("next: atlasctl agent schema {name}   or: atlasctl run {name} key=value"));
    }
    context.show(&Shown { value: Value::Array(answers), text: String::new(), names })?;
    Ok(Exit::Done)
}

fn pack(path: &Path) -> Result<Package, Failure> {
    atlas_package::pack(path).map_err(|error| {
        let shown = path.display();
        let (code, message, places) = match &error {
            PackError::Contract(contract) => {
                let place = |violation: &atlas_contract::Violation| {
                    let hint = violation.suggestion.as_ref().map(|name| format!("; did you mean \"{name}\"?"));
                    (violation.pointer.clone(), violation.message.clone() + &hint.unwrap_or_default())
                };
                let places: Vec<_> = contract.violations().iter().map(place).collect();
                let why = if places.is_empty() { format!(": {contract}") } else { String::new() };
                ("E1103", format!("the contract of \"{shown}\" does not hold{why}"), places)
            }
            _ => ("E1105", format!("\"{shown}\" could not be packed: {}", atlas_dev::chain(&error)), Vec::new()),
        };
        Failure { places, ..Failure::new(code, Exit::Invalid, message) }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_without_a_contract_is_no_agent() {
        let dir = tempfile::tempdir().expect("a folder");
        let failure = pack(dir.path()).expect_err("nothing in it");
        assert_eq!(failure.code.as_deref(), Some("E1105"));
        assert!(failure.message.ends_with("could not be packed: there is no agent.yaml in it"), "{failure}");
    }

    #[test]
    fn a_broken_rule_is_told_with_its_place() {
        let dir = tempfile::tempdir().expect("a folder");
        std::fs::write(dir.path().join("agent.yaml"), "agent: { name: x }").expect("written");
        let failure = pack(dir.path()).expect_err("no version");
        assert_eq!(failure.code.as_deref(), Some("E1103"));
        assert!(!failure.places.is_empty(), "{failure}");
    }
}
