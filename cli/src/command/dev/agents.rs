//! The agents of `atlasctl dev`: the bundled ones, and a folder that is registered again when it changes.

use std::collections::BTreeMap;
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};

use atlas_env::Env;
use atlas_package::Package;

use crate::client::Client;
use crate::command::dev::shown;
use crate::context::Context;
use crate::exit::Exit;
use crate::failure::Failure;

/// Deepest folder that is looked at, as in discovery.
const DEPTH_MAX: usize = 16;

/// Most files of a folder that are looked at, so that somebody's home does not keep a core busy.
const FILES_MAX: usize = 20_000;

/// Registers the agents that this program carries.
pub(super) async fn register_bundled(client: &Client) -> Result<(), Failure> {
    for package in atlas_bundled::packages() {
        let package = package.map_err(|error| Failure::answer(atlas_dev::chain(&error)))?;
        client.upload(&["api", "agents"], package.bytes).await?;
    }
    Ok(())
}

/// A folder of agents: what it looked like, and what was registered from it.
pub(super) struct Watch {
    folder: PathBuf,
    /// How the tree looked when it was last read into packages.
    done: Option<u64>,
    /// How it looked at the last look: only a tree that has stood still for one look is read, so that half-written files wait.
    last: Option<u64>,
    registered: BTreeMap<PathBuf, String>,
}

impl Watch {
    pub(super) fn new(folder: &Path) -> Self {
        Self { folder: folder.to_owned(), done: None, last: None, registered: BTreeMap::new() }
    }

    /// Looks once, and registers what is new or different. Problems are told and do not end anything.
    pub(super) async fn look(&mut self, context: &Context, client: &Client, env: &Env) {
        let folder = self.folder.clone();
        let Ok(print) = env.spawn_blocking("look at agents", move || fingerprint(&folder)).join().await else { return };
        // At the very first look there is no earlier one to compare with.
        let still = self.last.is_none() || self.last == Some(print);
        self.last = Some(print);
        if !still || self.done == Some(print) {
            return;
        }
        let folder = self.folder.clone();
        let Ok(found) = env.spawn_blocking("pack agents", move || read(&folder)).join().await else { return };
        for problem in found.problems {
            context.note(&problem);
        }
        let mut answered = true;
        for (dir, package) in found.packages {
            answered &= self.register(context, client, dir, package).await;
        }
        // Without an answer to each, the next look tries again.
        self.done = answered.then_some(print);
    }

    /// Uploads a package that is new; false if nobody answered whether it was taken.
    async fn register(&mut self, context: &Context, client: &Client, dir: PathBuf, package: Package) -> bool {
        let digest = package.digest.to_string();
        if self.registered.get(&dir) == Some(&digest) {
            return true;
        }
        let agent = format!("{} {}", package.contract.name, package.contract.version);
        match client.upload(&["api", "agents"], package.bytes).await {
            Ok(_) => {
                let known = self.registered.insert(dir.clone(), digest).is_some();
                let what = if known { "registered again; jobs that run keep the old one" } else { "registered" };
                context.note(&format!("{agent}   {what}   {}", shown(&dir)));
                true
            }
            Err(failure) => {
                context.note(&format!("{agent}   not registered   {}", shown(&dir)));
                context.report(&failure);
                !matches!(failure.exit, Exit::Unreachable | Exit::Busy)
            }
        }
    }
}

/// What a folder holds.
struct Read {
    packages: Vec<(PathBuf, Package)>,
    problems: Vec<String>,
}

fn read(folder: &Path) -> Read {
    let discovery = atlas_package::discover(&[folder]);
    let mut read = Read { packages: Vec::new(), problems: discovery.skipped.iter().map(ToString::to_string).collect() };
    for found in discovery.found {
        match atlas_package::pack(&found.dir) {
            Ok(package) => read.packages.push((found.dir, package)),
            Err(error) => {
                read.problems.push(format!("skipped \"{}\": {}", shown(&found.dir), atlas_dev::chain(&error)))
            }
        }
    }
    read
}

/// Changes whenever a file below is added, removed, renamed, touched or resized.
fn fingerprint(folder: &Path) -> u64 {
    let mut hasher = DefaultHasher::new();
    let mut left = FILES_MAX;
    walk(folder, 0, &mut left, &mut hasher);
    hasher.finish()
}

fn walk(folder: &Path, depth: usize, left: &mut usize, hasher: &mut DefaultHasher) {
    let mut entries: Vec<_> = fs::read_dir(folder).into_iter().flatten().flatten().collect();
    entries.sort_by_key(fs::DirEntry::file_name);
    for entry in entries {
        let name = entry.file_name();
        let Ok(metadata) = entry.metadata() else { continue };
        if *left == 0 || name.as_encoded_bytes().starts_with(b".") || name == "__pycache__" {
            continue;
        }
        *left -= 1;
        name.hash(hasher);
        if metadata.is_dir() && depth < DEPTH_MAX {
            walk(&entry.path(), depth + 1, left, hasher);
        } else {
            (metadata.len(), metadata.modified().ok()).hash(hasher);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_change_of_a_file_shows() {
        let dir = tempfile::tempdir().expect("a directory");
        let agent = dir.path().join("hello");
        fs::create_dir(&agent).expect("made");
        let look = || fingerprint(dir.path());
        let empty = look();
        fs::write(agent.join("agent.yaml"), "a").expect("written");
        let written = look();
        fs::write(agent.join("agent.yaml"), "ab").expect("written");
        let longer = look();
        fs::rename(agent.join("agent.yaml"), agent.join("b")).expect("renamed");
        let renamed = look();
        fs::create_dir(agent.join("__pycache__")).expect("made");
        assert_eq!(look(), renamed);
        let all = [empty, written, longer, renamed];
        assert_eq!(all.iter().collect::<std::collections::BTreeSet<_>>().len(), all.len());
    }
}
