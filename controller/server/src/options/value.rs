//! The forms of values: `30s`, `8GiB`, `127.0.0.1:7400`.

use std::net::SocketAddr;
use std::time::Duration;

/// The deepest nesting of jobs. Each level is a place that is lent, and one more step when a cancellation is passed on.
const DEPTH_MAX: u32 = 64;

/// The form of an option's value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// Any text.
    Text,
    /// Any text. It is never shown.
    Secret,
    /// `host:port` with an IP address as the host.
    Address,
    /// A whole number.
    Count,
    /// A nesting depth: a whole number up to [`DEPTH_MAX`].
    Depth,
    /// A number with `ms`, `s`, `m`, `h` or `d`.
    Duration,
    /// A number with `B`, `KiB`, `MiB` or `GiB`.
    Size,
    /// `true` or `false`.
    Flag,
    /// `name=host:port` pairs, separated by commas.
    Agents,
    /// `off`, `open` or `tokens`.
    Auth,
    /// A duration of whole seconds, at least three.
    Life,
}

impl Form {
    /// Checks that a text has this form. The error is the expected form.
    pub(super) fn check(self, text: &str) -> Result<(), &'static str> {
        let fits = match self {
            Self::Text | Self::Secret => true,
            Self::Address => address(text).is_some(),
            Self::Count => text.parse::<u64>().is_ok(),
            Self::Depth => text.parse().is_ok_and(|depth: u32| depth <= DEPTH_MAX),
            Self::Duration => duration(text).is_some(),
            Self::Size => size(text).is_some(),
            Self::Flag => text.parse::<bool>().is_ok(),
            Self::Agents => agents(text).is_some(),
            Self::Life => duration(text).is_some_and(|life| life >= Duration::from_secs(3)),
            Self::Auth => ["off", "open", "tokens"].contains(&text),
        };
        if fits { Ok(()) } else { Err(self.expected()) }
    }

    fn expected(self) -> &'static str {
        match self {
            Self::Text | Self::Secret => "a text",
            Self::Address => "an address and a port, such as 127.0.0.1:7400",
            Self::Count => "a whole number",
            Self::Depth => "a whole number up to 64",
            Self::Duration => "a duration, such as 500ms, 30s or 1h",
            Self::Flag => "true or false",
            Self::Agents => "names and addresses, such as research=127.0.0.1:8201",
            Self::Life => "a duration of at least 3s",
            Self::Auth => "off, open or tokens",
            Self::Size => "a size, such as 64KiB, 8MiB or 1GiB",
        }
    }
}

/// Names with addresses.
pub(super) fn agents(text: &str) -> Option<Vec<(String, SocketAddr)>> {
    let pairs = text.split(',').map(str::trim).filter(|pair| !pair.is_empty());
    pairs
        .map(|pair| {
            let (name, listen) = pair.split_once('=')?;
            let name = name.trim();
            (!name.is_empty()).then_some(())?;
            Some((name.to_owned(), address(listen.trim())?))
        })
        .collect()
}

pub(super) fn address(text: &str) -> Option<SocketAddr> {
    text.replace("localhost", "127.0.0.1").parse().ok()
}

pub(super) fn duration(text: &str) -> Option<Duration> {
    let (number, unit) = split(text)?;
    let millis = match unit {
        "ms" => 1,
        "s" => 1_000,
        "m" => 60_000,
        "h" => 3_600_000,
        "d" => 86_400_000,
        _ => return None,
    };
    number.checked_mul(millis).map(Duration::from_millis)
}

pub(super) fn size(text: &str) -> Option<u64> {
    let (number, unit) = split(text)?;
    let bytes = match unit {
        "" | "B" => 1,
        "KiB" => 1 << 10,
        "MiB" => 1 << 20,
        "GiB" => 1 << 30,
        _ => return None,
    };
    number.checked_mul(bytes)
}

fn split(text: &str) -> Option<(u64, &str)> {
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    Some((number.parse().ok()?, unit.trim()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_read_by_their_form() {
        assert_eq!(duration("500ms"), Some(Duration::from_millis(500)));
        assert_eq!(duration("1h"), Some(Duration::from_secs(3_600)));
        assert_eq!(size("8 GiB"), Some(8 << 30));
        assert_eq!(address("localhost:0").map(|address| address.port()), Some(0));
        for text in ["", "s", "-1s", "1 week", "99999999999999999999s"] {
            assert_eq!(duration(text), None, "{text}");
        }
        assert!(Form::Depth.check("64").is_ok());
        assert_eq!(Form::Depth.check("65"), Err("a whole number up to 64"));
        for text in ["1MB", "x", "99999999999GiB"] {
            assert_eq!(size(text), None, "{text}");
        }
    }
}
