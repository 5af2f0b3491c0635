//! Chooses the ports for HTTP and workers, and finds the process that uses an occupied port.

use std::fs;
use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};

/// Why a port cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum PortError {
    /// Another process listens on the port.
    #[error("{address} is in use{}", owner.as_ref().map_or(String::new(), |owner| format!(" by {owner}")))]
    Taken {
        address: SocketAddr,
        /// The process, such as `"atlasctl" (pid 4121)`, if it can be found.
        owner: Option<String>,
    },
    /// The system refused the port for another reason.
    #[error("could not listen on {address}")]
    Refused {
        address: SocketAddr,
        /// The system's error.
        source: io::Error,
    },
}

/// The addresses of a development cluster, on the loopback interface only.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ports {
    /// The address for HTTP; port 0 is any free port.
    pub http: SocketAddr,
    /// The address for workers: the port after the HTTP port, or any free port.
    pub workers: SocketAddr,
}

impl Ports {
    /// The port `http` and the next one; two free ports if `http` is 0. Fails if a port is occupied, and names the
    /// process that uses it.
    pub fn choose(http: u16) -> Result<Self, PortError> {
        let at = |port| SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        let workers = if http == 0 { 0 } else { http.checked_add(1).unwrap_or(0) };
        for address in [at(http), at(workers)] {
            probe(address)?;
        }
        Ok(Self { http: at(http), workers: at(workers) })
    }
}

/// Checks that a port is free by listening on it briefly. Another process could take the port before the controller
/// binds it; the controller then fails with a less specific error.
pub(crate) fn probe(address: SocketAddr) -> Result<(), PortError> {
    match TcpListener::bind(address) {
        Ok(_) => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::AddrInUse => {
            Err(PortError::Taken { address, owner: owner(address.port()) })
        }
        Err(source) => Err(PortError::Refused { address, source }),
    }
}

/// The process that listens on a port, as far as /proc shows it.
fn owner(port: u16) -> Option<String> {
    let inode = listening_inode(&fs::read_to_string("/proc/net/tcp").ok()?, port)?;
    let wanted = format!("socket:[{inode}]");
    let processes = fs::read_dir("/proc").ok()?.flatten().map(|entry| entry.path());
    let has_socket = |process: &std::path::PathBuf| {
        let files = fs::read_dir(process.join("fd")).into_iter().flatten().flatten();
        files
            .map(|file| file.path())
            .any(|file| fs::read_link(file).is_ok_and(|link| link.as_os_str() == wanted.as_str()))
    };
    // `self` and `thread-self` are links to a process that is also listed by number.
    let numbered =
        |path: &std::path::PathBuf| path.file_name().is_some_and(|name| name.as_encoded_bytes()[0].is_ascii_digit());
    let process = processes.filter(numbered).find(has_socket)?;
    let name = fs::read_to_string(process.join("comm")).ok()?;
    Some(format!("\"{}\" (pid {})", name.trim(), process.file_name()?.to_str()?))
}

/// The inode of the socket that listens on a port, from the text of `/proc/net/tcp`.
fn listening_inode(table: &str, port: u16) -> Option<String> {
    const LISTEN: &str = "0A";
    let local = format!(":{port:04X}");
    table.lines().skip(1).find_map(|line| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let matches = fields.get(1)?.ends_with(&local) && *fields.get(3)? == LISTEN;
        matches.then(|| fields.get(9).map(|inode| (*inode).to_owned()))?
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_taken_port_is_told_with_its_owner() {
        let taken = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a free port");
        let port = taken.local_addr().expect("bound").port();
        let error = Ports::choose(port).expect_err("taken");
        let pid = std::process::id();
        assert!(error.to_string().starts_with(&format!("127.0.0.1:{port} is in use by \"")), "{error}");
        assert!(error.to_string().ends_with(&format!("\" (pid {pid})")), "{error}");
    }

    #[test]
    fn the_listening_socket_is_found_in_the_table() {
        let table = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n\
                     0: 0100007F:1CE8 0100007F:9999 01 00000000:00000000 00:00000000 00000000     0        0 11 1\n\
                     1: 0100007F:1CE8 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 77 1\n";
        assert_eq!(listening_inode(table, 7400), Some("77".to_owned()));
        assert_eq!(listening_inode(table, 7401), None);
    }
}
