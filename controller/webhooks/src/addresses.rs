//! Addresses that are no receivers.

use std::io;
use std::net::{IpAddr, Ipv6Addr};

/// Refuses an address to which nothing is sent.
pub(crate) fn screen(address: IpAddr) -> io::Result<()> {
    match is_refused(address) {
        true => Err(io::Error::other(format!("{address} is not an address to which events are sent"))),
        false => Ok(()),
    }
}

/// Whether an address can be no receiver: link-local addresses serve a machine's cloud credentials.
fn is_refused(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => {
            address.is_link_local() || address.is_unspecified() || address.is_multicast() || address.is_broadcast()
        }
        IpAddr::V6(address) => match mapped(address) {
            Some(address) => is_refused(address),
            None => address.is_unicast_link_local() || address.is_unspecified() || address.is_multicast(),
        },
    }
}

/// The IPv4 address inside an IPv6 address: mapped into it, or behind NAT64.
fn mapped(address: Ipv6Addr) -> Option<IpAddr> {
    let inside = match address.octets() {
        [0, 0x64, 0xff, 0x9b, 0, 0, 0, 0, 0, 0, 0, 0, a, b, c, d] => Some([a, b, c, d].into()),
        _ => address.to_ipv4_mapped(),
    };
    inside.map(IpAddr::V4)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_that_are_no_receivers_are_refused() {
        let refused = |text: &str| is_refused(text.parse().expect("an address"));
        for text in [
            "169.254.169.254",
            "0.0.0.0",
            "224.0.0.1",
            "255.255.255.255",
            "fe80::1",
            "::",
            "ff02::1",
            "::ffff:169.254.169.254",
            "64:ff9b::a9fe:a9fe",
        ] {
            assert!(refused(text), "{text}");
        }
        for text in ["127.0.0.1", "10.0.0.1", "192.0.2.1", "::1", "2001:db8::1", "::ffff:10.0.0.1"] {
            assert!(!refused(text), "{text}");
        }
    }
}
