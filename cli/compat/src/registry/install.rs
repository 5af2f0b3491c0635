//! Installs a package into the folder of an agent.

use std::fs;
use std::io;
use std::path::Path;

use atlas_package::{Limits, Manifest, PARTIAL};

use super::super::answer::Refusal;
use super::chain;

/// Installs a package after comparing it with its manifest. In a folder that exists, files of the same names are replaced and others stay.
pub(super) fn install(manifest: &Manifest, archive: &[u8], target: &Path) -> Result<(), Refusal> {
    let refused = |error: &dyn std::error::Error| Refusal::new(format!("Error: {manifest}: {}", chain(error)));
    manifest.check(archive).map_err(|error| refused(&error))?;
    let inspected = atlas_package::inspect(archive, &Limits::default()).map_err(|error| refused(&error))?;
    manifest.check_contract(&inspected.contract).map_err(|error| refused(&error))?;
    if target.symlink_metadata().is_err() {
        return atlas_package::unpack(archive, target, &Limits::default()).map(drop).map_err(|error| refused(&error));
    }
    let fresh = target.with_extension(format!("{}.{PARTIAL}", std::process::id()));
    atlas_package::unpack(archive, &fresh, &Limits::default()).map_err(|error| refused(&error))?;
    let moved = inspected.files.iter().try_for_each(|file| move_file(&fresh.join(&file.path), target, &file.path));
    // The first error is the one to report.
    let _ = fs::remove_dir_all(&fresh);
    moved.map_err(|error| Refusal::new(format!("Error: could not write to {}: {error}", target.display())))
}

/// Moves a file to its place below a folder, unless a link would lead it elsewhere.
fn move_file(from: &Path, folder: &Path, path: &str) -> io::Result<()> {
    let mut place = folder.to_owned();
    let parts: Vec<&str> = path.split('/').collect();
    for (index, part) in parts.iter().enumerate() {
        if place.symlink_metadata().is_ok_and(|found| !found.is_dir()) {
            return Err(io::Error::new(io::ErrorKind::NotADirectory, format!("{} is not a folder", place.display())));
        }
        if index > 0 {
            fs::create_dir_all(&place)?;
        }
        place.push(part);
    }
    fs::rename(from, place)
}
