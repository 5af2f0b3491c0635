//! The agents of `atlasctl dev`: the bundled ones, and a folder that is registered again when it changes.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use atlas_env::Env;
use atlas_package::Package;

use crate::client::Client;
use crate::command::dev::shown;
use crate::context::Context;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::stillness::{Stillness, fingerprint};

/// Registers the agents that this program carries.
pub(super) async fn register_bundled(client: &Client) -> Result<(), Failure> {
    for package in atlas_bundled::packages() {
        let package = package.map_err(|error| Failure::answer(atlas_env::chain(&error)))?;
        client.upload(&["api", "agents"], package.bytes).await?;
    }
    Ok(())
}

/// A folder of agents: what it looked like, and what was registered from it.
pub(super) struct Watch {
    folder: PathBuf,
    stillness: Stillness,
    registered: BTreeMap<PathBuf, String>,
}

impl Watch {
    pub(super) fn new(folder: &Path) -> Self {
        Self { folder: folder.to_owned(), stillness: Stillness::default(), registered: BTreeMap::new() }
    }

    /// Looks once, and registers what is new or different. Problems are told and do not end anything.
    pub(super) async fn look(&mut self, context: &Context, client: &Client, env: &Env) {
        let folder = self.folder.clone();
        let Ok(print) = env.spawn_blocking("look at agents", move || fingerprint(&[folder])).join().await else {
            return;
        };
        if !self.stillness.is_due(print) {
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
        if answered {
            self.stillness.read(print);
        }
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
                read.problems.push(format!("skipped \"{}\": {}", shown(&found.dir), atlas_env::chain(&error)))
            }
        }
    }
    read
}
