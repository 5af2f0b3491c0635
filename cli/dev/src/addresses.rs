//! Where the controllers of a development cluster listen, kept with its data: they know each other by these addresses.

use std::fs;
use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::port::{PortError, probe};

const FILE: &str = "controllers.json";

/// From one controller's HTTP port to the next one's.
const STEP: u16 = 10;

/// One controller's place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ControllerAddresses {
    /// What it is called: `c1`, `c2`, …
    pub name: String,
    /// Where HTTP is served.
    pub http: SocketAddr,
    /// Where workers connect.
    pub workers: SocketAddr,
    /// Where the other controllers connect.
    pub peers: SocketAddr,
}

impl ControllerAddresses {
    /// Where the data of this controller is below that of the cluster. The first one's is that of a cluster of one.
    pub fn data_dir(&self, root: &Path) -> PathBuf {
        if self.name == "c1" { root.join("controller") } else { root.join("controllers").join(&self.name) }
    }

    /// The addresses of the `number`-th controller, from 1, of a cluster whose HTTP ports begin at `http`; free ports if that is 0.
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

/// Three free ports, held until all are chosen so that they differ.
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

/// The controllers of a data folder; none if it never was a cluster of several.
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
