//! Definitions of Loki: graphs and configurations.

use std::path::Path;

use atlas_contract::Warning;
use atlas_package::{GraphError, GraphFolder, Known};

use super::{Findings, shown};

/// Checks a graph. Other agents may be in the cluster.
pub(super) fn graph(folder: &Path, findings: &mut Findings) {
    let at = shown(folder, atlas_package::GRAPH_FILE);
    let known = Known { agents_elsewhere: true, ..Known::default() };
    let graph = GraphFolder { known, ..GraphFolder::new(folder) };
    let loaded = match graph.read() {
        Ok(loaded) => loaded,
        Err(error) => return findings.problem(at, atlas_env::chain(&error)),
    };
    match graph.validate(&loaded) {
        Ok(warnings) => findings.warnings.extend(warnings.iter().map(|warning| Warning::new(&at, warning.to_string()))),
        Err(GraphError::Invalid { errors }) => errors.iter().for_each(|error| findings.problem(&at, error.to_string())),
        Err(error) => findings.problem(at, atlas_env::chain(&error)),
    }
}

/// Checks a configuration.
pub(super) fn normal(folder: &Path, findings: &mut Findings) {
    let at = shown(folder, atlas_package::CONFIG_FILE);
    match atlas_package::config(folder) {
        Ok(config) => {
            let unknown = config.unknown.iter();
            findings.warnings.extend(unknown.map(|name| Warning::unknown_key(format!("/{name}"), None).in_file(&at)));
        }
        Err(error) => findings.problem(at, atlas_env::chain(&error)),
    }
}
