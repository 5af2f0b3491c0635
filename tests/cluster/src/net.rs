//! A test network: hosts with their own addresses, and links between them that can be cut, delayed and made to lose
//! frames.
//!
//! Hosts are anonymous namespaces connected by a switch in this process. They have no names on the machine, so nothing
//! remains when this process ends, even if it is killed. If namespaces cannot be created, the hosts are loopback
//! addresses; links then cannot be broken, and every attempt returns [`Installed::No`].

mod host;
mod switch;
mod tap;

use std::net::Ipv4Addr;
use std::time::Duration;

pub use host::Host;
pub use switch::Link;
use switch::Switch;

/// Whether a fault was installed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub enum Installed {
    /// The fault is active.
    Yes,
    /// This machine or this kind of network does not support the fault.
    No,
}

/// Hosts and the switch that connects them.
#[derive(Debug)]
pub struct Network {
    // Dropped before the switch, because a host returns its device when it is dropped.
    hosts: Vec<Host>,
    switch: Option<Switch>,
}

impl Network {
    /// Creates hosts in namespaces; an error names what the machine lacks.
    pub fn isolated(names: &[&str], seed: u64) -> Result<Self, String> {
        let (mut hosts, mut taps) = (Vec::new(), Vec::new());
        for (index, name) in names.iter().enumerate() {
            let (host, tap) = Host::isolated(name, index, names.len())?;
            hosts.push(host);
            taps.push(tap);
        }
        Ok(Self { hosts, switch: Some(Switch::start(taps, seed)) })
    }

    /// Creates hosts with loopback addresses, which differ from those of other test processes.
    pub fn loopback(names: &[&str]) -> Self {
        let run = std::process::id();
        let net = [127, 1 + (run >> 8) as u8 % 254, run as u8];
        let host = |(index, name): (usize, &&str)| {
            Host::plain(name, Ipv4Addr::new(net[0], net[1], net[2], host::number(index)))
        };
        Self { hosts: names.iter().enumerate().map(host).collect(), switch: None }
    }

    /// Whether links can be broken.
    pub fn is_isolated(&self) -> bool {
        self.switch.is_some()
    }

    /// A host by its name.
    #[track_caller]
    pub fn host(&self, name: &str) -> &Host {
        &self.hosts[self.index(name)]
    }

    /// Cuts the link between two hosts.
    pub fn cut(&self, one: &str, other: &str) -> Installed {
        let _ = self.cut_one_way(one, other);
        self.cut_one_way(other, one)
    }

    /// Cuts one direction of the link between two hosts.
    pub fn cut_one_way(&self, from: &str, to: &str) -> Installed {
        self.set(from, to, Link { cut: true, ..Link::default() })
    }

    /// Delays frames between two hosts in both directions by `delay` and up to `jitter` more, which also reorders them.
    pub fn delay(&self, one: &str, other: &str, delay: Duration, jitter: Duration) -> Installed {
        let link = Link { delay, jitter, ..Link::default() };
        let _ = self.set(one, other, link);
        self.set(other, one, link)
    }

    /// Sets one direction of a link.
    pub fn set(&self, from: &str, to: &str, link: Link) -> Installed {
        let Some(switch) = &self.switch else { return Installed::No };
        switch.set(self.index(from), self.index(to), link);
        Installed::Yes
    }

    /// Heals all links.
    pub fn heal(&self) {
        if let Some(switch) = &self.switch {
            switch.heal();
        }
    }

    #[track_caller]
    fn index(&self, name: &str) -> usize {
        self.hosts.iter().position(|host| host.name() == name).expect("a host of this network")
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::{SocketAddr, TcpListener, TcpStream};
    use std::thread;

    use atlas_env::Env;

    use super::*;
    use crate::chaos::{Needs, skipped_aloud};
    use crate::eventually;

    /// Longest time for a byte over a working link, on a busy machine.
    const SOON: Duration = crate::LONG;
    /// How long a test waits for a byte that must not arrive over a cut link.
    const SILENCE: Duration = Duration::from_millis(700);

    /// Whether one byte arrives and comes back.
    fn connected(from: &Host, to: SocketAddr) -> bool {
        ping(from, to, SOON).is_some()
    }

    fn cut_off(from: &Host, to: SocketAddr) -> bool {
        ping(from, to, SILENCE).is_none()
    }

    /// Sends one byte to `to` and back on a new connection; none if it does not arrive in time.
    fn ping(from: &Host, to: SocketAddr, within: Duration) -> Option<Duration> {
        from.run(move || {
            let clock = Env::system().clock;
            let begun = clock.monotonic();
            let mut stream = TcpStream::connect_timeout(&to, within).ok()?;
            stream.set_read_timeout(Some(within)).ok()?;
            stream.write_all(b"x").ok()?;
            stream.read_exact(&mut [0]).ok()?;
            Some(clock.monotonic() - begun)
        })
    }

    /// Starts an echo server.
    fn echo(host: &Host) -> SocketAddr {
        let address = SocketAddr::from((host.address(), 7000));
        let listener = host.run(move || TcpListener::bind(address).expect("bound"));
        let serve = move || {
            for stream in listener.incoming() {
                let Ok(mut stream) = stream else { break };
                let mut byte = [0];
                if stream.read_exact(&mut byte).is_ok() {
                    // The client may have closed the connection.
                    let _ = stream.write_all(&byte);
                }
            }
        };
        thread::Builder::new().name("echo".to_owned()).spawn(serve).expect("a thread");
        address
    }

    #[test]
    fn links_are_cut_one_way_and_both_and_slowed_and_healed() {
        if skipped_aloud(&[Needs::Namespaces]) {
            return;
        }
        let network = Network::isolated(&["a", "b", "c"], 1).expect("namespaces");
        let (a, c) = (network.host("a"), network.host("c"));
        let b = echo(network.host("b"));
        assert!(connected(a, b) && connected(c, b));
        assert_eq!(network.cut("a", "b"), Installed::Yes);
        assert!(cut_off(a, b) && connected(c, b));
        network.heal();
        assert!(connected(a, b));
        // A connection breaks if either direction is cut, regardless of which host opened it.
        assert_eq!(network.cut_one_way("b", "a"), Installed::Yes);
        assert!(cut_off(a, b));
        network.heal();
        let slow = Duration::from_millis(25);
        assert_eq!(network.delay("a", "b", slow, Duration::ZERO), Installed::Yes);
        let took = ping(a, b, SOON).expect("slow, not cut");
        assert!(took >= 4 * slow, "a connection and a byte there and back: {took:?}");
        network.heal();
        let fast = || ping(a, b, SOON).is_some_and(|took| took < 4 * slow);
        eventually("the link is as fast as before", SOON, || fast().then_some(()));
    }

    #[test]
    fn loopback_hosts_have_addresses_and_no_links() {
        let network = Network::loopback(&["a", "b"]);
        let b = echo(network.host("b"));
        assert!(connected(network.host("a"), b));
        assert_eq!(network.cut("a", "b"), Installed::No);
        assert!(connected(network.host("a"), b));
    }
}
