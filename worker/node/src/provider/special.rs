//! Names that texts of agents of Loki can use without a definition: `{{__os__}}` and the like. What they stand for is recorded when the job
//! begins, so that later attempts say the same on another node.

use std::collections::BTreeMap;
use std::path::Path;

use atlas_types::Timestamp;

/// The names and their values at a time.
pub(super) fn names(now: Timestamp) -> BTreeMap<String, String> {
    let now = jiff::Timestamp::from_microsecond(now.0).unwrap_or(jiff::Timestamp::UNIX_EPOCH);
    let variable = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
    let shell = variable("SHELL");
    let shell = shell.as_deref().and_then(|path| Path::new(path).file_name()?.to_str()).unwrap_or("sh");
    let locale = ["LC_ALL", "LC_MESSAGES", "LANG"].into_iter().find_map(variable);
    let release = std::fs::read_to_string("/etc/os-release").unwrap_or_default();
    [
        ("__os__", std::env::consts::OS.to_owned()),
        ("__os_family__", std::env::consts::FAMILY.to_owned()),
        ("__os_distro__", distro(&release).unwrap_or(std::env::consts::OS).to_owned()),
        ("__arch__", std::env::consts::ARCH.to_owned()),
        ("__shell__", shell.to_owned()),
        ("__locale__", language(locale.as_deref().unwrap_or_default())),
        ("__now__", now.to_string()),
    ]
    .into_iter()
    .map(|(name, value)| (name.to_owned(), value))
    .collect()
}

/// The name of a distribution in the text of `os-release`.
fn distro(release: &str) -> Option<&str> {
    let name = release.lines().find_map(|line| line.strip_prefix("PRETTY_NAME="))?;
    Some(name.trim_matches('"')).filter(|name| !name.is_empty())
}

/// A locale such as `de_DE.UTF-8` as a language tag.
fn language(locale: &str) -> String {
    match locale.split(['.', '@']).next().unwrap_or_default() {
        "" | "C" | "POSIX" => "en-US".to_owned(),
        language => language.replace('_', "-"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_has_a_value() {
        let names = names(Timestamp(1_700_000_000_000_000));
        assert_eq!(names["__now__"], "2023-11-14T22:13:20Z");
        assert!(names.len() == 7 && names.values().all(|value| !value.is_empty()), "{names:?}");
    }

    #[test]
    fn systems_are_named() {
        assert_eq!(distro("ID=debian\nPRETTY_NAME=\"Debian GNU/Linux 12\"\n"), Some("Debian GNU/Linux 12"));
        assert_eq!(distro("PRETTY_NAME=\"\"\n"), None);
        assert_eq!([language("de_DE.UTF-8"), language("C.UTF-8"), language("")], ["de-DE", "en-US", "en-US"]);
    }
}
