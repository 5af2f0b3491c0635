//! `atlas registry`: packages of agents in shared folders (compatibility §17.1).
//!
//! Registries over HTTP can be named, but not asked yet.

mod config;
mod install;

use std::path::{Path, PathBuf};

use atlas_contract::requirement::Requirement;
use atlas_env::Env;
use atlas_package::{FolderRegistry, Manifest, REGISTRY_SEARCH_LIMIT, RegistryError};
use atlas_types::Version;
use serde_json::Value;

use self::config::{Location, Registry};
use super::answer::{Answer, Refusal};
use super::{folder, render};

/// Verbs of `atlas registry`.
#[derive(Debug, clap::Subcommand)]
pub(super) enum Verb {
    /// Adds a registry, or replaces the one of this name.
    Add(Add),
    /// Removes a registry from the file of registries.
    Remove {
        /// Name of the registry.
        name: String,
        #[command(flatten)]
        file: ConfigFile,
    },
    /// Lists the registries.
    List(ConfigFile),
    /// Packs an agent and publishes it.
    Publish(Publish),
    /// Installs the highest version of an agent.
    Pull(Pull),
    /// Searches for agents.
    Search(Search),
}

/// The file of registries.
#[derive(Debug, clap::Args)]
pub(super) struct ConfigFile {
    /// File of registries [default: .atlas/registries.yaml, here or in the home folder].
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
}

/// Options of `atlas registry add`.
#[derive(Debug, clap::Args)]
pub(super) struct Add {
    /// Name of the registry.
    name: String,
    /// The folder of the registry.
    #[arg(long, value_name = "PATH", conflicts_with = "http")]
    file: Option<String>,
    /// The URL of the registry.
    #[arg(long, value_name = "URL")]
    http: Option<String>,
    /// Token for a registry over HTTP; `${VARIABLE}` is kept as written.
    #[arg(long)]
    token: Option<String>,
    #[command(flatten)]
    config: ConfigFile,
}

/// Options of `atlas registry publish`.
#[derive(Debug, clap::Args)]
pub(super) struct Publish {
    /// Folder of the agent.
    directory: PathBuf,
    /// Name of the registry.
    #[arg(long, short, default_value = "local")]
    registry: String,
    #[command(flatten)]
    config: ConfigFile,
}

/// Options of `atlas registry pull`.
#[derive(Debug, clap::Args)]
pub(super) struct Pull {
    /// Name of the agent.
    name: String,
    /// Version requirement.
    #[arg(long, short, default_value = "*")]
    version: String,
    /// Ask only this registry.
    #[arg(long, short)]
    registry: Option<String>,
    /// Where agents are installed.
    #[arg(long, default_value = "./agents", value_name = "DIR")]
    install_dir: PathBuf,
    #[command(flatten)]
    config: ConfigFile,
}

/// Options of `atlas registry search`.
#[derive(Debug, clap::Args)]
pub(super) struct Search {
    /// Text in the name, the description or the capabilities.
    query: String,
    /// Ask only this registry.
    #[arg(long, short)]
    registry: Option<String>,
    /// Print JSON.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    config: ConfigFile,
}

pub(super) fn run(verb: &Verb) -> Answer {
    match verb {
        Verb::Add(options) => add(options),
        Verb::Remove { name, file } => remove(name, &file.path()),
        Verb::List(file) => list(&file.path()),
        Verb::Publish(options) => publish(options),
        Verb::Pull(options) => pull(options),
        Verb::Search(options) => search(options),
    }
}

impl ConfigFile {
    fn path(&self) -> PathBuf {
        config::path(self.config.as_deref())
    }
}

fn add(options: &Add) -> Answer {
    let location = match (&options.file, &options.http) {
        (Some(path), _) => Location::Folder(path.clone()),
        (None, Some(url)) => Location::Http(url.clone()),
        (None, None) => return Err(Refusal::new("Must specify --file or --http")),
    };
    let path = options.config.path();
    let mut registries = config::read(&path)?;
    let added = Registry::new(&options.name, location, options.token.as_deref());
    match registries.iter_mut().find(|registry| registry.name == options.name) {
        Some(known) => *known = added,
        None => registries.push(added),
    }
    config::write(&path, &registries)?;
    Ok(format!("Added registry '{}' -> {}\n", options.name, path.display()))
}

fn remove(name: &str, path: &Path) -> Answer {
    let mut registries = config::read(path)?;
    let before = registries.len();
    registries.retain(|registry| registry.name != name);
    if registries.len() == before {
        return Err(unknown(name));
    }
    config::write(path, &registries)?;
    Ok(format!("Removed registry '{name}'\n"))
}

fn list(path: &Path) -> Answer {
    let registries = config::read(path)?;
    if registries.is_empty() {
        return Ok("No registries configured.\n".to_owned());
    }
    Ok(registries.iter().map(Registry::line).collect())
}

fn publish(options: &Publish) -> Answer {
    let registries = config::read(&options.config.path())?;
    let registry = registries.iter().find(|registry| registry.name == options.registry);
    let registry = shelf(registry.ok_or_else(|| unknown(&options.registry))?)?;
    let package = atlas_package::pack(&options.directory)
        .map_err(|error| Refusal::new(format!("Pack failed: {}", chain(&error))))?;
    let manifest = Manifest::of(&package, &now());
    registry.publish(&manifest, &package.bytes).map_err(|error| failed(&error))?;
    let digest: String = manifest.sha256.chars().take(12).collect();
    Ok(format!("Published {manifest} ({} bytes, sha256={digest}...)\n", manifest.size_bytes))
}

fn pull(options: &Pull) -> Answer {
    let requirement = Requirement::parse(&options.version).map_err(|error| Refusal::new(format!("Error: {error}")))?;
    for registry in selected(&options.config.path(), options.registry.as_deref())? {
        let registry = shelf(&registry)?;
        let versions = registry.versions(&options.name).map_err(|error| failed(&error))?;
        // A version as text may have leading zeros, which the parsed one has not.
        let parsed = versions.iter().filter_map(|text| Some((text.parse::<Version>().ok()?, text)));
        let parsed: Vec<_> = parsed.filter(|(version, _)| requirement.matches(version)).collect();
        let Some((_, version)) = parsed.iter().max_by_key(|(version, _)| *version) else { continue };
        let found = registry.manifest(&options.name, version).map_err(|error| failed(&error))?;
        let archive = registry.archive(&options.name, version).map_err(|error| failed(&error))?;
        let (Some(manifest), Some(archive)) = (found, archive) else { continue };
        let target = options.install_dir.join(&options.name);
        install::install(&manifest, &archive, &target)?;
        return Ok(format!("Installed {manifest} -> {}\n", target.display()));
    }
    let Pull { name, version, .. } = options;
    Err(Refusal::new(format!("Agent '{name}' (version {version}) not found in any registry")))
}

fn search(options: &Search) -> Answer {
    let mut found: Vec<Manifest> = Vec::new();
    for registry in selected(&options.config.path(), options.registry.as_deref())? {
        let results = shelf(&registry)?.search(&options.query, REGISTRY_SEARCH_LIMIT);
        found.extend(results.map_err(|error| failed(&error))?);
    }
    if options.json {
        return Ok(render::json(&Value::Array(found.iter().map(Manifest::to_json).collect())));
    }
    if found.is_empty() {
        return Ok("No agents found.\n".to_owned());
    }
    let line = |manifest: &Manifest| {
        format!("  {manifest} — {} [{}]\n", manifest.description, manifest.capabilities.join(", "))
    };
    Ok(found.iter().map(line).collect())
}

/// The registries to ask: the one with a name, or all that can be asked.
fn selected(path: &Path, name: Option<&str>) -> Result<Vec<Registry>, Refusal> {
    let mut registries = config::read(path)?;
    if let Some(name) = name {
        registries.retain(|registry| registry.name == name);
        if registries.is_empty() {
            return Err(unknown(name));
        }
    } else {
        registries.retain(|registry| match shelf(registry) {
            Ok(_) => true,
            Err(Refusal(text)) => {
                folder::warn("atlas.registry", &text);
                false
            }
        });
    }
    if registries.is_empty() {
        return Err(Refusal::new("No registries available"));
    }
    Ok(registries)
}

fn shelf(registry: &Registry) -> Result<FolderRegistry, Refusal> {
    match &registry.location {
        Location::Folder(path) => Ok(FolderRegistry::new(path)),
        Location::Http(_) => {
            Err(Refusal::new(format!("Registry '{}' is reached over HTTP, which is not supported yet", registry.name)))
        }
    }
}

fn unknown(name: &str) -> Refusal {
    Refusal::new(format!("Registry '{name}' not found"))
}

fn failed(error: &RegistryError) -> Refusal {
    Refusal::new(format!("Error: {}", chain(error)))
}

/// An error and its causes.
fn chain(error: &dyn std::error::Error) -> String {
    let causes = std::iter::successors(Some(error), |error| error.source());
    causes.map(ToString::to_string).collect::<Vec<_>>().join(": ")
}

/// The time in ISO 8601, in UTC.
fn now() -> String {
    let time = chrono::DateTime::from_timestamp_micros(Env::system().clock.wall().0).unwrap_or_default();
    time.format("%Y-%m-%dT%H:%M:%S%.6f+00:00").to_string()
}

#[cfg(test)]
mod tests;
