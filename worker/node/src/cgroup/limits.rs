//! The limits that a contract states, and how they hold for one process tree.

use super::layout::{Controller, Version};

/// What a contract states; none is no limit.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Limits {
    pub(crate) memory_bytes: Option<u64>,
    pub(crate) cores: Option<u64>,
}

/// How limits hold for one process tree.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Enforced {
    pub(crate) limits: Limits,
    /// The group that limits the memory; without one, each process has an rlimit.
    pub(super) memory: Option<Version>,
    /// The group that limits the cores; without one, nothing does.
    pub(super) cpu: Option<Version>,
}

impl Enforced {
    /// Without any group.
    pub(crate) fn by_rlimit(limits: Limits) -> Self {
        Self { limits, memory: None, cpu: None }
    }

    /// The group that limits what `controller` stands for.
    pub(super) fn by(&mut self, controller: Controller) -> &mut Option<Version> {
        match controller {
            Controller::Memory => &mut self.memory,
            Controller::Cpu => &mut self.cpu,
        }
    }

    /// Why a process that was killed at the memory limit was killed; none without such a limit.
    pub(crate) fn out_of_memory(&self) -> Option<String> {
        let (bytes, version) = (self.limits.memory_bytes?, self.memory?);
        Some(format!(
            "out of memory: the agent's processes reached the contract's limit of {} GiB ({version})",
            bytes >> 30
        ))
    }

    /// Most bytes of data of each process; none if a group limits all of them together.
    pub(crate) fn rlimit(&self) -> Option<u64> {
        self.limits.memory_bytes.filter(|_| self.memory.is_none())
    }

    /// What the job's metadata says; none if the contract states no limit.
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
