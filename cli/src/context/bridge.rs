//! How a program that another one starts reaches the same cluster as this command, with the same rights.

use std::path::PathBuf;

use super::Context;
use crate::client::Trust;
use crate::config::Config;
use crate::failure::Failure;
use crate::words::{could_not, shell};

/// How `atlasctl` is started by another program.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Bridge {
    /// The arguments before the verb.
    pub(crate) arguments: Vec<String>,
    /// The variables that it needs besides those of every program.
    pub(crate) variables: Vec<(String, String)>,
}

impl Context {
    /// Whether the address alone does not let another program in: the cluster wants a token, or has certificates that only this command
    /// trusts.
    pub(crate) fn needs_bridge(&self) -> Result<bool, Failure> {
        Ok(self.token()?.is_some() || self.trust()? != Trust::Machine)
    }

    /// How another program starts this one. Tokens stay in the configuration file: one of the environment alone is refused, because
    /// programs get few variables from those that start them, and a copy in their configuration would be read by others.
    pub(crate) fn bridge(&self) -> Result<Bridge, Failure> {
        let (server, origin) = self.server()?;
        if std::env::var_os("ATLAS_TOKEN").is_some_and(|token| !token.is_empty()) {
            let add = format!("atlasctl --server {} context add NAME --token-file FILE", shell(&server));
            return Err(Failure::usage("the token is only in ATLAS_TOKEN, which the program of a client does not get")
                .with_next(format!(
                    "save it: {add}   then: env -u ATLAS_TOKEN atlasctl --context NAME mcp connect …"
                )));
        }
        let mut bridge = Bridge::default();
        let mut option = |name: &str, value: String| bridge.arguments.extend([name.to_owned(), value]);
        match origin.strip_prefix("context ") {
            Some(name) => option("--context", name.to_owned()),
            None => option("--server", server),
        }
        if let Some(path) = &self.ca_file {
            let path = std::path::absolute(path).map_err(|error| could_not("read", path, &error))?;
            option("--ca-file", path.display().to_string());
        }
        if let Some(namespace) = &self.namespace {
            option("--namespace", namespace.clone());
        }
        if origin.starts_with("context ") {
            bridge.variables = moved(Config::path(), std::env::var_os("HOME").map(PathBuf::from));
        }
        Ok(bridge)
    }
}

/// The variable that names a configuration file which is not where a program without other variables looks for it.
fn moved(path: Option<PathBuf>, home: Option<PathBuf>) -> Vec<(String, String)> {
    let usual = home.map(|home| home.join(".config/atlas/config.toml"));
    let path = path.filter(|path| Some(path) != usual.as_ref());
    let path = path.map(|path| std::path::absolute(&path).unwrap_or(path));
    path.map(|path| ("ATLAS_CONFIG".to_owned(), path.display().to_string())).into_iter().collect()
}

#[test]
fn a_configuration_file_elsewhere_is_named() {
    let home = || Some(PathBuf::from("/users/ann"));
    assert_eq!(moved(Some("/users/ann/.config/atlas/config.toml".into()), home()), []);
    let named = |path: &str| vec![("ATLAS_CONFIG".to_owned(), path.to_owned())];
    assert_eq!(moved(Some("/etc/atlas.toml".into()), home()), named("/etc/atlas.toml"));
    assert_eq!(
        moved(Some("/users/ann/.config/atlas/config.toml".into()), None),
        named("/users/ann/.config/atlas/config.toml")
    );
    assert_eq!(moved(None, home()), []);
}
