//! Hosts that are this machine.

use std::net::IpAddr;

/// Whether a host is this machine by its name or number. Names are not resolved.
pub fn is_loopback(host: &str) -> bool {
    let host = host.trim_start_matches('[').trim_end_matches(']').to_ascii_lowercase();
    let number: Option<IpAddr> = host.parse().ok();
    number.is_some_and(|number| number.to_canonical().is_loopback())
        || host == "localhost"
        || host.ends_with(".localhost")
}
