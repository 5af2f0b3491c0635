//! Limits of control groups, versions 1 and 2, read from their files.

use std::fs;
use std::path::{Path, PathBuf};

/// The resources that a process may use; none for no limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CgroupLimits {
    /// Whole cores: a quota of 1.5 cores counts as 2, because two threads can share it.
    pub cores: Option<u32>,
    /// Memory.
    pub memory_bytes: Option<u64>,
}

impl CgroupLimits {
    fn tighten(&mut self, other: Self) {
        self.cores = least(self.cores, other.cores);
        self.memory_bytes = least(self.memory_bytes, other.memory_bytes);
    }
}

fn least<T: Ord>(left: Option<T>, right: Option<T>) -> Option<T> {
    left.into_iter().chain(right).min()
}

/// Version 1 writes "no limit" as a number near the largest page-aligned one.
const NO_LIMIT_BYTES: u64 = 1 << 60;

/// The lowest limits of all groups from the root of the hierarchy to the group named in `own` (`/proc/self/cgroup`).
///
/// Inside a container that group often does not exist, because the root is the container's own group. The root's files
/// then apply.
pub fn limits(root: &Path, own: &str) -> CgroupLimits {
    let mut limits = CgroupLimits::default();
    for line in own.lines() {
        let mut fields = line.splitn(3, ':');
        let (Some(_), Some(controllers), Some(group)) = (fields.next(), fields.next(), fields.next()) else { continue };
        if controllers.is_empty() {
            for_each_ancestor(root, group, |directory| limits.tighten(version_2(directory)));
            continue;
        }
        for controller in controllers.split(',') {
            match controller {
                "cpu" => {
                    for_each_ancestor(&root.join("cpu"), group, |dir| limits.cores = least(limits.cores, cpu_1(dir)))
                }
                "memory" => for_each_ancestor(&root.join("memory"), group, |dir| {
                    limits.memory_bytes = least(limits.memory_bytes, memory_1(dir));
                }),
                _ => {}
            }
        }
    }
    limits
}

fn for_each_ancestor(root: &Path, group: &str, mut visit: impl FnMut(&Path)) {
    let mut directory = PathBuf::from(root);
    visit(&directory);
    for part in Path::new(group).components() {
        if let std::path::Component::Normal(part) = part {
            directory.push(part);
            visit(&directory);
        }
    }
}

fn version_2(directory: &Path) -> CgroupLimits {
    let cores = read(directory, "cpu.max").and_then(|text| {
        let (quota, period) = text.split_once(' ')?;
        cores(quota.parse().ok()?, period.parse().ok()?)
    });
    let memory_bytes = read(directory, "memory.max").and_then(|text| text.parse().ok());
    CgroupLimits { cores, memory_bytes }
}

fn cpu_1(directory: &Path) -> Option<u32> {
    // A missing quota is written as -1, which does not parse as an unsigned number.
    let quota = read(directory, "cpu.cfs_quota_us")?.parse().ok()?;
    cores(quota, read(directory, "cpu.cfs_period_us")?.parse().ok()?)
}

fn memory_1(directory: &Path) -> Option<u64> {
    let bytes = read(directory, "memory.limit_in_bytes")?.parse().ok()?;
    (bytes < NO_LIMIT_BYTES).then_some(bytes)
}

fn cores(quota: u64, period: u64) -> Option<u32> {
    (period > 0).then(|| u32::try_from(quota.div_ceil(period).max(1)).unwrap_or(u32::MAX))
}

fn read(directory: &Path, file: &str) -> Option<String> {
    Some(fs::read_to_string(directory.join(file)).ok()?.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Limits of a hierarchy given as `path = content` lines.
    fn check(files: &[(&str, &str)], own: &str, cores: Option<u32>, memory_bytes: Option<u64>) {
        let root = tempfile::tempdir().expect("temporary directory");
        for (path, content) in files {
            let path = root.path().join(path);
            fs::create_dir_all(path.parent().expect("below the root")).expect("writable");
            fs::write(path, content).expect("writable");
        }
        assert_eq!(limits(root.path(), own), CgroupLimits { cores, memory_bytes });
    }

    #[test]
    fn version_2_takes_the_tightest_on_the_way_down() {
        check(
            &[
                ("cpu.max", "max 100000"),
                ("pods/cpu.max", "400000 100000\n"),
                ("pods/a/cpu.max", "150000 100000"),
                ("pods/memory.max", "8589934592"),
                ("pods/a/memory.max", "max"),
            ],
            "0::/pods/a\n",
            Some(2),
            Some(8 << 30),
        );
    }

    #[test]
    fn inside_a_container_the_root_is_the_own_group() {
        check(&[("cpu.max", "50000 100000"), ("memory.max", "1073741824")], "0::/not/here", Some(1), Some(1 << 30));
    }

    #[test]
    fn version_1_reads_each_controller() {
        check(
            &[
                ("cpu/docker/x/cpu.cfs_quota_us", "200000"),
                ("cpu/docker/x/cpu.cfs_period_us", "100000"),
                ("cpu/cpu.cfs_quota_us", "-1"),
                ("cpu/cpu.cfs_period_us", "100000"),
                ("memory/memory.limit_in_bytes", "9223372036854771712"),
                ("memory/docker/x/memory.limit_in_bytes", "4294967296"),
            ],
            "4:memory:/docker/x\n3:cpu,cpuacct:/docker/x\n0::/\n",
            Some(2),
            Some(4 << 30),
        );
    }

    #[test]
    fn no_files_and_garbage_are_no_limit() {
        check(&[("cpu.max", "soon"), ("memory.max", "")], "0::/\nnonsense\n", None, None);
        check(&[], "", None, None);
        check(&[("cpu.max", "100000 0")], "0::/../..", None, None);
    }
}
