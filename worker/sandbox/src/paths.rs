//! Places of a machine.

use std::path::{Path, PathBuf};

/// What an agent sees that may see only its own files: programs, libraries and settings.
pub(crate) const SYSTEM: [&str; 14] = [
    "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/usr", "/etc", "/opt", "/nix", "/gnu", "/dev", "/proc",
    "/sys",
];

/// Those of [`SYSTEM`] that a job names: the others are programs and libraries, or made for the agent.
pub(crate) const SHOWN: [&str; 4] = ["/etc", "/nix", "/opt", "/usr"];

/// The private folders for temporary files.
pub(crate) const TEMPORARY: [&str; 3] = ["/tmp", "/var/tmp", "/dev/shm"];

/// Device files that every program may use.
pub(crate) const DEVICES: [&str; 6] =
    ["/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty"];

/// Places in a home directory where programs keep credentials.
const OF_HOMES: [&str; 16] = [
    ".ssh",
    ".gnupg",
    ".aws",
    ".azure",
    ".kube",
    ".docker",
    ".config/gcloud",
    ".config/gh",
    ".config/atlas",
    ".config/containers",
    ".local/share/keyrings",
    ".password-store",
    ".netrc",
    ".git-credentials",
    ".pypirc",
    ".vault-token",
];

/// Places of the machine with credentials, and those of container engines.
const OF_MACHINE: [&str; 9] = [
    "/etc/shadow",
    "/etc/shadow-",
    "/etc/gshadow",
    "/etc/gshadow-",
    "/etc/kubernetes",
    "/etc/rancher",
    "/var/lib/kubelet",
    "/var/lib/docker",
    "/var/lib/containerd",
];

/// Known places of credentials on this machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Secrets(Vec<PathBuf>);

impl Secrets {
    /// Lists them. `home` is the home directory of the worker's user. A place that does not exist is listed too: it may
    /// exist when an agent starts. Blocks.
    pub fn find(home: Option<&Path>) -> Self {
        let entries = |directory: &str| {
            std::fs::read_dir(directory).into_iter().flatten().flatten().map(|entry| entry.path()).collect::<Vec<_>>()
        };
        let homes = entries("/home").into_iter().chain([PathBuf::from("/root")]).chain(home.map(Path::to_owned));
        let host_keys = entries("/etc/ssh").into_iter().filter(|path| {
            path.file_name().and_then(std::ffi::OsStr::to_str).is_some_and(|name| name.ends_with("_key"))
        });
        let mut found: Vec<PathBuf> = homes
            .flat_map(|home| OF_HOMES.map(|place| home.join(place)))
            .chain(OF_MACHINE.map(PathBuf::from))
            .chain(host_keys)
            .collect();
        found.sort();
        found.dedup();
        Self(found)
    }

    /// The places.
    pub fn places(&self) -> &[PathBuf] {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_job_names_is_what_is_shown() {
        assert!(SHOWN.iter().all(|place| SYSTEM.contains(place)));
    }

    #[test]
    fn places_that_may_be_made_later_are_listed() {
        let found = Secrets::find(Some(Path::new("/nowhere")));
        for place in ["/nowhere/.aws", "/nowhere/.ssh", "/etc/shadow"] {
            assert!(found.places().contains(&PathBuf::from(place)), "{place}");
        }
    }
}
