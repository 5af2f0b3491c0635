//! The agents of `--agents-path`.

use std::io::Write;
use std::path::Path;

use atlas_contract::Contract;
use atlas_env::Env;
use atlas_package::DiscoveredAgent;

use super::render;

/// Every agent below a folder; invalid ones are reported on stderr as in the log of Atlas for Python.
pub(super) fn agents(folder: &Path) -> Vec<DiscoveredAgent> {
    let discovery = atlas_package::discover(&[folder]);
    for skipped in &discovery.skipped {
        warn("atlas.registry", &skipped.to_string());
    }
    let mut found: Vec<DiscoveredAgent> = Vec::new();
    for agent in discovery.found {
        let (name, version) = (&agent.contract.name, &agent.contract.version);
        // As in Atlas for Python, a later duplicate replaces the earlier one and keeps its position.
        match found.iter().position(|known| known.contract.name == *name && known.contract.version == *version) {
            Some(at) => found[at] = agent,
            None => found.push(agent),
        }
    }
    found
}

/// The highest version of an agent.
pub(super) fn latest<'f>(found: &'f [DiscoveredAgent], name: &str) -> Option<&'f DiscoveredAgent> {
    let named = || found.iter().filter(|agent| agent.contract.name.as_str() == name);
    let version = atlas_contract::requirement::latest(named().map(|agent| agent.contract.version))?;
    named().find(|agent| agent.contract.version == version)
}

/// `  name  v1.0.0  [a, b]`.
pub(super) fn line(contract: &Contract) -> String {
    format!("  {}  v{}{}", contract.name, contract.version, render::capabilities(&contract.capabilities))
}

/// A line of the log: `HH:MM:SS [WARNING] name: text`, in UTC.
pub(super) fn warn(name: &str, text: &str) {
    let seconds = Env::system().clock.wall().0.div_euclid(1_000_000).rem_euclid(86_400);
    let (hour, minute, second) = (seconds / 3_600, seconds / 60 % 60, seconds % 60);
    // The command must succeed even if the terminal was closed.
    let _ = writeln!(std::io::stderr(), "{hour:02}:{minute:02}:{second:02} [WARNING] {name}: {text}");
}
