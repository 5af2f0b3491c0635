//! The folder of a row's graph agent, with the agents beside it.

use std::path::Path;

use atlas_package::{GRAPH_FILE, GraphError, GraphFolder};
use serde_json::Value;
use tempfile::TempDir;

use crate::result::Stop;
use crate::row::{Row, members};

/// The folder of the agent below that of all agents.
const NAME: &str = "g";

/// A configuration folder with the row's files. It is removed with this value.
pub(super) struct Config {
    pub(super) root: TempDir,
    pub(super) graph: GraphFolder,
}

/// Writes the files of a row: those of the agent are the member `files`.
pub(super) fn write(row: &Row, files: &str) -> Result<Config, Stop> {
    let root = tempfile::tempdir().map_err(|error| Stop::system("make a folder", error))?;
    let agents = root.path().join("agents");
    let folder = agents.join(NAME);
    write_all(root.path(), &row.input["config_files"])?;
    write_all(&agents, &row.input["agents"])?;
    write_all(&folder, &row.input[files])?;
    write_one(&folder.join(GRAPH_FILE), row.text("yaml"))?;
    Ok(Config { graph: GraphFolder::new(&folder), root })
}

fn write_all(folder: &Path, files: &Value) -> Result<(), Stop> {
    for (path, text) in members(files) {
        write_one(&folder.join(path), text.as_str().unwrap_or_default())?;
    }
    Ok(())
}

fn write_one(path: &Path, text: &str) -> Result<(), Stop> {
    let folder = path.parent().unwrap_or(path);
    std::fs::create_dir_all(folder).map_err(|error| Stop::system("make a folder", error))?;
    std::fs::write(path, text).map_err(|error| Stop::system("write a file", error))
}

/// Whether an error means that the agent does not start at all.
pub(super) fn is_start_error(error: &GraphError) -> bool {
    !matches!(error, GraphError::Load(_) | GraphError::Invalid { .. })
}
