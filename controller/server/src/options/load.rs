//! Collects the options for a run.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::PathBuf;

use atlas_env::{CONFIGURATION_BYTES_MAX, TOKEN_BYTES_MAX};
use atlas_gateway::Token;
use atlas_stores::{Secret, StoreOptions};
use atlas_types::Level;
use clap::{Arg, ArgAction, ArgMatches, Command};
use toml::de::{DeTable, DeValue};

use super::Auth;
use super::row::OptionRow;
use super::table::OPTIONS;
use super::value::{Form, address, agents, duration, size};
use super::{Mode, Options};
use crate::rules::Rules;

/// Why the options are invalid.
#[derive(Debug, thiserror::Error)]
pub enum OptionsError {
    /// The file cannot be read.
    #[error("could not read the configuration \"{path}\"")]
    Read {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: std::io::Error,
    },
    /// The file with the token cannot be read.
    #[error("could not read the token from \"{path}\"")]
    Token {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: std::io::Error,
    },
    /// The file with the address of the history database cannot be read.
    #[error("could not read the address of the history database from \"{path}\"")]
    HistoryFile {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: std::io::Error,
    },
    /// The address of the history database is not valid.
    #[error(transparent)]
    History(#[from] atlas_export::TargetError),
    /// Where telemetry goes is not valid.
    #[error(transparent)]
    Otlp(#[from] atlas_otlp::ConfigError),
    /// The file is not TOML.
    #[error("the configuration \"{path}\" is not TOML: line {line}: {problem}")]
    Toml {
        /// The file.
        path: PathBuf,
        /// The line of what is wrong.
        line: usize,
        /// The parser's words.
        problem: String,
    },
    /// An unknown key.
    #[error("line {line} of the configuration \"{path}\" has an unknown key \"{key}\"{}", suggestion.map(|near| format!("; did you mean \"{near}\"?")).unwrap_or_default())]
    UnknownKey {
        /// The file.
        path: PathBuf,
        /// Its line.
        line: usize,
        /// The key.
        key: String,
        /// The most similar known key.
        suggestion: Option<&'static str>,
    },
    /// A value in the wrong form.
    #[error("\"{value}\" is not a valid {key} ({origin}): expected {expected}")]
    Value {
        /// The option.
        key: &'static str,
        /// The given value.
        value: String,
        /// The source of the value; a file with its line.
        origin: String,
        /// The expected form.
        expected: &'static str,
    },
}

/// The options of a run, and the source of each.
#[derive(Debug)]
pub struct Loaded {
    /// The options.
    pub options: Options,
    values: BTreeMap<&'static str, (String, Origin)>,
}

/// Where a value comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Origin {
    Default,
    /// A line of the configuration.
    File(usize),
    Environment,
    Flag,
}

impl Origin {
    fn word(self) -> &'static str {
        match self {
            Self::Default => "default",
            Self::File(_) => "file",
            Self::Environment => "environment",
            Self::Flag => "flag",
        }
    }
}

/// The command line of the controller.
pub fn command() -> Command {
    let mut command = Command::new("atlas-controller")
        .version(env!("CARGO_PKG_VERSION"))
        .about("Runs a controller of an Atlas cluster")
        .arg(
            Arg::new("config")
                .long("config")
                .env("ATLAS_CONTROLLER_CONFIG")
                .value_name("FILE")
                .help("Read options from this TOML file"),
        )
        .arg(flag("print-config", "Print the effective options and their origins, and exit"))
        .arg(flag("check-config", "Check the options, and exit"));
    for option in OPTIONS {
        let arg = Arg::new(option.key).long(option.flag).env(option.variable).value_name("VALUE").help(option.doc);
        command = command.arg(arg.hide_env_values(option.form == Form::Secret));
    }
    atlas_env::empty_is_unset(command)
}

fn flag(name: &'static str, help: &'static str) -> Arg {
    Arg::new(name).long(name).action(ArgAction::SetTrue).help(help)
}

/// Collects the options: defaults, then the file, then the environment and flags, which clap has already distinguished.
pub fn load(matches: &ArgMatches) -> Result<Loaded, OptionsError> {
    let mut values = BTreeMap::new();
    for option in OPTIONS.iter().filter(|option| !option.default.is_empty()) {
        values.insert(option.key, (option.default.to_owned(), Origin::Default));
    }
    let file = matches.get_one::<String>("config");
    if let Some(path) = file {
        read_file(PathBuf::from(path), &mut values)?;
    }
    for option in OPTIONS {
        if let Some(value) = matches.get_one::<String>(option.key) {
            let origin = match matches.value_source(option.key) {
                Some(clap::parser::ValueSource::EnvVariable) => Origin::Environment,
                _ => Origin::Flag,
            };
            values.insert(option.key, (value.clone(), origin));
        }
    }
    for option in OPTIONS {
        if let Some((value, origin)) = values.get(option.key) {
            option.form.check(value).map_err(|expected| OptionsError::Value {
                key: option.key,
                value: value.clone(),
                origin: match origin {
                    Origin::File(line) => format!("line {line} of \"{}\"", file.map_or("", String::as_str)),
                    origin => origin.word().to_owned(),
                },
                expected,
            })?;
        }
    }
    let mut options = typed(&values);
    if let Some((path, _)) = values.get("token-file").filter(|_| options.token.is_none()) {
        let path = PathBuf::from(path);
        match atlas_env::read_text(&path, TOKEN_BYTES_MAX) {
            Ok(token) => options.token = Some(token.trim().to_owned()),
            Err(source) => return Err(OptionsError::Token { path, source }),
        }
    }
    let address = values.get("history.database").map(|(address, _)| address.trim().to_owned());
    let file = values.get("history.database-file").map(|(path, _)| path.trim()).filter(|path| !path.is_empty());
    let address = match (address.filter(|address| !address.is_empty()), file.map(PathBuf::from)) {
        (None, Some(path)) => {
            let read = atlas_env::read_text(&path, TOKEN_BYTES_MAX);
            Some(read.map_err(|source| OptionsError::HistoryFile { path, source })?)
        }
        (address, _) => address,
    };
    options.history_database = address.map(|address| atlas_export::ExportTarget::parse(&address)).transpose()?;
    let otlp = values.get("otlp").map(|(address, _)| address.trim()).filter(|address| !address.is_empty());
    let otlp = atlas_otlp::Config::read("atlas-controller", otlp, |name| std::env::var(name).ok())?;
    options.otlp = otlp.map(atlas_otlp::Otlp::new);
    Ok(Loaded { options, values })
}

fn read_file(path: PathBuf, values: &mut BTreeMap<&'static str, (String, Origin)>) -> Result<(), OptionsError> {
    let text = match atlas_env::read_text(&path, CONFIGURATION_BYTES_MAX) {
        Ok(text) => text,
        Err(source) => return Err(OptionsError::Read { path, source }),
    };
    let line = |at: usize| atlas_env::line_at(&text, at);
    let table = match DeTable::parse(&text) {
        Ok(table) => table.into_inner(),
        Err(error) => {
            let line = line(error.span().map_or(0, |span| span.start));
            return Err(OptionsError::Toml { path, line, problem: error.message().to_owned() });
        }
    };
    let mut found = Vec::new();
    flatten("", &table, &mut found);
    for (key, value, at) in found {
        match OPTIONS.iter().find(|option| option.key == key) {
            Some(option) => {
                let value = value.ok_or_else(|| OptionsError::Value {
                    key: option.key,
                    value: "a list".to_owned(),
                    origin: format!("line {} of \"{}\"", line(at), path.display()),
                    expected: "one value, or a text with commas between several",
                })?;
                values.insert(option.key, (value, Origin::File(line(at))));
            }
            None => {
                let suggestion = atlas_contract::nearest(&key, OPTIONS.iter().map(|option| option.key));
                let suggestion = OPTIONS.iter().map(|option| option.key).find(|known| Some(*known) == suggestion);
                return Err(OptionsError::UnknownKey { path, line: line(at), key, suggestion });
            }
        }
    }
    Ok(())
}

/// The keys of a table and of those in it, with their values and where they stand; no value for a list.
fn flatten(prefix: &str, table: &DeTable<'_>, found: &mut Vec<(String, Option<String>, usize)>) {
    for (key, value) in table {
        let at = key.span().start;
        let key = key.get_ref();
        let key = if prefix.is_empty() { key.to_string() } else { format!("{prefix}.{key}") };
        match value.get_ref() {
            DeValue::Table(table) => flatten(&key, table, found),
            other => found.push((key, plain(other), at)),
        }
    }
}

/// A value as flags have it.
fn plain(value: &DeValue<'_>) -> Option<String> {
    Some(match value {
        DeValue::Integer(number) if number.radix() == 10 => number.as_str().to_owned(),
        DeValue::Integer(number) => {
            i64::from_str_radix(number.as_str(), number.radix()).map_or_else(|_| number.to_string(), |n| n.to_string())
        }
        DeValue::Float(number) => number.as_str().to_owned(),
        DeValue::Boolean(value) => value.to_string(),
        DeValue::Datetime(time) => time.to_string(),
        DeValue::String(text) => text.to_string(),
        DeValue::Array(_) | DeValue::Table(_) => return None,
    })
}

fn typed(values: &BTreeMap<&'static str, (String, Origin)>) -> Options {
    let text = |key: &str| values.get(key).map_or("", |(value, _)| value.as_str());
    let mut options = Options::new(PathBuf::from(text("data-dir")));
    // Every value was already checked. A value that cannot be parsed keeps the default.
    if let Some(http) = address(text("http.listen")) {
        options.http = http;
    }
    if let Some(grpc) = address(text("worker.listen")) {
        options.grpc = grpc;
    }
    options.peer = address(text("peer.listen"));
    let filled = |key: &str| Some(text(key).trim().to_owned()).filter(|text| !text.is_empty());
    options.pallas_names = text("metrics.pallas-names") == "true";
    options.agent_listen = agents(text("mcp.agent-listen")).unwrap_or_default();
    options.registry_listen = address(text("mcp.registry-listen"));
    let url = text("mcp.public-url").trim().trim_end_matches('/');
    options.gateway.registry.url = Some(url.to_owned()).filter(|url| !url.is_empty());
    options.gateway.registry.namespace = text("mcp.registry-namespace").trim().to_owned();
    options.compatible.listen = address(text("mcp.compatible-listen"));
    options.scaler = address(text("scaler.listen"));
    options.compatible.token = Token::new(text("mcp.compatible-token"));
    options.compatible.all_agents = text("mcp.all-agents") == "true";
    options.advertise = filled("advertise");
    options.name = filled("name");
    options.secrets_key = filled("secrets.key").map(PathBuf::from);
    options.auth = match text("auth") {
        "tokens" => Auth::Tokens,
        "open" => Auth::Open,
        _ => Auth::Off,
    };
    options.root_token_file = filled("auth.root-token-file").map(PathBuf::from);
    options.tls_dir = filled("tls.dir").map(PathBuf::from);
    options.tls_group_token_file = filled("tls.group-token-file").map(PathBuf::from);
    let names = text("tls.names").split(',').map(str::trim).filter(|name| !name.is_empty());
    options.tls_names = names.map(str::to_owned).collect();
    options.plain_ports = text("plain-ports") == "true";
    options.triggers_path = filled("triggers.path").map(PathBuf::from);
    options.stores = StoreOptions {
        memory_file: filled("memory.file").map(PathBuf::from),
        memory_url: filled("memory.url"),
        memory_token: filled("memory.token").map(Secret::from),
        knowledge_folder: filled("knowledge.folder").map(PathBuf::from),
        knowledge_url: filled("knowledge.url"),
        knowledge_mcp_url: filled("knowledge.mcp-url"),
        knowledge_token: filled("knowledge.token").map(Secret::from),
        knowledge_policy: filled("knowledge.policy").map(PathBuf::from),
    };
    options.token = filled("token");
    let addresses = text("join").split(',').map(str::trim).filter(|address| !address.is_empty());
    options.join = addresses.map(str::to_owned).collect();
    options.bootstrap = text("join.bootstrap") == "true";
    let whole = |bytes: u64| usize::try_from(bytes).unwrap_or(usize::MAX);
    if let Some(bytes) = size(text("http.body-max")) {
        options.http_limits.body_bytes_max = whole(bytes);
        options.gateway.body_bytes_max = whole(bytes);
    }
    if let Some(bytes) = size(text("package.max")) {
        options.http_limits.package_bytes_max = whole(bytes);
        options.limits.package_bytes_max = bytes;
    }
    if let Some(bytes) = size(text("artifact.max")) {
        options.artifact_bytes_max = bytes;
    }
    if let Some(bytes) = size(text("audit.max")) {
        options.audit_bytes_max = bytes;
    }
    if let Some(bytes) = size(text("snapshot.log")) {
        options.snapshot_log_bytes = bytes;
    }
    if let Some(bytes) = size(text("disk.reserve")) {
        options.space.reserve_bytes = bytes;
    }
    if let Some(bytes) = size(text("disk.ballast")) {
        options.space.ballast_bytes = bytes;
    }
    if let Ok(count) = text("digest.every").parse() {
        options.digest_every = count;
    }
    options.forget_nodes_after = duration(text("worker.forget-after")).filter(|after| !after.is_zero());
    options.retired_agents_keep = duration(text("retired-agents.keep")).filter(|keep| !keep.is_zero());
    options.limits.models_probed_every = duration(text("model.probe-every")).filter(|every| !every.is_zero());
    options.limits.conversations_kept = duration(text("conversation.keep")).filter(|keep| !keep.is_zero());
    options.jobs_kept_for = duration(text("history.keep"));
    options.history_database_keep = duration(text("history.database-keep")).filter(|keep| !keep.is_zero());
    if let Ok(count) = text("http.connections-max").parse() {
        options.http_limits.connections_max = count;
    }
    if let Ok(count) = text("mcp.sessions-max").parse() {
        options.gateway.sessions_max = count;
    }
    for (key, target) in [
        ("artifact.hold", &mut options.artifact_hold),
        ("http.header-timeout", &mut options.http_limits.header_timeout),
        ("http.body-timeout", &mut options.http_limits.body_timeout),
        ("http.wait-max", &mut options.http_limits.wait_max),
        ("mcp.wait", &mut options.gateway.wait_max),
        ("mcp.session-idle", &mut options.gateway.session_idle),
        ("worker.session-ttl", &mut options.session_ttl),
        ("tls.life", &mut options.tls_life),
    ] {
        if let Some(duration) = duration(text(key)) {
            *target = duration;
        }
    }
    if let Ok(level) = text("level-max").parse() {
        options.level = options.level.min(Level(level));
    }
    options.rules = Rules {
        jobs_active_max: text("queue.max-size").parse().ok(),
        dedupe_retention: duration(text("idempotency.keep")),
        dedupe_max: text("idempotency.keys-max").parse().ok(),
        spawn_depth_max: text("spawn.depth-max").parse().ok(),
        retry_deterministic: text("retry.deterministic").parse().ok(),
        backoff_max: duration(text("retry.backoff-max")),
        journal_bytes_max: size(text("journal.max")),
        node_failures_max: text("node.failures-max").parse().ok(),
    };
    if let Ok(count) = text("history.events-kept").parse() {
        options.events_kept = count;
    }
    options.log = text("log").to_owned();
    options.mode = Mode::Production;
    options
}

impl Loaded {
    /// The effective options as a configuration file, with the source of each.
    pub fn print(&self) -> String {
        let mut text = String::new();
        for OptionRow { key, form, .. } in OPTIONS {
            match self.values.get(key) {
                Some((_, origin)) if *form == Form::Secret => {
                    let _ = writeln!(text, "{key} = \"***\" # {}", origin.word());
                }
                Some((value, origin)) => {
                    let _ = writeln!(text, "{key} = {value:?} # {}", origin.word());
                }
                None => {
                    let _ = writeln!(text, "# {key} is not set");
                }
            }
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn loaded(arguments: &[&str]) -> Result<Loaded, OptionsError> {
        let arguments = std::iter::once("atlas-controller").chain(arguments.iter().copied());
        load(&command().try_get_matches_from(arguments).expect("well-formed flags"))
    }

    fn file(text: &str) -> (tempfile::TempDir, String) {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let path = dir.path().join("atlas.toml");
        std::fs::write(&path, text).expect("writable");
        let path = path.to_string_lossy().into_owned();
        (dir, path)
    }

    #[test]
    fn a_flag_goes_over_the_file_and_the_file_over_the_default() {
        let (_dir, path) =
            file("data-dir = \"/x\"\n[http]\nlisten = \"127.0.0.1:1\"\nwait-max = \"5m\"\n[queue]\nmax-size = 7\n");
        let loaded = loaded(&["--config", &path, "--http-listen", "127.0.0.1:2", "--idempotency-keep", "2d"]);
        let loaded = loaded.expect("holds");
        assert_eq!(loaded.options.http.port(), 2);
        assert_eq!(loaded.options.http_limits.wait_max.as_secs(), 300);
        assert_eq!(loaded.options.rules.jobs_active_max, Some(7));
        assert_eq!(loaded.options.rules.dedupe_retention, Some(Duration::from_secs(2 * 24 * 3_600)));
        assert_eq!(loaded.options.rules.dedupe_max, None);
        let printed = loaded.print();
        assert!(printed.contains("http.listen = \"127.0.0.1:2\" # flag\n"), "{printed}");
        assert!(printed.contains("http.wait-max = \"5m\" # file\n"), "{printed}");
        assert!(printed.contains("log = \"info\" # default\n"), "{printed}");
    }

    #[test]
    fn an_unknown_key_is_refused_with_the_nearest_one() {
        let (_dir, path) = file("[http]\nlistn = \"127.0.0.1:1\"\n");
        let error = loaded(&["--config", &path]).expect_err("unknown");
        assert!(
            error.to_string().ends_with("has an unknown key \"http.listn\"; did you mean \"http.listen\"?"),
            "{error}"
        );
        assert!(error.to_string().starts_with("line 2 of the configuration "), "{error}");
    }

    #[test]
    fn the_address_of_the_history_database_is_never_shown() {
        let url = "postgres://u:geheim@db.example/atlas";
        let (_dir, path) = file(&format!("{url}\n"));
        for arguments in [["--history", url], ["--history-file", &path]] {
            let loaded = loaded(&arguments).expect("holds");
            assert!(!loaded.print().contains("geheim"), "{}", loaded.print());
            assert!(!format!("{:?}", loaded.options).contains("geheim"));
            let database = loaded.options.history_database.expect("an address");
            assert_eq!(database.to_string(), "postgres://db.example/atlas");
        }
        for wrong in ["mysql://u:geheim@h/d", "postgres://u:geheim@h:port/d"] {
            let error = loaded(&["--history", wrong]).expect_err("no address of PostgreSQL");
            assert!(!format!("{error} {error:?}").contains("geheim"), "{error:?}");
        }
        let hidden = command().get_arguments().filter(|arg| arg.is_hide_env_values_set()).count();
        let secrets = OPTIONS.iter().filter(|option| option.form == Form::Secret).count();
        assert_eq!(hidden, secrets);
    }

    #[test]
    fn a_value_of_another_form_says_what_was_expected() {
        let error = loaded(&["--worker-session-ttl", "soon"]).expect_err("no duration");
        let text = "\"soon\" is not a valid worker.session-ttl (flag): expected a duration, such as 500ms, 30s or 1h";
        assert_eq!(error.to_string(), text);
        let (_dir, path) = file("# a comment\n[worker]\nsession-ttl = 0x10\n");
        let error = loaded(&["--config", &path]).expect_err("no duration");
        let text = format!("\"16\" is not a valid worker.session-ttl (line 3 of \"{path}\"): expected a duration");
        assert!(error.to_string().starts_with(&text), "{error}");
        let (_dir, path) = file("join = [\"a:1\"]\n");
        let error = loaded(&["--config", &path]).expect_err("a list").to_string();
        assert!(error.starts_with(&format!("\"a list\" is not a valid join (line 1 of \"{path}\"): ")), "{error}");
        let (_dir, path) = file("log = \"info\"\nqueue = [\n");
        let error = loaded(&["--config", &path]).expect_err("no TOML").to_string();
        assert!(error.starts_with(&format!("the configuration \"{path}\" is not TOML: line 2: ")), "{error}");
        let error = loaded(&["--config", "/dev/zero"]).map(drop).map_err(|error| atlas_env::chain(&error));
        let text = "could not read the configuration \"/dev/zero\": it is larger than 1048576 bytes";
        assert_eq!(error, Err(text.to_owned()));
    }
}
