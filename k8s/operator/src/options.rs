//! The options of the program.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{Command, CommandFactory as _, FromArgMatches as _, Parser};

/// Most namespaces of Kubernetes that one operator watches.
const NAMESPACES_MAX: usize = 64;

/// Keeps the objects of an Atlas cluster as the resources of Kubernetes say.
#[derive(Debug, Clone, Parser)]
#[command(name = "atlas-operator", version)]
pub struct Options {
    /// Address of the controllers, such as `http://atlas.atlas.svc:7400`
    #[arg(long, env = "ATLAS_SERVER", value_name = "URL")]
    pub server: String,
    /// File with the token that the controllers ask for; read again for each request
    #[arg(long, env = "ATLAS_TOKEN_FILE", value_name = "FILE")]
    pub token_file: Option<PathBuf>,
    /// PEM file with the certificates that sign those of the controllers; defaults to the system's
    #[arg(long, env = "ATLAS_CA_FILE", value_name = "FILE")]
    pub ca_file: Option<PathBuf>,
    /// The operator's own namespace in Kubernetes, where its lease is; resources in it may name any namespace of the cluster
    #[arg(long, env = "ATLAS_OPERATOR_NAMESPACE", value_name = "NAME")]
    pub namespace: String,
    /// Another namespace of Kubernetes to watch; repeatable. Its resources are about the namespace of that name in the cluster
    #[arg(long = "watch", env = "ATLAS_OPERATOR_WATCH", value_name = "NAME", value_delimiter = ',')]
    pub watch: Vec<String>,
    /// Name of this process in the lease, such as the name of its pod
    #[arg(long, env = "ATLAS_OPERATOR_IDENTITY", value_name = "NAME")]
    pub identity: String,
    /// Seconds after which a resource is compared with the cluster again; from 1 to 86400
    #[arg(long, env = "ATLAS_OPERATOR_RESYNC", value_name = "SECONDS", default_value_t = 300,
        value_parser = clap::value_parser!(u64).range(1..=86_400))]
    pub resync: u64,
    /// Address for the probe /healthz
    #[arg(long, env = "ATLAS_OPERATOR_LISTEN", value_name = "HOST:PORT", default_value = "127.0.0.1:7404")]
    pub listen: SocketAddr,
    /// Filter for log lines
    #[arg(long, env = "ATLAS_LOG", value_name = "FILTER", default_value = "info")]
    pub log: String,
}

impl Options {
    /// Reads the options of the process, or ends it with an explanation.
    pub fn read() -> Self {
        let mut command = command();
        let matches = atlas_env::empty_is_unset(command.clone()).get_matches();
        let options = Self::from_arg_matches(&matches).unwrap_or_else(|error| error.exit());
        if let Err(message) = options.check() {
            command.error(clap::error::ErrorKind::ValueValidation, message).exit();
        }
        options
    }

    fn check(&self) -> Result<(), String> {
        let is_name = |name: &str| {
            let is_inner = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
            !name.is_empty() && name.len() <= 63 && name.bytes().all(is_inner)
        };
        if let Some(name) = self.namespaces().iter().find(|name| !is_name(name)) {
            return Err(format!("\"{name}\" is not the name of a namespace"));
        }
        if self.namespaces().len() > NAMESPACES_MAX {
            return Err(format!("more than {NAMESPACES_MAX} namespaces cannot be watched"));
        }
        if self.identity.is_empty() {
            return Err("the identity is empty".to_owned());
        }
        Ok(())
    }

    /// The namespaces that are watched, the operator's own first.
    pub fn namespaces(&self) -> Vec<String> {
        let others = self.watch.iter().filter(|name| **name != self.namespace && !name.is_empty());
        let mut names = vec![self.namespace.clone()];
        for name in others {
            if !names.contains(name) {
                names.push(name.clone());
            }
        }
        names
    }
}

/// The command line.
pub fn command() -> Command {
    Options::command()
}

#[cfg(test)]
mod tests {
    use expect_test::expect_file;

    use super::*;

    #[test]
    fn generated_reference_of_options_is_fresh() {
        let mut page = String::from(
            "# Options of the operator for Kubernetes\n\nGenerated from the program by `cargo xtask fix`. Flags take precedence over the \
             environment, the environment over the default.\n\n| flag | environment | meaning |\n|---|---|---|\n",
        );
        for argument in command().get_arguments() {
            let Some(flag) = argument.get_long() else { continue };
            let value = argument.get_value_names().map_or("", |names| names[0].as_str());
            let variable = argument.get_env().and_then(|name| name.to_str()).unwrap_or_default();
            let help = argument.get_help().map(ToString::to_string).unwrap_or_default();
            let default = argument.get_default_values().first().and_then(|value| value.to_str());
            let default = default.map(|value| format!("; defaults to {value}")).unwrap_or_default();
            page.push_str(&format!("| `--{flag} {value}` | `{variable}` | {help}{default} |\n"));
        }
        expect_file!["../../../docs/reference/operator-options.md"].assert_eq(&page);
    }

    #[test]
    fn names_are_checked_and_listed_once() {
        let read = |watch: &str| {
            let line =
                ["atlas-operator", "--server", "http://a", "--namespace", "atlas", "--identity", "a", "--watch", watch];
            Options::try_parse_from(line).expect("options")
        };
        assert_eq!(read("team-a,atlas,team-a,team-b").namespaces(), ["atlas", "team-a", "team-b"]);
        assert_eq!(read("").namespaces(), ["atlas"]);
        assert!(read("team-a").check().is_ok());
        assert_eq!(read("Team").check(), Err("\"Team\" is not the name of a namespace".to_owned()));
        let many: Vec<String> = (0..NAMESPACES_MAX).map(|at| format!("n{at}")).collect();
        assert_eq!(read(&many.join(",")).check(), Err("more than 64 namespaces cannot be watched".to_owned()));
    }
}
