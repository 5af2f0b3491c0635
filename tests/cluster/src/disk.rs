//! A disk of a test: a folder, or a file system of a fixed size that can be filled and freed again.

use std::fs::{self, File};
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};

use nix::mount::{MsFlags, mount};

use crate::net::Host;

/// The name of the file that fills a disk.
const FILLER: &str = "filler";

/// The disk for a program's data. All operations run on the program's host, because the mount may be visible only
/// there.
#[derive(Debug, Clone)]
pub struct Disk {
    folder: PathBuf,
    limited: bool,
}

impl Disk {
    /// A folder of the machine's own disk.
    pub fn folder(folder: PathBuf) -> Self {
        fs::create_dir_all(&folder).expect("a folder");
        Self { folder, limited: false }
    }

    /// A file system of `mib` MiB that only the host sees. It is in memory, so syncs are free.
    pub fn limited(folder: PathBuf, mib: u64, host: &Host) -> Result<Self, String> {
        fs::create_dir_all(&folder).expect("a folder");
        let at = folder.clone();
        let options = format!("size={mib}m");
        let mounted = host.run(move || {
            mount(Some("disk"), &at, Some("tmpfs"), MsFlags::empty(), Some(options.as_str()))
                .map_err(|error| format!("no file system of a fixed size: {error}"))
        });
        mounted.map(|()| Self { folder, limited: true })
    }

    /// The data folder.
    pub fn data(&self) -> PathBuf {
        self.folder.join("data")
    }

    /// Whether the disk has a fixed size and can be filled.
    pub fn is_limited(&self) -> bool {
        self.limited
    }

    /// Fills the free space; returns the number of bytes.
    pub fn fill(&self, host: &Host) -> u64 {
        let path = self.folder.join(FILLER);
        host.run(move || fill(&path))
    }

    /// Frees the filled space.
    pub fn free(&self, host: &Host) {
        let path = self.folder.join(FILLER);
        host.run(move || {
            // The disk may not have been filled.
            let _ = fs::remove_file(&path);
        });
    }

    /// Deletes all data, as if the disk were replaced.
    pub fn wipe(&self, host: &Host) {
        let data = self.data();
        host.run(move || {
            if data.exists() {
                fs::remove_dir_all(&data).expect("removed");
            }
        });
    }
}

fn fill(path: &Path) -> u64 {
    let mut file = File::options().create(true).append(true).open(path).expect("the filler opens");
    let mut written = 0;
    // Large pieces first, then single blocks, so that no space is left.
    for piece in [1 << 20, 4 << 10] {
        let zeros = vec![0; piece];
        loop {
            match file.write(&zeros) {
                Ok(bytes) => written += bytes as u64,
                Err(error) if error.kind() == ErrorKind::StorageFull => break,
                Err(error) => panic!("the disk does not fill: {error}"),
            }
        }
    }
    written
}
