//! Where requests for pages may go.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Whether an address is one of the public network: not of this machine, of a private network, of a link, or of a cloud's own services.
pub fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => is_public_v4(address),
        IpAddr::V6(address) => is_public_v6(address),
    }
}

fn is_public_v4(address: Ipv4Addr) -> bool {
    let [a, b, c, _] = address.octets();
    let is_reserved = a == 0
        || a >= 240
        || (a == 100 && (64..128).contains(&b))
        || (a == 198 && (18..20).contains(&b))
        || (a == 192 && b == 0 && c == 0)
        // The relays of 6to4.
        || (a == 192 && b == 88 && c == 99);
    !(is_reserved
        || address.is_private()
        || address.is_loopback()
        || address.is_link_local()
        || address.is_multicast()
        || address.is_documentation())
}

fn is_public_v6(address: Ipv6Addr) -> bool {
    let inside = |a: u16, b: u16| {
        let ([a, b], [c, d]) = (a.to_be_bytes(), b.to_be_bytes());
        is_public_v4(Ipv4Addr::new(a, b, c, d))
    };
    match address.segments() {
        // IPv4 in IPv6, behind NAT64, and in 6to4.
        [0, 0, 0, 0, 0, 0xffff, a, b] | [0x64, 0xff9b, 0, 0, 0, 0, a, b] | [0x2002, a, b, ..] => inside(a, b),
        // Teredo, and what the documentation uses.
        [0x2001, 0, ..] | [0x2001, 0xdb8, ..] => false,
        [first, ..] => (0x2000..0x4000).contains(&first),
    }
}

/// A server that requests may go to although its address is not public.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Exemption {
    host: String,
    /// None for all ports.
    port: Option<u16>,
}

/// Why a text names no server.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("\"{0}\" is not HOST or HOST:PORT")]
pub struct BadExemption(String);

impl Exemption {
    /// Reads `HOST` or `HOST:PORT`. An address of IPv6 is in brackets.
    pub fn read(text: &str) -> Result<Self, BadExemption> {
        let wrong = || BadExemption(text.chars().take(80).collect());
        let (host, port) = match text.rsplit_once(':') {
            Some((host, port)) if !text.ends_with(']') => (host, Some(port.parse().map_err(|_| wrong())?)),
            _ => (text, None),
        };
        // The host is written as in an address of a page, so that both can be compared.
        let url = url::Url::parse(&format!("http://{host}/")).map_err(|_| wrong())?;
        let is_host = url.path() == "/" && url.port().is_none() && url.username().is_empty() && !host.contains('/');
        let host = url.host_str().filter(|_| is_host && !host.contains(['?', '#', '@'])).ok_or_else(wrong)?;
        Ok(Self { host: host.to_owned(), port })
    }

    /// Whether a host and port, as they are in the address of a page, are this server.
    pub fn permits(&self, host: &str, port: u16) -> bool {
        self.host.eq_ignore_ascii_case(host) && self.port.is_none_or(|allowed| allowed == port)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_addresses_of_the_public_network_are_public() {
        let public = |text: &str| is_public(text.parse().expect("an address"));
        for text in [
            "127.0.0.1",
            "127.1.2.3",
            "0.0.0.0",
            "10.0.0.1",
            "172.16.0.1",
            "192.168.1.1",
            "169.254.169.254",
            "100.64.0.1",
            "192.0.0.8",
            "198.18.0.1",
            "192.0.2.1",
            "224.0.0.1",
            "240.0.0.1",
            "255.255.255.255",
            "::",
            "::1",
            "fe80::1",
            "fc00::1",
            "fd00:ec2::254",
            "ff02::1",
            "::ffff:127.0.0.1",
            "::ffff:10.0.0.1",
            "64:ff9b::a9fe:a9fe",
            "2002:7f00:1::",
            "2001::1",
            "2001:db8::1",
            "::7f00:1",
            "fec0::1",
            "64:ff9b:1::a00:1",
        ] {
            assert!(!public(text), "{text}");
        }
        for text in [
            "1.1.1.1",
            "93.184.215.14",
            "172.32.0.1",
            "2606:2800:21f::1",
            "::ffff:1.1.1.1",
            "64:ff9b::101:101",
            "2002:101:101::",
        ] {
            assert!(public(text), "{text}");
        }
    }

    #[test]
    fn exceptions_are_hosts_and_ports() {
        let permits = |text: &str, host: &str, port| Exemption::read(text).expect("a server").permits(host, port);
        assert!(permits("wiki.corp", "wiki.corp", 80) && permits("Wiki.Corp:8080", "wiki.corp", 8080));
        assert!(!permits("wiki.corp:8080", "wiki.corp", 80) && !permits("wiki.corp", "x.wiki.corp", 80));
        assert!(
            permits("127.0.0.1:9", "127.0.0.1", 9) && permits("[::1]:9", "[::1]", 9) && permits("[::1]", "[::1]", 1)
        );
        for text in ["", ":80", "a:b", "a/b", "a:99999", "http://a", "u@a", "a?b", "::1"] {
            assert_eq!(Exemption::read(text), Err(BadExemption(text.to_owned())));
        }
    }
}
