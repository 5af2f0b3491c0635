//! The two ports: free or requested ones, and the process that uses an occupied one.

use std::fs;
use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};

/// Why a port cannot be had.
#[derive(Debug, thiserror::Error)]
pub enum PortError {
    /// Somebody listens there.
    #[error("{address} is in use{}", owner.as_ref().map_or(String::new(), |owner| format!(" by {owner}")))]
    Taken {
        address: SocketAddr,
        /// `"atlasctl" (pid 4121)`, where the system tells.
        owner: Option<String>,
    },
    /// The system refuses for another reason.
    #[error("could not listen on {address}")]
    Refused {
        address: SocketAddr,
        /// What the system says.
        source: io::Error,
    },
}

/// Where a development cluster listens: loopback only.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ports {
    /// HTTP; 0 is any free one.
    pub http: SocketAddr,
    /// The workers' stream: the port after HTTP, or any free one.
    pub workers: SocketAddr,
}

impl Ports {
    /// Ports from `http` on; both free ones if that is 0. Fails early, with the name of who has a port that is taken.
    pub fn choose(http: u16) -> Result<Self, PortError> {
        let at = |port| SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        let workers = if http == 0 { 0 } else { http.checked_add(1).unwrap_or(0) };
        for address in [at(http), at(workers)] {
            probe(address)?;
        }
        Ok(Self { http: at(http), workers: at(workers) })
    }
}

/// Listens for a moment. The controller binds again right after; the moment between is harmless, it only makes the error less kind.
pub(crate) fn probe(address: SocketAddr) -> Result<(), PortError> {
    match TcpListener::bind(address) {
        Ok(_) => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::AddrInUse => {
            Err(PortError::Taken { address, owner: owner(address.port()) })
        }
        Err(source) => Err(PortError::Refused { address, source }),
    }
}

/// Who listens on a port, as far as /proc tells us.
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
    // `self` and `thread-self` are links to a process that has a number as well.
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
