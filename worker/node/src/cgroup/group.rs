//! One group: its limits, its processes, and its removal.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use super::layout::{Controller, Version};

/// The file through which a process enters a group.
pub(super) const PROCESSES: &str = "cgroup.procs";

/// The period for a group's CPU quota. Equals the kernel's default.
const PERIOD_MICROS: u64 = 100_000;

/// The highest number of cores for a quota, because the kernel refuses absurd quotas.
const CORES_MAX: u64 = 1 << 16;

/// More than the kernel writes into the file with the number of killed processes.
const KILLS_BYTES_MAX: usize = 1_024;

/// A group for one process tree, with one directory in each hierarchy that limits it. Dropping it removes the group.
/// The tree must have ended before.
#[derive(Debug)]
pub(crate) struct Group {
    directories: Vec<PathBuf>,
    /// Where its memory is counted.
    memory: Option<CountedMemory>,
    left: Arc<Left>,
}

#[derive(Debug)]
struct CountedMemory {
    directory: PathBuf,
    /// The number of processes that were killed at the limit. Held open, because each job looks at it.
    kills: File,
}

impl Group {
    /// A group without directories.
    pub(super) fn new(left: Arc<Left>) -> Self {
        Self { directories: Vec::new(), memory: None, left }
    }

    /// Sets the limit of one controller in `directory`, which may already exist because of another controller.
    pub(super) fn limit(
        &mut self,
        directory: &Path,
        version: Version,
        controller: Controller,
        amount: u64,
    ) -> io::Result<()> {
        if !self.directories.iter().any(|known| known == directory) {
            fs::create_dir(directory)?;
            self.directories.push(directory.to_owned());
        }
        for setting in settings(version, controller, amount) {
            let written = write(&directory.join(setting.file), &setting.text);
            if setting.required {
                written?;
            }
        }
        if controller == Controller::Memory {
            let kills = File::open(directory.join(kills_file(version))).ok();
            self.memory = kills.map(|kills| CountedMemory { directory: directory.to_owned(), kills });
        }
        Ok(())
    }

    /// True if the group has no directory.
    pub(super) fn is_empty(&self) -> bool {
        self.directories.is_empty()
    }

    /// The files through which a process enters the group, open for writing.
    pub(crate) fn entrances(&self) -> io::Result<Vec<File>> {
        let open = |directory: &PathBuf| OpenOptions::new().write(true).open(directory.join(PROCESSES));
        self.directories.iter().map(open).collect()
    }

    /// The most memory that the group used. None on a kernel that does not say so.
    pub(crate) fn peak_bytes(&self) -> Option<u64> {
        let directory = &self.memory.as_ref()?.directory;
        let read = |file| fs::read_to_string(directory.join(file)).ok()?.trim().parse().ok();
        read("memory.peak").or_else(|| read("memory.max_usage_in_bytes"))
    }

    /// The number of processes that were killed so far because the group reached its memory limit.
    pub(crate) fn kills(&self) -> u64 {
        let mut text = [0; KILLS_BYTES_MAX];
        let bytes = self.memory.as_ref().and_then(|memory| memory.kills.read_at(&mut text, 0).ok()).unwrap_or(0);
        std::str::from_utf8(&text[..bytes]).ok().and_then(kills_in).unwrap_or(0)
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        for directory in self.directories.drain(..) {
            self.left.remove(directory);
        }
    }
}

/// Groups that could not be removed yet, because the kernel still reports a process in them.
#[derive(Debug, Default)]
pub(super) struct Left(Mutex<Vec<PathBuf>>);

impl Left {
    /// Removes a group, or remembers it for a later attempt.
    pub(super) fn remove(&self, directory: PathBuf) {
        match fs::remove_dir(&directory) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                self.0.lock().unwrap_or_else(PoisonError::into_inner).push(directory);
            }
            _ => {}
        }
    }

    /// Tries again to remove the remaining groups.
    pub(super) fn retry(&self) {
        let left = std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner));
        left.into_iter().for_each(|directory| self.remove(directory));
    }
}

/// A file of a group and the text to write to it.
#[derive(Debug, PartialEq, Eq)]
struct Setting {
    file: &'static str,
    text: String,
    /// True if the limit does not work without this setting. The other settings depend on the kernel's build.
    required: bool,
}

fn settings(version: Version, controller: Controller, amount: u64) -> Vec<Setting> {
    let required = |file, text| Setting { file, text, required: true };
    let optional = |file, text| Setting { file, text, required: false };
    let quota = amount.min(CORES_MAX) * PERIOD_MICROS;
    match (version, controller) {
        // Without a limit on swap, a tree could use more than its memory.
        (Version::V1, Controller::Memory) => vec![
            required("memory.limit_in_bytes", amount.to_string()),
            optional("memory.memsw.limit_in_bytes", amount.to_string()),
        ],
        (Version::V2, Controller::Memory) => {
            vec![required("memory.max", amount.to_string()), optional("memory.swap.max", "0".to_owned())]
        }
        (Version::V1, Controller::Cpu) => vec![
            required("cpu.cfs_period_us", PERIOD_MICROS.to_string()),
            required("cpu.cfs_quota_us", quota.to_string()),
        ],
        (Version::V2, Controller::Cpu) => vec![required("cpu.max", format!("{quota} {PERIOD_MICROS}"))],
    }
}

fn kills_file(version: Version) -> &'static str {
    match version {
        Version::V1 => "memory.oom_control",
        Version::V2 => "memory.events",
    }
}

/// Both versions have a line like `oom_kill 3`. Kernels before 4.13 do not have it.
fn kills_in(text: &str) -> Option<u64> {
    text.lines().find_map(|line| line.strip_prefix("oom_kill ")?.trim().parse().ok())
}

/// Writes to an existing file.
pub(super) fn write(file: &Path, text: &str) -> io::Result<()> {
    OpenOptions::new().write(true).open(file)?.write_all(text.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_version_has_its_own_files() {
        let said = |version, controller, amount| -> Vec<String> {
            let settings = settings(version, controller, amount);
            settings.into_iter().map(|setting| format!("{}={}", setting.file, setting.text)).collect()
        };
        assert_eq!(said(Version::V2, Controller::Memory, 1 << 30), ["memory.max=1073741824", "memory.swap.max=0"]);
        assert_eq!(said(Version::V2, Controller::Cpu, 2), ["cpu.max=200000 100000"]);
        assert_eq!(
            said(Version::V1, Controller::Memory, 1 << 30),
            ["memory.limit_in_bytes=1073741824", "memory.memsw.limit_in_bytes=1073741824"]
        );
        assert_eq!(said(Version::V1, Controller::Cpu, 1), ["cpu.cfs_period_us=100000", "cpu.cfs_quota_us=100000"]);
        assert_eq!(said(Version::V2, Controller::Cpu, u64::MAX), ["cpu.max=6553600000 100000"]);
    }

    #[test]
    fn kills_are_counted_in_each_version() {
        assert_eq!(kills_in("oom_kill_disable 0\nunder_oom 0\noom_kill 2\n"), Some(2));
        assert_eq!(kills_in("low 0\nhigh 0\nmax 31\noom 4\noom_kill 3\noom_group_kill 0\n"), Some(3));
        assert_eq!(kills_in("oom_kill_disable 0\nunder_oom 0\n"), None);
        assert_eq!(kills_in("oom_kill -1\n"), None);
    }

    #[test]
    fn a_group_that_is_not_empty_yet_is_removed_later() {
        let parent = tempfile::tempdir().expect("temporary directory");
        let (left, directory) = (Left::default(), parent.path().join("g"));
        fs::create_dir_all(directory.join("busy")).expect("writable");
        left.remove(directory.clone());
        left.retry();
        assert!(directory.exists());
        fs::remove_dir(directory.join("busy")).expect("there");
        left.retry();
        assert!(!directory.exists() && left.0.lock().expect("not poisoned").is_empty());
    }
}
