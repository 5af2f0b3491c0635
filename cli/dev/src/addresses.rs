//! The addresses of a development cluster's controllers. They are stored with the data, because members know each other
//! by them.

use std::fs;
use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::port::{PortError, probe};

const FILE: &str = "controllers.json";

/// Difference between the HTTP ports of two consecutive controllers.
const STEP: u16 = 10;

/// One controller's name and addresses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ControllerAddresses {
    /// `c1`, `c2`, …
    pub name: String,
    /// The address for HTTP.
    pub http: SocketAddr,
    /// The address for workers.
    pub workers: SocketAddr,
    /// The address for other controllers.
    pub peers: SocketAddr,
}

impl ControllerAddresses {
    /// The data folder of this controller inside the cluster's folder. The first controller has the same folder as the
    /// controller of a single-process cluster.
    pub fn data_dir(&self, root: &Path) -> PathBuf {
        if self.name == "c1" { root.join("controller") } else { root.join("controllers").join(&self.name) }
    }

    /// The addresses of the `number`-th controller, counted from 1, of a cluster whose HTTP ports begin at `http`; free
    /// ports if `http` is 0.
    pub fn choose(number: u16, http: u16) -> Result<Self, PortError> {
        let at = |port| SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        let name = format!("c{number}");
        if http == 0 {
            let (_held, [http, workers, peers]) = free()?;
            return Ok(Self { name, http, workers, peers });
        }
        let first = http.saturating_add(STEP.saturating_mul(number.saturating_sub(1)));
        let controller =
            Self { name, http: at(first), workers: at(first.saturating_add(1)), peers: at(first.saturating_add(2)) };
        controller.check()?;
        Ok(controller)
    }

    /// Fails if one of the ports is in use.
    pub fn check(&self) -> Result<(), PortError> {
        [self.http, self.workers, self.peers].into_iter().try_for_each(probe)
    }
}

/// Three free ports; the listeners keep them bound until all three are chosen, so that they differ.
fn free() -> Result<([TcpListener; 3], [SocketAddr; 3]), PortError> {
    let any = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    let refused = |source| PortError::Refused { address: any, source };
    let draw = || TcpListener::bind(any).map_err(refused);
    let held = [draw()?, draw()?, draw()?];
    let mut addresses = [any; 3];
    for (address, listener) in addresses.iter_mut().zip(&held) {
        *address = listener.local_addr().map_err(refused)?;
    }
    Ok((held, addresses))
}

/// The folder of the cluster that a controller's data lies in: the inverse of [`ControllerAddresses::data_dir`].
#[must_use]
pub fn root_of(data_dir: &Path) -> Option<&Path> {
    let above = data_dir.parent()?;
    if above.file_name().is_some_and(|name| name == "controllers") { above.parent() } else { Some(above) }
}

/// The controllers of a data folder; none if the folder never belonged to a cluster of several processes.
pub fn load(root: &Path) -> io::Result<Vec<ControllerAddresses>> {
    let bytes = match fs::read(root.join(FILE)) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        bytes => bytes?,
    };
    let value: Value = serde_json::from_slice(&bytes)?;
    let controllers: Option<Vec<ControllerAddresses>> =
        value.as_array().map(|controllers| controllers.iter().filter_map(controller).collect());
    controllers
        .ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, format!("{FILE} is not a list of controllers")))
}

/// Stores the controllers with the data.
pub fn store(root: &Path, controllers: &[ControllerAddresses]) -> io::Result<()> {
    let controllers: Vec<Value> = controllers
        .iter()
        .map(|controller| json!({"name": controller.name, "http": controller.http, "workers": controller.workers, "peers": controller.peers}))
        .collect();
    let temporary = root.join(format!("{FILE}.tmp"));
    fs::write(&temporary, format!("{:#}\n", Value::from(controllers)))?;
    fs::rename(temporary, root.join(FILE))
}

fn controller(value: &Value) -> Option<ControllerAddresses> {
    let address = |key: &str| value[key].as_str()?.parse().ok();
    let name = value["name"].as_str()?.to_owned();
    Some(ControllerAddresses { name, http: address("http")?, workers: address("workers")?, peers: address("peers")? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seats_are_kept_with_the_data() {
        let dir = tempfile::tempdir().expect("a directory");
        assert_eq!(load(dir.path()).expect("readable"), []);
        let controllers = [
            ControllerAddresses::choose(1, 0).expect("free ports"),
            ControllerAddresses::choose(2, 0).expect("free ports"),
        ];
        store(dir.path(), &controllers).expect("written");
        assert_eq!(load(dir.path()).expect("readable"), controllers);
        assert_eq!(controllers[0].data_dir(Path::new("d")), Path::new("d/controller"));
        assert_eq!(controllers[1].data_dir(Path::new("d")), Path::new("d/controllers/c2"));
    }
}
