//! A small file system for a test, which can be filled and freed. It needs the right to mount.

use std::fs::{self, File};
use std::io::Write;
use std::path::PathBuf;

use nix::mount::{MntFlags, MsFlags, mount, umount2};

/// A small file system in memory, unmounted on drop.
pub(crate) struct Small(pub(crate) PathBuf);

impl Small {
    /// Mounts a file system; none, with a notice that the test is skipped, without the right to mount.
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

    /// Fills the free space except `left` bytes.
    pub(crate) fn fill(&self, left: usize) {
        let mut filler = File::options().append(true).create(true).open(self.filler()).expect("a file");
        let block = vec![1; 64 << 10];
        while filler.write_all(&block).is_ok() {}
        let len = filler.metadata().expect("readable").len();
        filler.set_len(len.saturating_sub(left as u64)).expect("shortened");
    }

    /// Frees the filled space.
    pub(crate) fn free(&self) {
        fs::remove_file(self.filler()).expect("removed");
    }
}

impl Drop for Small {
    fn drop(&mut self) {
        // Detached, because a killed process may keep the mount busy for a moment.
        let _ = umount2(&self.0, MntFlags::MNT_DETACH);
    }
}
