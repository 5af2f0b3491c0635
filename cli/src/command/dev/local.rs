//! Development clusters on this machine whose other controllers still run when the one that was asked does not answer.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};

use atlas_dev::{ControllerAddresses, Nearby};

use crate::client::Client;
use crate::context::Context;
use crate::exit::Exit;
use crate::failure::Failure;

/// The option that names a development cluster by its folder.
#[derive(Debug, clap::Args)]
pub(super) struct Folder {
    /// Data folder of the cluster, as given to atlasctl dev; without it, the cluster at the address is meant.
    #[arg(long, value_name = "DIR")]
    data_dir: Option<PathBuf>,
}

/// The client of a development cluster: of the one in a folder, otherwise of the one that is named, through its other controllers if
/// that one does not run.
pub(super) async fn client(context: &Context, folder: &Folder) -> Result<Client, Failure> {
    if let Some(folder) = &folder.data_dir {
        return of_folder(folder);
    }
    let client = context.client()?;
    let answered = client.get(&["api", "version"], &[]).await;
    let unreachable = answered.err().is_some_and(|failure| failure.code.as_deref() == Some("E4002"));
    match nearby(context).filter(|_| unreachable) {
        Some(cluster) => Client::new(&list(&cluster.controllers)),
        None => Ok(client),
    }
}

/// The client of the cluster with its data in `folder`.
fn of_folder(folder: &Path) -> Result<Client, Failure> {
    let cluster = atlas_dev::addresses::load(folder).unwrap_or_default();
    if cluster.is_empty() {
        let text = format!("\"{}\" has no development cluster of several processes", folder.display());
        return Err(Failure::new("E0114", Exit::NotFound, text)
            .with_next("start one: atlasctl dev --controllers 3 --workers 2 --data-dir DIR"));
    }
    Client::new(&list(&cluster))
}

/// Adds to an error that nothing answers: that one controller of a development cluster is stopped, and how to go on.
pub(crate) fn explain(context: &Context, failure: Failure) -> Failure {
    if failure.code.as_deref() != Some("E4002") {
        return failure;
    }
    match nearby(context) {
        Some(cluster) => failure.with_next(next(&cluster)),
        None => failure,
    }
}

/// How to go on when one controller of a cluster does not answer.
fn next(cluster: &Nearby) -> String {
    match &cluster.controllers[..] {
        [only] => format!("start it again: atlasctl dev start {}", only.name),
        all => format!("use the other controllers as well: export ATLAS_SERVER={}", list(all)),
    }
}

/// The data folder of a cluster none of whose controllers runs, but for which other processes do.
pub(super) fn without_controllers(context: &Context, folder: &Folder) -> Option<PathBuf> {
    let root = match &folder.data_dir {
        Some(folder) => folder.clone(),
        None => nearby(context)?.root,
    };
    let processes = atlas_dev::processes(&root).ok()?;
    (!processes.is_empty() && processes.iter().all(|process| !process.controller)).then_some(root)
}

/// The development cluster to which the only named address belongs.
fn nearby(context: &Context) -> Option<Nearby> {
    atlas_dev::cluster_with(address(&context.server().ok()?.0)?)
}

/// The only address of a list.
fn address(server: &str) -> Option<SocketAddr> {
    let server = server.trim().trim_start_matches("http://").trim_end_matches('/');
    match server.strip_prefix("localhost:") {
        Some(port) => Some(SocketAddr::from((Ipv4Addr::LOCALHOST, port.parse().ok()?))),
        None => server.parse().ok(),
    }
}

fn list(cluster: &[ControllerAddresses]) -> String {
    cluster.iter().map(|controller| format!("http://{}", controller.http)).collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_names_its_cluster() {
        let folder = tempfile::tempdir().expect("a folder");
        let refused = of_folder(folder.path()).expect_err("nothing is there");
        assert_eq!((refused.code.as_deref(), refused.exit), (Some("E0114"), Exit::NotFound));
        let controllers = [1, 2].map(|number| ControllerAddresses::choose(number, 0).expect("free ports"));
        atlas_dev::addresses::store(folder.path(), &controllers).expect("written");
        assert_eq!(of_folder(folder.path()).expect("a cluster").base(), list(&controllers));
    }

    #[test]
    fn a_cluster_of_one_is_started_again_and_others_are_used_meanwhile() {
        let of = |count: u16| Nearby {
            root: PathBuf::new(),
            controllers: (1..=count).map(|n| ControllerAddresses::choose(n, 0).expect("free ports")).collect(),
        };
        assert_eq!(next(&of(1)), "start it again: atlasctl dev start c1");
        assert!(next(&of(2)).starts_with("use the other controllers as well: export ATLAS_SERVER=http://"));
    }

    #[test]
    fn only_a_single_address_of_this_machine_is_looked_up() {
        let address = |text: &str| address(text).map(|address| address.to_string());
        assert_eq!(address("http://127.0.0.1:7400/").as_deref(), Some("127.0.0.1:7400"));
        assert_eq!(address("localhost:7400").as_deref(), Some("127.0.0.1:7400"));
        assert_eq!(address("http://127.0.0.1:7400,http://127.0.0.1:7410"), None);
        assert_eq!(address("http://atlas.example:7400"), None);
        assert_eq!(address(""), None);
    }
}
