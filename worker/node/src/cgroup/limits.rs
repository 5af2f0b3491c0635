//! The limits that a contract states, and how they are enforced for one process tree.

use super::layout::{Controller, Version};

/// The limits of a contract; none for no limit.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Limits {
    pub(crate) memory_bytes: Option<u64>,
    pub(crate) cores: Option<u64>,
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

    /// The explanation for a process that was killed at the memory limit. None without such a limit.
    pub(crate) fn out_of_memory(&self) -> Option<String> {
        let (bytes, version) = (self.limits.memory_bytes?, self.memory?);
        Some(format!(
            "out of memory: the agent's processes reached the contract's limit of {} GiB ({version})",
            bytes >> 30
        ))
    }

    /// The memory rlimit of each process. None if a group limits all processes together.
    pub(crate) fn rlimit(&self) -> Option<u64> {
        self.limits.memory_bytes.filter(|_| self.memory.is_none())
    }

    /// The text for the job's metadata. None if the contract states no limit.
    pub(crate) fn text(&self) -> Option<String> {
        let memory = self.limits.memory_bytes.map(|bytes| match self.memory {
            Some(version) => format!("memory {} GiB by {version}", bytes >> 30),
            None => format!("memory {} GiB a process by rlimit", bytes >> 30),
        });
        let cpu = self.limits.cores.map(|cores| match self.cpu {
            Some(version) => format!("cpu {cores} {} by {version}", if cores == 1 { "core" } else { "cores" }),
            None => "cpu not enforced".to_owned(),
        });
        let said: Vec<String> = memory.into_iter().chain(cpu).collect();
        (!said.is_empty()).then(|| said.join(", "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_says_what_enforces_which_limit() {
        let limits = Limits { memory_bytes: Some(2 << 30), cores: Some(1) };
        let said = |memory, cpu| Enforced { limits, memory, cpu }.text().unwrap_or_default();
        assert_eq!(said(Some(Version::V2), Some(Version::V2)), "memory 2 GiB by cgroup v2, cpu 1 core by cgroup v2");
        assert_eq!(said(Some(Version::V1), None), "memory 2 GiB by cgroup v1, cpu not enforced");
        assert_eq!(said(None, None), "memory 2 GiB a process by rlimit, cpu not enforced");
        assert_eq!(Enforced::default().text(), None);
    }
}
