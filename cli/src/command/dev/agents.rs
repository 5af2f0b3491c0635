//! The agents of `atlasctl dev`: the bundled ones, and those of a watched folder: new agents are registered, changed
//! agents are registered again, and deleted agents are retired.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use atlas_env::Env;
use atlas_package::{CONTRACT_FILE, Package};

use crate::client::Client;
use crate::command::deploy::{label, pack, skipped};
use crate::command::dev::shown;
use crate::context::Context;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::program::{Checker, Has, RunsOn};
use crate::stillness::{Stillness, fingerprint};

/// Registers the agents that are embedded in this program.
pub(super) async fn register_bundled(client: &Client) -> Result<(), Failure> {
    for package in atlas_bundled::packages() {
        let package = package.map_err(|error| Failure::answer(atlas_env::chain(&error)))?;
        client.register(package.bytes, true).await?;
    }
    Ok(())
}

/// An agent version that was registered from a folder.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Registered {
    name: String,
    version: String,
    digest: String,
}

impl Registered {
    fn of(package: &Package) -> Self {
        let contract = &package.contract;
        let (name, version) = (contract.name.to_string(), contract.version.to_string());
        Self { name, version, digest: package.digest.to_string() }
    }

    fn is_version_of(&self, other: &Self) -> bool {
        (&self.name, &self.version) == (&other.name, &other.version)
    }
}

/// A watched folder of agents, and the versions registered from it.
pub(super) struct Watch {
    folder: PathBuf,
    stillness: Stillness,
    checker: Checker,
    /// The versions of each folder, the latest last.
    registered: BTreeMap<PathBuf, Vec<Registered>>,
    /// The problems of the last check, so that none is reported twice.
    told: BTreeSet<String>,
}

impl Watch {
    pub(super) fn new(folder: &Path) -> Self {
        Self {
            folder: folder.to_owned(),
            stillness: Stillness::default(),
            checker: Checker::new(RunsOn::Here),
            registered: BTreeMap::new(),
            told: BTreeSet::new(),
        }
    }

    /// Checks the folder once, and registers or retires changed agents. Problems are reported and do not end the watch.
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
        let told = std::mem::take(&mut self.told);
        for problem in &found.problems {
            self.tell(context, &told, problem);
        }
        let present: Vec<Registered> = found.packages.iter().map(|(_, package)| Registered::of(package)).collect();
        let mut answered = self.retire_deleted(context, client, &present).await;
        for (dir, package) in found.packages {
            answered &= self.register(context, client, &told, dir, package).await;
        }
        // If a request got no answer, the next check tries again.
        if answered {
            self.stillness.read(print);
        }
    }

    /// Reports a problem that the last look did not find.
    fn tell(&mut self, context: &Context, before: &BTreeSet<String>, problem: &Failure) {
        let text = problem.to_string();
        if !before.contains(&text) {
            context.report(problem);
        }
        self.told.insert(text);
    }

    /// Uploads a new package; false if the cluster did not answer.
    async fn register(
        &mut self,
        context: &Context,
        client: &Client,
        told: &BTreeSet<String>,
        dir: PathBuf,
        package: Package,
    ) -> bool {
        let version = Registered::of(&package);
        let versions = self.registered.get(&dir).map_or(&[][..], Vec::as_slice);
        if versions.last() == Some(&version) {
            return true;
        }
        let again = versions.iter().any(|known| known.is_version_of(&version));
        let agent = label(&package);
        let findings = self.checker.check(&dir, &package).await;
        if let Some(problem) = findings.refusal(&agent) {
            self.tell(context, told, &problem);
            return true;
        }
        let mut warnings = findings.warnings;
        // What the cluster lacks can come later; a cluster that cannot be asked is noticed at the next request.
        if let Ok(has) = Has::ask(client, std::iter::empty()).await {
            warnings.extend(has.lacks(&dir, &package.contract));
        }
        match client.register(package.bytes, true).await {
            Ok(_) => {
                let versions = self.registered.entry(dir.clone()).or_default();
                versions.retain(|known| !known.is_version_of(&version));
                versions.push(version);
                for warning in warnings {
                    context.note(&format!("{agent}   warning   {warning}"));
                }
                let how = if again { " again; running jobs keep the old version" } else { "" };
                context.note(&format!("registered {agent}{how}   {}", shown(&dir)));
                true
            }
            Err(failure) => {
                context.note(&format!("{agent}   not registered   {}", shown(&dir)));
                context.report(&failure);
                !matches!(failure.exit, Exit::Unreachable | Exit::Busy)
            }
        }
    }

    /// Retires the versions from deleted folders, unless another folder contains them now; false if the cluster did not
    /// answer.
    async fn retire_deleted(&mut self, context: &Context, client: &Client, present: &[Registered]) -> bool {
        let deleted = self.registered.keys().filter(|dir| !dir.join(CONTRACT_FILE).exists());
        let deleted: Vec<PathBuf> = deleted.cloned().collect();
        let mut answered = true;
        for dir in deleted {
            let mut kept = Vec::new();
            for version in self.registered.remove(&dir).unwrap_or_default() {
                if present.iter().any(|other| other.is_version_of(&version)) {
                    // The deleted folder may have replaced the package of the other folder under the same version, so
                    // the other folder is registered again.
                    self.registered.retain(|_, versions| !versions.iter().any(|other| other.is_version_of(&version)));
                    continue;
                }
                let Registered { name, version: number, .. } = &version;
                match client.delete(&["api", "agents", name, "versions", number]).await {
                    Ok(_) => context.note(&format!("retired {name} {number}: {} was deleted", shown(&dir))),
                    Err(failure) if failure.exit == Exit::NotFound => {}
                    Err(failure) if matches!(failure.exit, Exit::Unreachable | Exit::Busy) => {
                        answered = false;
                        kept.push(version);
                    }
                    Err(failure) => context.report(&failure),
                }
            }
            if !kept.is_empty() {
                self.registered.insert(dir, kept);
            }
        }
        answered
    }
}

/// The packages and problems in a folder.
struct Read {
    packages: Vec<(PathBuf, Package)>,
    problems: Vec<Failure>,
}

fn read(folder: &Path) -> Read {
    let discovery = atlas_package::discover(&[folder]);
    let mut read = Read { packages: Vec::new(), problems: discovery.skipped.into_iter().map(skipped).collect() };
    for found in discovery.found {
        match pack(&found.dir) {
            Ok(package) => read.packages.push((found.dir, package)),
            Err(problem) => read.problems.push(problem),
        }
    }
    read
}
