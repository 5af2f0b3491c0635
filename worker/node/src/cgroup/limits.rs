//! The limits that a contract states, and how they are enforced for one process tree.

use std::time::Duration;

use super::layout::{Controller, Version};

/// The code of the error of an agent that used more memory than its contract permits.
pub(crate) const MEMORY_CODE: &str = "E3107";

/// The code of the error of an agent that used more processor time than its contract permits.
pub(crate) const CPU_CODE: &str = "E3108";

/// How much more than a watched limit of memory one process may ask for. It keeps a process from taking the whole machine between two
/// looks, and leaves room for memory that programs reserve and never use.
const RESERVE_BYTES: u64 = 1 << 30;

/// The limits of a contract; none for no limit.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Limits {
    pub(crate) memory_bytes: Option<u64>,
    /// True if the tree is looked at where no group limits its memory; if not, each of its processes has an rlimit.
    pub(crate) watches_memory: bool,
    pub(crate) cores: Option<u64>,
    /// The processor time of one attempt.
    pub(crate) cpu: Option<Duration>,
}

/// A limit that an attempt reached.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Breach {
    pub(crate) code: &'static str,
    /// It names the limit and what was used.
    pub(crate) text: String,
    /// False if the attempt may have ended well all the same: the kernel killed one of its processes, and others went on.
    pub(crate) is_end: bool,
}

/// How limits are enforced for one process tree.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Enforced {
    pub(crate) limits: Limits,
    /// The version of the group that limits the memory. Without a group, each process has an rlimit.
    pub(super) memory: Option<Version>,
    /// The version of the group that limits the cores. Without a group, cores are not limited.
    pub(super) cpu: Option<Version>,
}

impl Enforced {
    /// Limits that are enforced without a group.
    pub(crate) fn by_rlimit(limits: Limits) -> Self {
        Self { limits, memory: None, cpu: None }
    }

    /// The version of the group for `controller`.
    pub(super) fn by(&mut self, controller: Controller) -> &mut Option<Version> {
        match controller {
            Controller::Memory => &mut self.memory,
            Controller::Cpu => &mut self.cpu,
        }
    }

    /// The breach if a group killed processes at the memory limit. `peak_bytes` is the most that it saw.
    pub(crate) fn killed(&self, peak_bytes: Option<u64>) -> Option<Breach> {
        let (bytes, version) = (self.limits.memory_bytes?, self.memory?);
        let used = peak_bytes.map(|peak| format!("; the most that they used was {}", size(peak))).unwrap_or_default();
        let limit = size(bytes);
        let text =
            format!("out of memory: the agent's processes reached the contract's limit of {limit} ({version}){used}");
        Some(Breach { code: MEMORY_CODE, text, is_end: false })
    }

    /// The memory that is looked at. None if a group or an rlimit bounds it.
    pub(crate) fn watched_memory(&self) -> Option<u64> {
        self.limits.memory_bytes.filter(|_| self.limits.watches_memory && self.memory.is_none())
    }

    /// Whether the tree must be looked at while it runs.
    pub(crate) fn is_watched(&self) -> bool {
        self.limits.cpu.is_some() || self.watched_memory().is_some()
    }

    /// The breach of an attempt that uses this much.
    pub(crate) fn breach(&self, memory_bytes: u64, cpu: Duration) -> Option<Breach> {
        if let Some(most) = self.watched_memory().filter(|&most| memory_bytes > most) {
            let (used, most) = (size(memory_bytes), size(most));
            let text =
                format!("out of memory: the agent's processes used {used}, more than the contract's limit of {most}");
            return Some(Breach { code: MEMORY_CODE, text, is_end: true });
        }
        let most = self.limits.cpu.filter(|&most| cpu > most)?;
        let (used, most) = (cpu.as_secs_f64(), most.as_secs());
        let text = format!(
            "out of processor time: the agent's processes used {used:.1} s, more than the contract's limit of {most} s"
        );
        Some(Breach { code: CPU_CODE, text, is_end: true })
    }

    /// The memory rlimit of each process. None if a group limits all processes together.
    pub(crate) fn rlimit(&self) -> Option<u64> {
        let bytes = self.limits.memory_bytes.filter(|_| self.memory.is_none())?;
        Some(if self.limits.watches_memory { bytes.saturating_add(RESERVE_BYTES) } else { bytes })
    }

    /// The text for the job's metadata. None if the contract states no limit.
    pub(crate) fn text(&self) -> Option<String> {
        let memory = self.limits.memory_bytes.map(|bytes| match self.memory {
            Some(version) => format!("memory {} by {version}", size(bytes)),
            None if self.limits.watches_memory => format!("memory {} watched", size(bytes)),
            None => format!("memory {} a process by rlimit", size(bytes)),
        });
        let cores = self.limits.cores.map(|cores| match self.cpu {
            Some(version) => format!("cpu {cores} {} by {version}", if cores == 1 { "core" } else { "cores" }),
            None => "cpu not enforced".to_owned(),
        });
        let cpu = self.limits.cpu.map(|most| format!("cpu time {} s watched", most.as_secs()));
        let said: Vec<String> = memory.into_iter().chain(cores).chain(cpu).collect();
        (!said.is_empty()).then(|| said.join(", "))
    }
}

/// An amount of memory: `2 GiB`, or `65 MiB` for what is no whole number of them.
fn size(bytes: u64) -> String {
    match bytes {
        1.. if bytes.is_multiple_of(1 << 30) => format!("{} GiB", bytes >> 30),
        _ => format!("{} MiB", bytes.div_ceil(1 << 20)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_says_what_enforces_which_limit() {
        let limits = Limits { memory_bytes: Some(2 << 30), cores: Some(1), ..Limits::default() };
        let said = |memory, cpu| Enforced { limits, memory, cpu }.text().unwrap_or_default();
        assert_eq!(said(Some(Version::V2), Some(Version::V2)), "memory 2 GiB by cgroup v2, cpu 1 core by cgroup v2");
        assert_eq!(said(Some(Version::V1), None), "memory 2 GiB by cgroup v1, cpu not enforced");
        assert_eq!(said(None, None), "memory 2 GiB a process by rlimit, cpu not enforced");
        assert_eq!(Enforced::default().text(), None);
        let limits = Limits {
            memory_bytes: Some(64 << 20),
            watches_memory: true,
            cpu: Some(Duration::from_secs(2)),
            ..Limits::default()
        };
        let said = |memory| Enforced { limits, memory, cpu: None }.text().unwrap_or_default();
        assert_eq!(said(None), "memory 64 MiB watched, cpu time 2 s watched");
        assert_eq!(said(Some(Version::V2)), "memory 64 MiB by cgroup v2, cpu time 2 s watched");
    }

    #[test]
    fn a_breach_names_the_limit_and_what_was_used() {
        let limits = Limits {
            memory_bytes: Some(64 << 20),
            watches_memory: true,
            cpu: Some(Duration::from_secs(2)),
            ..Limits::default()
        };
        let watched = Enforced { limits, memory: None, cpu: None };
        let check = |enforced: Enforced, memory, millis, expected: Option<(&str, &str)>| {
            let breach = enforced.breach(memory, Duration::from_millis(millis));
            assert_eq!(breach.as_ref().map(|breach| (breach.code, breach.text.as_str())), expected);
        };
        check(watched, 64 << 20, 2_000, None);
        let memory = "out of memory: the agent's processes used 300 MiB, more than the contract's limit of 64 MiB";
        check(watched, 300 << 20, 0, Some(("E3107", memory)));
        let cpu = "out of processor time: the agent's processes used 2.1 s, more than the contract's limit of 2 s";
        check(watched, 0, 2_100, Some(("E3108", cpu)));
        let grouped = Enforced { memory: Some(Version::V2), ..watched };
        check(grouped, 300 << 20, 0, None);
        assert_eq!((watched.rlimit(), grouped.rlimit()), (Some((64 << 20) + RESERVE_BYTES), None));
        let killed = grouped.killed(Some(64 << 20)).expect("a group kills");
        let text = "out of memory: the agent's processes reached the contract's limit of 64 MiB (cgroup v2); the most that they used was 64 MiB";
        assert_eq!((killed.text.as_str(), watched.killed(None)), (text, None));
    }
}
