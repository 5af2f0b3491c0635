//! Development clusters on this machine whose other controllers still run when the one that was asked does not answer.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};

use atlas_dev::ControllerAddresses;

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
    match others(context).filter(|_| unreachable) {
        Some(cluster) => Client::new(&list(&cluster)),
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
    match others(context) {
        Some(cluster) => {
            failure.with_next(format!("use the other controllers as well: export ATLAS_SERVER={}", list(&cluster)))
        }
        None => failure,
    }
}

/// The controllers of the development cluster to which the only named address belongs.
fn others(context: &Context) -> Option<Vec<ControllerAddresses>> {
    atlas_dev::controllers_with(address(&context.server().ok()?.0)?)
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
    fn only_a_single_address_of_this_machine_is_looked_up() {
        let address = |text: &str| address(text).map(|address| address.to_string());
        assert_eq!(address("http://127.0.0.1:7400/").as_deref(), Some("127.0.0.1:7400"));
        assert_eq!(address("localhost:7400").as_deref(), Some("127.0.0.1:7400"));
        assert_eq!(address("http://127.0.0.1:7400,http://127.0.0.1:7410"), None);
        assert_eq!(address("http://atlas.example:7400"), None);
        assert_eq!(address(""), None);
    }
}
