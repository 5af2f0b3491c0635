//! Development clusters on this machine whose other controllers still run when the one that was asked does not answer.

use std::net::{Ipv4Addr, SocketAddr};

use atlas_dev::ControllerAddresses;

use crate::client::Client;
use crate::context::Context;
use crate::failure::Failure;

/// The client of a development cluster, through its other controllers if the one that is named does not run.
pub(super) async fn client(context: &Context) -> Result<Client, Failure> {
    let client = context.client()?;
    let answered = client.get(&["api", "version"], &[]).await;
    let unreachable = answered.err().is_some_and(|failure| failure.code.as_deref() == Some("E4002"));
    match others(context).filter(|_| unreachable) {
        Some(cluster) => Client::new(&list(&cluster)),
        None => Ok(client),
    }
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
    fn only_a_single_address_of_this_machine_is_looked_up() {
        let address = |text: &str| address(text).map(|address| address.to_string());
        assert_eq!(address("http://127.0.0.1:7400/").as_deref(), Some("127.0.0.1:7400"));
        assert_eq!(address("localhost:7400").as_deref(), Some("127.0.0.1:7400"));
        assert_eq!(address("http://127.0.0.1:7400,http://127.0.0.1:7410"), None);
        assert_eq!(address("http://atlas.example:7400"), None);
        assert_eq!(address(""), None);
    }
}
