//! The options of controllers and workers in `atlasctl dev`, with the same names, environment variables and files.
//!
//! Both option tables are reused, except for options that a development cluster sets itself: names, addresses and
//! folders.

use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use clap::builder::{OsStr, Resettable};
use clap::{Arg, ArgAction, ArgMatches, Args, Command, CommandFactory, FromArgMatches};

/// The controller's options that are excluded.
const NOT_OF_CONTROLLER: [&str; 16] = [
    "config",
    "data-dir",
    "http.listen",
    "worker.listen",
    "peer.listen",
    "advertise",
    "name",
    "join",
    "token",
    "token-file",
    "tls.dir",
    "tls.names",
    "tls.life",
    "plain-ports",
    "level-max",
    "log",
];

/// The worker's options that are excluded.
const NOT_OF_WORKER: [&str; 10] = [
    "config",
    "print_config",
    "check_config",
    "node",
    "controllers",
    "data_dir",
    "token_file",
    "tls_dir",
    "log",
    "otlp",
];

/// Why options cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum SettingsError {
    /// The parser of the controller's or worker's command line refuses the options.
    #[error("{0}")]
    Arguments(String),
    /// The controller's options are not valid.
    #[error("the controller's options are not valid")]
    Controller(#[from] atlas_controller::OptionsError),
    /// The worker's options are not valid.
    #[error("the worker's options are not valid")]
    Worker(#[from] atlas_worker::ConfigurationError),
}

/// The options from the command line; files and environment are read when a controller or worker starts.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DevSettings {
    controller: Vec<OsString>,
    worker: Vec<OsString>,
}

impl DevSettings {
    /// The options as arguments for a child process, which accepts the same ones.
    pub fn arguments(&self) -> impl Iterator<Item = OsString> {
        let config = |part: &str, arguments: &[OsString]| {
            let rename = |argument: &OsString| match argument.as_bytes().strip_prefix(b"--config=") {
                Some(file) => joined(&format!("{part}-config"), std::ffi::OsStr::from_bytes(file)),
                None => argument.clone(),
            };
            arguments.iter().map(rename).collect::<Vec<_>>()
        };
        config("controller", &self.controller).into_iter().chain(config("worker", &self.worker))
    }

    /// Adds an option of the worker by the name of its flag, such as `gpus`.
    pub fn set_worker(&mut self, flag: &str, value: &str) {
        self.worker.push(joined(flag, std::ffi::OsStr::new(value)));
    }

    /// The same options with a key of secrets for the controllers.
    #[must_use]
    pub(crate) fn with_secrets_key(mut self, path: &std::path::Path) -> Self {
        self.controller.push(joined("secrets-key", path.as_os_str()));
        self
    }

    /// Adds an option of the controller by the name of its flag, such as `triggers-path`.
    pub fn set_controller(&mut self, flag: &str, value: &str) {
        self.controller.push(joined(flag, std::ffi::OsStr::new(value)));
    }

    /// Adds an option of the controller by the name of its flag, unless it is set.
    pub fn default_controller(&mut self, flag: &str, value: &str) {
        let prefix = format!("--{flag}=");
        if !self.controller.iter().any(|given| given.as_bytes().starts_with(prefix.as_bytes())) {
            self.controller.push(joined(flag, std::ffi::OsStr::new(value)));
        }
    }

    /// The options of a controller with its data in `data_dir`; the caller sets the addresses.
    pub fn controller(&self, data_dir: PathBuf) -> Result<atlas_controller::Options, SettingsError> {
        let mut command = without_environment(atlas_controller::command(), &NOT_OF_CONTROLLER);
        let matches = matches(&mut command, "atlas-controller", &self.controller)?;
        let mut options = atlas_controller::load(&matches)?.options;
        let own = atlas_controller::Options::new(data_dir);
        options.data_dir = own.data_dir;
        (options.peer, options.advertise, options.name) = (own.peer, own.advertise, own.name);
        (options.join, options.token, options.level) = (own.join, own.token, own.level);
        options.tls_dir = None;
        options.mode = atlas_controller::Mode::Dev;
        Ok(options)
    }

    /// The options of a worker.
    pub fn worker(
        &self,
        node: &str,
        controllers: Vec<String>,
        data_dir: PathBuf,
    ) -> Result<atlas_worker::Options, SettingsError> {
        let mut command = without_environment(atlas_worker::Configuration::command_line(), &NOT_OF_WORKER[1..]);
        let matches = matches(&mut command, "atlas-worker", &self.worker)?;
        let configuration = atlas_worker::Configuration::from_arg_matches(&matches).map_err(|error| refused(&error))?;
        let mut configuration = configuration.with_file()?;
        configuration.node = Some(node.to_owned());
        configuration.controllers = Some(controllers);
        configuration.data_dir = Some(data_dir);
        (configuration.token_file, configuration.tls_dir) = (None, None);
        Ok(configuration.options()?)
    }
}

/// `--flag=value`, which the parser of a part reads as one option even if the value begins with a hyphen.
fn joined(flag: &str, value: &std::ffi::OsStr) -> OsString {
    let mut argument = OsString::from(format!("--{flag}="));
    argument.push(value);
    argument
}

fn refused(error: &clap::Error) -> SettingsError {
    let text = error.to_string();
    SettingsError::Arguments(text.lines().next().unwrap_or_default().trim_start_matches("error: ").to_owned())
}

fn matches(command: &mut Command, program: &str, arguments: &[OsString]) -> Result<ArgMatches, SettingsError> {
    let all = std::iter::once(program.into()).chain(arguments.iter().cloned());
    command.try_get_matches_from_mut(all).map_err(|error| refused(&error))
}

/// Ignores the environment variables of excluded options, because they may be meant for another program.
fn without_environment(command: Command, ids: &[&'static str]) -> Command {
    ids.iter().fold(command, |command, id| command.mut_arg(id, |arg| arg.env(Resettable::<OsStr>::Reset)))
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    Controller,
    Worker,
}

impl Part {
    /// The option for a configuration file.
    fn file(self) -> Arg {
        let (name, help) = match self {
            Self::Controller => {
                ("controller-config", "TOML file with controller options, as atlas-controller reads it")
            }
            Self::Worker => ("worker-config", "TOML file with worker options, as atlas-worker reads it"),
        };
        Arg::new(name).long(name).value_name("FILE").help(help)
    }

    fn heading(self) -> &'static str {
        match self {
            Self::Controller => "Options of the controllers",
            Self::Worker => "Options of the workers",
        }
    }

    /// The options that `atlasctl dev` accepts for this part, without their environment variables, which the part reads
    /// itself.
    fn arguments(self) -> Vec<Arg> {
        let (command, left_out) = match self {
            Self::Controller => (atlas_controller::command(), &NOT_OF_CONTROLLER[..]),
            Self::Worker => (atlas_worker::Configuration::command(), &NOT_OF_WORKER[..]),
        };
        let taken = |arg: &&Arg| {
            let general = ["help", "version", "print-config", "check-config"];
            arg.get_long().is_some_and(|flag| !general.contains(&flag)) && !left_out.contains(&arg.get_id().as_str())
        };
        let own = |arg: &Arg| {
            let shown = arg.get_long() == Some("agent-env");
            // There are too many for a page; the reference has them.
            let arg = arg.clone().env(Resettable::<OsStr>::Reset).action(ArgAction::Append);
            let arg = arg.hide_short_help(!shown).hide_long_help(!shown);
            // The part itself refuses a value such as `-5s` and says what it expects.
            arg.allow_hyphen_values(true)
        };
        let all = std::iter::once(self.file()).chain(command.get_arguments().filter(taken).map(own));
        all.map(|arg| arg.help_heading(self.heading())).collect()
    }
}

impl Args for DevSettings {
    fn augment_args(command: Command) -> Command {
        command.args(Part::Controller.arguments()).args(Part::Worker.arguments())
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for DevSettings {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let mut settings = Self::default();
        settings.update_from_arg_matches(matches)?;
        Ok(settings)
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        for (part, to) in [(Part::Controller, &mut self.controller), (Part::Worker, &mut self.worker)] {
            for arg in part.arguments() {
                let (id, Some(flag)) = (arg.get_id().as_str(), arg.get_long()) else { continue };
                let flag = if flag.ends_with("-config") { "config" } else { flag };
                for value in matches.get_raw(id).into_iter().flatten() {
                    to.push(joined(flag, value));
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(line: &[&str]) -> DevSettings {
        let command = DevSettings::augment_args(Command::new("dev"));
        let matches = command.get_matches_from(std::iter::once(&"dev").chain(line));
        DevSettings::from_arg_matches(&matches).expect("options")
    }

    #[test]
    fn options_of_both_sides_are_taken_by_their_names() {
        let dir = tempfile::tempdir().expect("a folder");
        let file = dir.path().join("worker.toml");
        std::fs::write(&file, "node = \"elsewhere\"\nplaces = 7\n").expect("written");
        let line = ["--http-body-max", "2KiB", "--queue-max-size", "5", "--agent-env", "A", "--agent-env", "B"];
        let given = settings(&[&line[..], &["--worker-config", file.to_str().expect("UTF-8")]].concat());
        let passed: Vec<OsString> = given.arguments().collect();
        let passed: Vec<&str> = passed.iter().filter_map(|text| text.to_str()).collect();
        for given in [given, settings(&passed)] {
            let controller = given.controller("c".into()).expect("options");
            assert_eq!(controller.http_limits.body_bytes_max, 2048);
            assert_eq!(controller.rules.jobs_active_max, Some(5));
            let worker = given.worker("w1", vec!["c:1".to_owned()], "w".into()).expect("options");
            assert_eq!((worker.node.as_str(), worker.places), ("w1", Some(7)));
            assert_eq!(worker.agent_environment, ["A", "B"]);
        }
    }

    #[test]
    fn wrong_values_are_refused() {
        let wrong = settings(&["--http-body-max", "much", "--idle-timeout", "soon"]);
        assert!(matches!(wrong.controller("c".into()), Err(SettingsError::Controller(_))));
        assert!(matches!(wrong.worker("w", vec!["c:1".to_owned()], "w".into()), Err(SettingsError::Worker(_))));
        for negative in ["--worker-session-ttl", "--idle-timeout"] {
            let negative = settings(&[negative, "-5s"]);
            let controller = negative.controller("c".into()).err().map(|error| format!("{error:?}"));
            let worker = negative.worker("w", vec!["c:1".to_owned()], "w".into()).err();
            let told = controller.or(worker.map(|error| format!("{error:?}"))).expect("refused");
            assert!(told.contains("-5s"), "{told}");
        }
        let file = settings(&["--controller-config", "/no/such/file"]);
        assert!(matches!(file.controller("c".into()), Err(SettingsError::Controller(_))));
    }
}
