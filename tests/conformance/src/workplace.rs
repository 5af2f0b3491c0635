//! The folder in which the command line rows run; it contains the bundled agents in `agents/`, their chains in `chains/` and the
//! bundled skills in `skills/`.

use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use tempfile::TempDir;

/// A temporary folder with the bundled agents and skills.
#[derive(Debug)]
pub(crate) struct Workplace(TempDir);

impl Workplace {
    /// Creates the folder.
    pub(crate) fn new() -> Result<Self, String> {
        let make = || {
            let folder = tempfile::tempdir()?;
            for agent in atlas_bundled::bundled() {
                let target = folder.path().join("agents").join(agent.dir.trim_start_matches("../"));
                for file in agent.files {
                    write(&target.join(&file.path), &file)?;
                }
            }
            for file in atlas_bundled::skills() {
                write(&folder.path().join("skills").join(&file.path), &file)?;
            }
            fs::create_dir(folder.path().join("chains"))?;
            for (name, definition) in atlas_bundled::chains() {
                fs::write(folder.path().join("chains").join(name), definition)?;
            }
            io::Result::Ok(folder)
        };
        make().map(Self).map_err(|error| format!("could not make the folder of the command line: {error}"))
    }

    /// The path of the folder.
    pub(crate) fn path(&self) -> &Path {
        self.0.path()
    }
}

fn write(path: &Path, file: &atlas_package::PackFile) -> io::Result<()> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    fs::write(path, &file.bytes)?;
    let mode = if file.executable { 0o755 } else { 0o644 };
    fs::set_permissions(path, Permissions::from_mode(mode))
}
