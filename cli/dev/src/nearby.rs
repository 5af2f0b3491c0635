//! Development clusters of several processes that run on this machine, found by the arguments of their controllers.

use std::ffi::OsStr;
use std::fs;
use std::net::SocketAddr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use crate::addresses::{self, ControllerAddresses};

/// The controllers of the development cluster one of which serves HTTP at `http`, whether that one runs or not. At least one other runs.
#[must_use]
pub fn controllers_with(http: SocketAddr) -> Option<Vec<ControllerAddresses>> {
    let processes = fs::read_dir("/proc").ok()?.flatten();
    let mut roots: Vec<PathBuf> =
        processes.filter_map(|process| root_in(&fs::read(process.path().join("cmdline")).ok()?)).collect();
    roots.sort();
    roots.dedup();
    let clusters = roots.iter().filter_map(|root| addresses::load(root).ok());
    clusters.into_iter().find(|cluster| cluster.iter().any(|controller| controller.http == http))
}

/// The data folder of the cluster, from the command line of one of its controllers, whose arguments end with a zero byte each.
fn root_in(command_line: &[u8]) -> Option<PathBuf> {
    let mut arguments = command_line.split(|&byte| byte == 0).skip(1);
    arguments.find(|argument| *argument == b"dev-member")?;
    arguments.find(|argument| *argument == b"controller")?;
    arguments.find(|argument| *argument == b"--data-dir")?;
    let data_dir = Path::new(OsStr::from_bytes(arguments.next()?));
    addresses::root_of(data_dir).map(Path::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_folder_is_read_from_the_arguments_of_a_controller_only() {
        let root = |line: &str| root_in(line.replace(' ', "\0").as_bytes());
        let first = "/usr/bin/atlasctl dev-member controller --log warn --name c1 --data-dir /data/controller --http 127.0.0.1:1";
        assert_eq!(root(first), Some(PathBuf::from("/data")));
        assert_eq!(
            root("atlasctl dev-member controller --name c2 --data-dir /data/controllers/c2"),
            Some(PathBuf::from("/data"))
        );
        assert_eq!(root("atlasctl dev-member worker --node w1 --data-dir /data/workers/w1"), None);
        assert_eq!(root("sh -c dev-member"), None);
        assert_eq!(root("atlasctl dev-member controller --data-dir"), None);
        assert_eq!(root(""), None);
    }
}
