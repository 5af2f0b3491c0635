//! What a machine offers for the confinement of processes.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::{Access, Files, Sandbox, rules};

/// How namespaces can be created.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Namespaces {
    /// Inside a user namespace; if not, with the rights of root.
    pub user: bool,
    /// A network namespace as well.
    pub network: bool,
    /// With a view of processes of its own in `/proc`.
    pub processes: bool,
}

/// What a machine offers. The default is nothing.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Means {
    /// Namespaces of mounts and processes.
    pub namespaces: Option<Namespaces>,
    /// The version of Landlock; 0 without it.
    pub landlock: u8,
    /// Filters of system calls.
    pub seccomp: bool,
}

/// The first version of Landlock that separates signals and abstract sockets.
pub(crate) const LANDLOCK_SCOPES: u8 = 6;

impl Means {
    /// The ways to create namespaces that are tried, the best first.
    pub const NAMESPACES: [Namespaces; 6] = [
        Namespaces { user: true, network: true, processes: true },
        Namespaces { user: false, network: true, processes: true },
        Namespaces { user: true, network: false, processes: true },
        Namespaces { user: true, network: true, processes: false },
        Namespaces { user: false, network: true, processes: false },
        Namespaces { user: true, network: false, processes: false },
    ];

    /// Finds out what this machine offers. `works` tries a confinement in a child of this process, which must have a single
    /// thread and end soon: its own rights are restricted slightly.
    pub fn probe(works: impl Fn(&Sandbox) -> bool) -> Self {
        let with = |means| Sandbox {
            access: Access { files: Files::Read, network: false },
            means,
            directory: "/".into(),
            visible: Vec::new(),
            writable: Vec::new(),
            hidden: Vec::new(),
            devices: Vec::new(),
            scratch_bytes: 1 << 20,
            processes_max: Sandbox::PROCESSES,
        };
        let namespaces = Self::NAMESPACES.into_iter().find(|&ways| {
            // Without a network namespace it is not asked for.
            let access = Access { files: Files::Read, network: !ways.network };
            works(&Sandbox { access, ..with(Self { namespaces: Some(ways), ..Self::default() }) })
        });
        let seccomp = works(&with(Self { seccomp: true, ..Self::default() }));
        Self { namespaces, landlock: rules::version(), seccomp }
    }

    /// Whether a program with this access leaves places as they are that it may not write, such as packages.
    pub fn keep_code(&self, access: Access) -> bool {
        self.namespaces.is_some() || (self.landlock > 0 && access.files != Files::Write)
    }

    /// How much of a contract the machine can enforce: `full`, `partial` or `none`.
    pub fn level(&self) -> &'static str {
        match self {
            Self { namespaces: Some(Namespaces { processes: true, .. }), seccomp: true, .. } => "full",
            Self { namespaces: None, landlock: 0, seccomp: false } => "none",
            _ => "partial",
        }
    }
}

impl fmt::Display for Means {
    /// `namespaces, landlock 7, seccomp`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut all = Vec::new();
        if let Some(namespaces) = self.namespaces {
            let lacks = [("network", namespaces.network), ("/proc", namespaces.processes)];
            let lacks: Vec<&str> = lacks.iter().filter(|(_, has)| !has).map(|(name, _)| *name).collect();
            let without = if lacks.is_empty() { String::new() } else { format!(" without {}", lacks.join(" and ")) };
            all.push(format!("namespaces{without}"));
        }
        if self.landlock > 0 {
            all.push(format!("landlock {}", self.landlock));
        }
        if self.seccomp {
            all.push("seccomp".to_owned());
        }
        if all.is_empty() {
            return f.write_str("nothing");
        }
        f.write_str(&all.join(", "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_machine_says_what_it_offers() {
        let full = Means { namespaces: Some(Means::NAMESPACES[0]), landlock: 7, seccomp: true };
        assert_eq!((full.to_string().as_str(), full.level()), ("namespaces, landlock 7, seccomp", "full"));
        let some = Means { namespaces: Some(Means::NAMESPACES[5]), landlock: 0, seccomp: true };
        assert_eq!(
            (some.to_string().as_str(), some.level()),
            ("namespaces without network and /proc, seccomp", "partial")
        );
        assert_eq!((Means::default().to_string().as_str(), Means::default().level()), ("nothing", "none"));
    }
}
