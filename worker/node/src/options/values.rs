//! Texts of options as values.

use std::path::Path;
use std::time::Duration;

use super::{ConfigurationError, PREPARE_MAX};
use crate::{Cgroup, Confinement, SandboxMode};

/// Without a prefix, agents could have every variable of the worker.
pub(super) fn secrets_prefix(text: &str) -> Result<String, ConfigurationError> {
    let is_prefix = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    let what = "a prefix of variables: letters, digits and _";
    if is_prefix { Ok(text.to_owned()) } else { Err(ConfigurationError::Value { value: text.to_owned(), what }) }
}

pub(super) fn switch(text: &str) -> Result<bool, ConfigurationError> {
    match text {
        "on" => Ok(true),
        "off" => Ok(false),
        _ => Err(ConfigurationError::Value { value: text.to_owned(), what: "on or off" }),
    }
}

pub(super) fn confinement(text: &str) -> Result<Confinement, ConfigurationError> {
    let what = "a confinement (pid-namespace, user-pid-namespace, subreaper)";
    Confinement::parse(text).ok_or_else(|| ConfigurationError::Value { value: text.to_owned(), what })
}

pub(super) fn sandbox(text: &str) -> Result<SandboxMode, ConfigurationError> {
    let what = "off, best-effort or required";
    SandboxMode::parse(text).ok_or_else(|| ConfigurationError::Value { value: text.to_owned(), what })
}

/// True for the word that lets agents run without a container.
pub(super) fn containers(text: &str) -> Result<bool, ConfigurationError> {
    match text {
        "prefer" => Ok(true),
        "require" => Ok(false),
        _ => Err(ConfigurationError::Value { value: text.to_owned(), what: "require or prefer" }),
    }
}

pub(super) fn cgroup(text: &str) -> Result<Cgroup, ConfigurationError> {
    let what = "auto, off or the absolute path of a cgroup";
    Cgroup::parse(text).ok_or_else(|| ConfigurationError::Value { value: text.to_owned(), what })
}

pub(super) fn label(text: &str) -> Result<(String, String), ConfigurationError> {
    let wrong = || ConfigurationError::Value { value: text.to_owned(), what: "a label of the form KEY=VALUE" };
    let (key, value) = text.split_once('=').ok_or_else(wrong)?;
    Ok((key.to_owned(), value.to_owned()))
}

/// `300s`, `250ms`, `5m`, `1h`.
pub(super) fn duration(text: &str) -> Result<Duration, ConfigurationError> {
    let wrong = || ConfigurationError::Value { value: text.to_owned(), what: "a time such as 30s" };
    let (number, unit) = split(text).ok_or_else(wrong)?;
    let milliseconds = match unit {
        "ms" => 1,
        "s" => 1_000,
        "m" => 60_000,
        "h" => 3_600_000,
        _ => return Err(wrong()),
    };
    number.checked_mul(milliseconds).map(Duration::from_millis).ok_or_else(wrong)
}

/// A preparation timeout within the limit of the controllers.
pub(super) fn prepare_timeout(text: &str) -> Result<Duration, ConfigurationError> {
    let within = |time: &Duration| *time <= PREPARE_MAX;
    let wrong = || ConfigurationError::Value { value: text.to_owned(), what: "a time of at most 10m" };
    duration(text).ok().filter(within).ok_or_else(wrong)
}

/// `64KiB`, `8MiB`, `4GiB`, or bytes.
pub(super) fn size(text: &str) -> Result<usize, ConfigurationError> {
    let wrong = || ConfigurationError::Value { value: text.to_owned(), what: "a size such as 8MiB" };
    let (number, unit) = split(text).ok_or_else(wrong)?;
    let bytes: u64 = match unit {
        "" | "B" => 1,
        "KiB" => 1 << 10,
        "MiB" => 1 << 20,
        "GiB" => 1 << 30,
        _ => return Err(wrong()),
    };
    number.checked_mul(bytes).and_then(|bytes| usize::try_from(bytes).ok()).ok_or_else(wrong)
}

fn split(text: &str) -> Option<(u64, &str)> {
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    Some((text[..end].parse().ok()?, text[end..].trim()))
}

/// The name of the machine, for a node without one.
pub(super) fn host_name() -> String {
    let name = std::fs::read_to_string(Path::new("/proc/sys/kernel/hostname")).unwrap_or_default();
    let name = name.trim();
    if name.is_empty() { "worker".to_owned() } else { name.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_and_sizes_have_units() {
        assert_eq!(duration("250ms").ok(), Some(Duration::from_millis(250)));
        assert_eq!(size("8MiB").ok(), Some(8 << 20));
        assert_eq!(size("12").ok(), Some(12));
        assert!(duration("30").is_err() && duration("s").is_err() && size("1GB").is_err());
    }
}
