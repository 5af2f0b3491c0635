//! Why a process could not be confined.

use nix::errno::Errno;

/// The part of the confinement that failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ConfinementStep {
    /// Creating namespaces.
    Namespaces,
    /// Setting up the files that the agent sees.
    Mounts,
    /// Setting up the loopback device of an agent without network.
    Loopback,
    /// Setting rlimits and giving up capabilities.
    Privileges,
    /// Landlock.
    Landlock,
    /// The filter of system calls.
    Filter,
    /// Copying the package to the working directory.
    Package,
    /// Keeping the code of the worker as it is.
    Guard,
}

impl ConfinementStep {
    const ALL: [Self; 8] = [
        Self::Namespaces,
        Self::Mounts,
        Self::Loopback,
        Self::Privileges,
        Self::Landlock,
        Self::Filter,
        Self::Package,
        Self::Guard,
    ];

    fn as_str(self) -> &'static str {
        match self {
            Self::Namespaces => "create namespaces",
            Self::Mounts => "set up its files",
            Self::Loopback => "set up its loopback device",
            Self::Privileges => "give up privileges",
            Self::Landlock => "set up Landlock",
            Self::Filter => "set up the filter of system calls",
            Self::Package => "copy its package",
            Self::Guard => "make the packages of the node read-only",
        }
    }
}

/// A step that failed. The agent was not started.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("could not {}: {}", .step.as_str(), .errno.desc())]
pub struct FailedStep {
    /// The step.
    pub step: ConfinementStep,
    /// The error of the system.
    pub errno: Errno,
}

impl FailedStep {
    /// The refusal as a number, for the report of a supervisor.
    pub fn code(self) -> i32 {
        let step = ConfinementStep::ALL.iter().position(|step| *step == self.step).unwrap_or(0);
        i32::try_from(step).unwrap_or(0) << 16 | (self.errno as i32 & 0xffff)
    }

    /// Reads [`Self::code`].
    pub fn of_code(code: i32) -> Self {
        let step = usize::try_from(code >> 16).ok().and_then(|step| ConfinementStep::ALL.get(step).copied());
        Self { step: step.unwrap_or(ConfinementStep::Namespaces), errno: Errno::from_raw(code & 0xffff) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_is_a_number() {
        for step in ConfinementStep::ALL {
            let refused = FailedStep { step, errno: Errno::EPERM };
            assert_eq!(FailedStep::of_code(refused.code()), refused);
        }
        assert_eq!(FailedStep::of_code(-1).step, ConfinementStep::Namespaces);
        let text = FailedStep { step: ConfinementStep::Mounts, errno: Errno::EACCES }.to_string();
        assert_eq!(text, "could not set up its files: Permission denied");
    }
}
