//! Memory and open files of a process, from `/proc`.

use std::fs;

/// A sample of a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Sample {
    /// Resident anonymous memory.
    pub(super) bytes: u64,
    /// Open file descriptors.
    pub(super) files: u64,
}

impl Sample {
    /// None once the process has ended.
    pub(super) fn of(pid: u32) -> Option<Self> {
        let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
        let files = fs::read_dir(format!("/proc/{pid}/fd")).ok()?.count() as u64;
        Some(Self { bytes: anonymous(&status)?, files })
    }
}

fn anonymous(status: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kib.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_read_from_the_status_of_a_process() {
        assert_eq!(anonymous("Name:\tx\nRssAnon:\t     208 kB\nRssFile:\t 1 kB\n"), Some(208 << 10));
        for status in ["", "RssAnon:\t208", "RssAnon:\tmany kB", "RssAnon: 99999999999999999 kB"] {
            assert_eq!(anonymous(status), None, "{status}");
        }
        let own = Sample::of(std::process::id()).expect("this one runs");
        assert!(own.bytes > 0 && own.files > 2, "{own:?}");
    }
}
