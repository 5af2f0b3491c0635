//! What is done to one process tree.

use std::path::PathBuf;

use nix::sys::prctl;
use nix::unistd::{chdir, setsid};
use serde::{Deserialize, Serialize};

use crate::{Access, ConfinementStep, Enforcement, FailedStep, Means, filter, mounts, namespaces, privileges, rules};

/// The confinement of one process tree.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Sandbox {
    /// What the contract permits.
    pub access: Access,
    /// What the machine offers.
    pub means: Means,
    /// The working directory.
    pub directory: PathBuf,
    /// Places that stay readable although they are inside a hidden one, such as the agent's package. No agent writes to
    /// them, unless they are inside a writable one.
    pub visible: Vec<PathBuf>,
    /// Places that stay writable.
    pub writable: Vec<PathBuf>,
    /// Places that the agent must not see.
    pub hidden: Vec<PathBuf>,
    /// Device files besides those that every program needs. A missing one is left out.
    pub devices: Vec<PathBuf>,
    /// The size of the private folder for temporary files, which is in memory.
    pub scratch_bytes: u64,
    /// The most processes and threads.
    pub processes_max: u64,
}

/// Why a text is not the confinement of a tree.
#[derive(Debug, thiserror::Error)]
#[error("could not read the confinement of a process tree")]
pub struct ParseError(#[source] pub(crate) serde_json::Error);

impl Sandbox {
    /// The default size of the folder for temporary files.
    pub const SCRATCH_BYTES: u64 = 1 << 30;

    /// The default number of processes and threads.
    pub const PROCESSES: u64 = 4_096;

    /// The confinement as text.
    pub fn to_json(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }

    /// Reads [`Self::to_json`].
    pub fn parse(text: &str) -> Result<Self, ParseError> {
        serde_json::from_str(text).map_err(ParseError)
    }

    /// Whether the places that are not writable stay as they are.
    pub fn keeps_code(&self) -> bool {
        self.means.keep_code(self.access)
    }

    /// What it enforces.
    pub fn enforced(&self) -> Enforcement {
        Enforcement::of(self.access, self.means)
    }

    /// Creates the namespaces. The next child of this process is the first one in its PID namespace. Does nothing on a
    /// machine without namespaces. The process must have a single thread.
    pub fn enter(&self) -> Result<(), FailedStep> {
        let Some(ways) = self.means.namespaces else { return Ok(()) };
        let network = ways.network && !self.access.network;
        namespaces::enter(ways.user, network).map_err(|errno| FailedStep { step: ConfinementStep::Namespaces, errno })
    }

    /// Confines this process and all that it starts. The process must have a single thread; with namespaces it must be
    /// the first one in them.
    pub fn confine(&self) -> Result<(), FailedStep> {
        let step = |step| move |errno| FailedStep { step, errno };
        // Its own session has no terminal into which it could type. Fails only for a leader of a process group, which
        // has one already.
        let _ = setsid();
        if let Some(ways) = self.means.namespaces {
            mounts::set_up(self, ways).map_err(step(ConfinementStep::Mounts))?;
            if ways.network && !self.access.network {
                namespaces::open_loopback().map_err(step(ConfinementStep::Loopback))?;
            }
        }
        chdir(&self.directory).map_err(step(ConfinementStep::Mounts))?;
        let counted = self.means.namespaces.is_some_and(|ways| ways.user).then_some(self.processes_max);
        privileges::limit(counted).map_err(step(ConfinementStep::Privileges))?;
        // The agent must not reach into this process, which reports its end.
        prctl::set_dumpable(false).map_err(step(ConfinementStep::Privileges))?;
        prctl::set_no_new_privs().map_err(step(ConfinementStep::Privileges))?;
        if self.means.landlock > 0 {
            rules::restrict(self).map_err(step(ConfinementStep::Landlock))?;
        }
        privileges::give_up().map_err(step(ConfinementStep::Privileges))?;
        if self.means.seccomp {
            let sockets = if self.access.network || self.means.namespaces.is_some_and(|ways| ways.network) {
                filter::Sockets::Internet
            } else {
                filter::Sockets::Local
            };
            filter::apply(sockets).map_err(step(ConfinementStep::Filter))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Files;

    #[test]
    fn a_sandbox_travels_as_text() {
        let sandbox = Sandbox {
            access: Access { files: Files::Own, network: false },
            means: Means { namespaces: Some(Means::NAMESPACES[0]), landlock: 7, seccomp: true },
            directory: "/a b".into(),
            visible: vec!["/x\n".into()],
            writable: Vec::new(),
            hidden: vec!["/é".into()],
            devices: Vec::new(),
            scratch_bytes: 5,
            processes_max: 6,
        };
        assert_eq!(Sandbox::parse(&sandbox.to_json()).expect("its own text"), sandbox);
        for text in ["", "{}", "[]", "{\"access\":1}", "nothing"] {
            assert!(Sandbox::parse(text).is_err(), "{text}");
        }
        let more = sandbox.to_json().replacen('{', "{\"root\":true,", 1);
        assert!(Sandbox::parse(&more).is_err(), "an unknown member could be a restriction");
    }
}
