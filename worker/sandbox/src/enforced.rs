//! What a confinement enforces, as people read it.

use std::fmt;

use crate::means::LANDLOCK_SCOPES;
use crate::paths::SHOWN;
use crate::{Access, Files, Means};

/// What is enforced on a process tree, and what is not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Enforcement {
    access: Access,
    means: Means,
    /// What the machine cannot enforce.
    pub missing: Vec<&'static str>,
}

impl Enforcement {
    /// What `means` enforce of `access`.
    pub fn of(access: Access, means: Means) -> Self {
        let mounts = means.namespaces.is_some();
        let files = mounts || means.landlock > 0;
        let network = access.network || means.seccomp || means.namespaces.is_some_and(|ways| ways.network);
        let own_list = means.namespaces.is_some_and(|ways| ways.processes);
        let parts = [
            ("files", files || access.files == Files::Write),
            // Landlock permits, it does not hide: with it alone, every agent reads `/etc`.
            ("secrets of the machine", mounts),
            ("network", network),
            // Without a namespace, an agent that kills its supervisor outlives its lease.
            ("processes", own_list || (mounts && means.landlock >= LANDLOCK_SCOPES)),
            ("system calls", means.seccomp),
        ];
        Self { access, means, missing: parts.iter().filter(|(_, done)| !done).map(|(part, _)| *part).collect() }
    }
}

impl fmt::Display for Enforcement {
    /// `files read-only, no network (namespaces, landlock 7, seccomp)`, and what is not enforced.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let files = match self.access.files {
            Files::Own => "own files only",
            Files::Read => "files read-only",
            Files::Write => "files writable",
        };
        let network = if self.access.network { "network" } else { "no network" };
        write!(f, "{files}, {network} ({})", self.means)?;
        if self.access.files == Files::Own {
            // Folders of the system may hold more than people expect, so they are named.
            write!(f, "; readable as well: {}", SHOWN.join(", "))?;
        }
        if self.missing.is_empty() {
            return Ok(());
        }
        write!(f, "; not enforced: {}", self.missing.join(", "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(files: Files, network: bool, means: Means, expected: &str) {
        assert_eq!(Enforcement::of(Access { files, network }, means).to_string(), expected);
    }

    #[test]
    fn what_a_machine_cannot_enforce_is_said() {
        let full = Means { namespaces: Some(Means::NAMESPACES[0]), landlock: 7, seccomp: true };
        check(Files::Read, false, full, "files read-only, no network (namespaces, landlock 7, seccomp)");
        let kernel = Means { namespaces: None, ..full };
        check(
            Files::Own,
            false,
            kernel,
            "own files only, no network (landlock 7, seccomp); readable as well: /etc, /nix, /opt, /usr; not enforced: secrets of the machine, processes",
        );
        let without_list = Means { namespaces: Some(Means::NAMESPACES[3]), ..full };
        check(
            Files::Own,
            false,
            without_list,
            "own files only, no network (namespaces without /proc, landlock 7, seccomp); readable as well: /etc, /nix, /opt, /usr",
        );
        check(
            Files::Read,
            true,
            kernel,
            "files read-only, network (landlock 7, seccomp); not enforced: secrets of the machine, processes",
        );
        check(
            Files::Write,
            false,
            Means { landlock: 3, ..Means::default() },
            "files writable, no network (landlock 3); not enforced: secrets of the machine, network, processes, system calls",
        );
        check(
            Files::Own,
            true,
            Means::default(),
            "own files only, network (nothing); readable as well: /etc, /nix, /opt, /usr; not enforced: files, secrets of the machine, processes, system calls",
        );
    }
}
