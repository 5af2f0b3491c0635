//! Development clusters of several processes that run on this machine, found by the arguments of their processes.

use std::ffi::OsStr;
use std::fs;
use std::net::SocketAddr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use crate::addresses::{self, ControllerAddresses};

/// A development cluster.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Nearby {
    /// Its data folder.
    pub root: PathBuf,
    /// Its controllers, whether they run or not.
    pub controllers: Vec<ControllerAddresses>,
}

/// The development cluster of which a controller serves HTTP at `http`, whether that one runs or not. At least one other process of it runs.
#[must_use]
pub fn cluster_with(http: SocketAddr) -> Option<Nearby> {
    let processes = fs::read_dir("/proc").ok()?.flatten();
    let mut roots: Vec<PathBuf> =
        processes.filter_map(|process| root_in(&fs::read(process.path().join("cmdline")).ok()?)).collect();
    roots.sort();
    roots.dedup();
    let mut clusters =
        roots.into_iter().filter_map(|root| Some(Nearby { controllers: addresses::load(&root).ok()?, root }));
    clusters.find(|cluster| cluster.controllers.iter().any(|controller| controller.http == http))
}

/// The data folder of the cluster, from the command line of one of its processes, whose arguments end with a zero byte each.
fn root_in(command_line: &[u8]) -> Option<PathBuf> {
    let mut arguments = command_line.split(|&byte| byte == 0).skip(1);
    arguments.find(|argument| *argument == b"dev-member")?;
    let part = arguments.find(|argument| [&b"controller"[..], b"worker"].contains(argument))?;
    arguments.find(|argument| *argument == b"--data-dir")?;
    let data_dir = Path::new(OsStr::from_bytes(arguments.next()?));
    match part {
        b"controller" => addresses::root_of(data_dir).map(Path::to_owned),
        // The folder of a worker is `workers/w1`.
        _ => data_dir.parent()?.parent().map(Path::to_owned),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_folder_is_read_from_the_arguments_of_a_process() {
        let root = |line: &str| root_in(line.replace(' ', "\0").as_bytes());
        let first = "/usr/bin/atlasctl dev-member controller --log warn --name c1 --data-dir /data/controller --http 127.0.0.1:1";
        assert_eq!(root(first), Some(PathBuf::from("/data")));
        assert_eq!(
            root("atlasctl dev-member controller --name c2 --data-dir /data/controllers/c2"),
            Some(PathBuf::from("/data"))
        );
        assert_eq!(
            root("atlasctl dev-member worker --log warn --node w1 --data-dir /data/workers/w1"),
            Some(PathBuf::from("/data"))
        );
        assert_eq!(root("atlasctl dev-member worker --data-dir w1"), None);
        assert_eq!(root("sh -c dev-member"), None);
        assert_eq!(root("atlasctl dev-member controller --data-dir"), None);
        assert_eq!(root(""), None);
    }
}
