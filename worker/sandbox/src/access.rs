//! What a contract permits.

use serde::{Deserialize, Serialize};

/// What an agent may do with files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Files {
    /// It sees the system's programs, its own package and a private folder for temporary files.
    Own,
    /// It reads what the worker's user may read, except known places of secrets, and writes temporary files only.
    Read,
    /// It writes what the worker's user may write, except known places of secrets.
    Write,
}

/// What an agent may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Access {
    /// Its files.
    pub files: Files,
    /// True if it may use the network.
    pub network: bool,
}

impl Access {
    /// The access that `permissions.filesystem` and `permissions.network` of a contract permit. A word that is not
    /// known permits nothing for files, and the network for `network`, whose words are names of directions.
    pub fn of(filesystem: &[String], network: &[String]) -> Self {
        let has = |word: &str| filesystem.iter().any(|scope| scope.eq_ignore_ascii_case(word));
        let files = match (has("write"), has("read")) {
            (true, _) => Files::Write,
            (false, true) => Files::Read,
            (false, false) => Files::Own,
        };
        let network = network.iter().any(|word| !word.is_empty() && !word.eq_ignore_ascii_case("none"));
        Self { files, network }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_words_of_a_contract() {
        let words = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
        let check = |files: &str, network: &str, expected: (Files, bool)| {
            let access = Access::of(&words(files), &words(network));
            assert_eq!((access.files, access.network), expected, "{files:?} {network:?}");
        };
        check("read", "outbound", (Files::Read, true));
        check("read write", "", (Files::Write, false));
        check("write", "none", (Files::Write, false));
        check("", "inbound outbound", (Files::Own, true));
        check("READ", "None", (Files::Read, false));
        check("everything", "api.example.com", (Files::Own, true));
    }
}
