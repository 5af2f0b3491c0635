//! A small file system of a test, which can be filled and freed. Needs the right to mount one.

use std::fs::{self, File};
use std::io::Write;
use std::path::PathBuf;

use nix::mount::{MntFlags, MsFlags, mount, umount2};

/// A small file system in memory, gone at the end.
pub(crate) struct Small(pub(crate) PathBuf);

impl Small {
    /// Mounts one; without the right to mount, the running test is skipped.
    pub(crate) fn mount(at: PathBuf, mib: u64) -> Option<Self> {
        fs::create_dir_all(&at).expect("a folder");
        let size = format!("size={mib}m");
        match mount(Some("small"), &at, Some("tmpfs"), MsFlags::empty(), Some(size.as_str())) {
            Ok(()) => Some(Self(at)),
            Err(error) => {
                atlas_notice::skip(format_args!("nothing can be mounted here: {error}"));
                None
            }
        }
    }

    fn filler(&self) -> PathBuf {
        self.0.join("filler")
    }

    /// Takes what is free, but for `left` bytes.
    pub(crate) fn fill(&self, left: usize) {
        let mut filler = File::options().append(true).create(true).open(self.filler()).expect("a file");
        let block = vec![1; 64 << 10];
        while filler.write_all(&block).is_ok() {}
        let len = filler.metadata().expect("readable").len();
        filler.set_len(len.saturating_sub(left as u64)).expect("shortened");
    }

    /// Gives it back.
    pub(crate) fn free(&self) {
        fs::remove_file(self.filler()).expect("removed");
    }
}

impl Drop for Small {
    fn drop(&mut self) {
        // Detached, since a process that was killed may hold it for a moment longer.
        let _ = umount2(&self.0, MntFlags::MNT_DETACH);
    }
}
