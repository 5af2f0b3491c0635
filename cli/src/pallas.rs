//! `agents.yaml`, the deployment file of Pallas: agents with their folders, ports and the order in which they become ready.

mod order;
mod package;

use std::net::IpAddr;
use std::path::{Path, PathBuf};

use atlas_contract::nearest;
use atlas_contract::yaml::{self, Budget};
use serde_json::{Map, Value};

use crate::failure::Failure;

/// The largest file.
const BYTES_MAX: u64 = 1 << 20;
/// The most agents of a file.
const AGENTS_MAX: usize = 1_000;
/// The cap on requests to the model, if the file does not say.
const ITERATIONS: u64 = 15;
/// After how many equal rounds an agent is halted, if the file does not say.
const REPEATS: u64 = 3;

const KEYS: [&str; 6] = ["name", "version", "host", "namespace", "registry_port", "agents"];
const AGENT_KEYS: [&str; 8] = [
    "module",
    "port",
    "title",
    "description",
    "depends_on",
    "max_iterations",
    "loop_repeat_threshold",
    "instance_scope",
];

/// A deployment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Deployment {
    /// The folder of the file; modules are below it.
    folder: PathBuf,
    pub(crate) name: String,
    /// The version of its agents; none for those of their contracts.
    version: Option<String>,
    pub(crate) host: String,
    /// The port of the registry document.
    pub(crate) registry_port: Option<u16>,
    /// The prefix of names in the registry document.
    pub(crate) namespace: Option<String>,
    /// Each agent after those on which it depends.
    pub(crate) agents: Vec<Entry>,
}

/// An agent of a deployment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) name: String,
    module: String,
    /// The port of its own.
    pub(crate) port: Option<u16>,
    title: Option<String>,
    description: Option<String>,
    depends_on: Vec<String>,
    max_iterations: Option<u64>,
    loop_repeat_threshold: Option<u64>,
    instance_scope: Option<String>,
}

impl Deployment {
    /// Reads a file.
    pub(crate) fn open(path: &Path) -> Result<Self, Failure> {
        let failed = |error: &std::io::Error| Failure::usage(format!("could not read \"{}\": {error}", path.display()));
        let text = atlas_env::read_bytes(path, BYTES_MAX).map_err(|error| failed(&error))?;
        let folder = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let deployment = Self::read(&text, folder);
        deployment.map_err(|why| Failure::usage(format!("\"{}\": {why}", path.display())))
    }

    /// Reads the text of a file. The error says what is wrong and where.
    fn read(text: &[u8], folder: &Path) -> Result<Self, String> {
        let document = yaml::load_strictly(text, Budget::default()).map_err(|error| error.to_string())?;
        let Value::Object(members) = document else { return Err("it is not a mapping".to_owned()) };
        known(&members, "", &KEYS)?;
        let all = match members.get("agents") {
            Some(Value::Object(agents)) if !agents.is_empty() => agents,
            _ => return Err("agents is missing: a mapping with at least one agent".to_owned()),
        };
        if all.len() > AGENTS_MAX {
            return Err(format!("agents has more than {AGENTS_MAX} members"));
        }
        let agents = all.iter().map(|(name, value)| Entry::read(name, value)).collect::<Result<Vec<_>, _>>()?;
        Ok(Self {
            folder: folder.to_owned(),
            name: text_of(&members, "", "name")?.ok_or("name is missing")?,
            version: text_of(&members, "", "version")?,
            host: text_of(&members, "", "host")?.unwrap_or_else(|| "localhost".to_owned()),
            registry_port: port(&members, "", "registry_port")?,
            namespace: text_of(&members, "", "namespace")?,
            agents: order::ready(agents)?,
        })
    }

    /// The agents with ports of their own, as the controller's option `mcp.agent-listen` takes them.
    pub(crate) fn listeners(&self, address: &str) -> String {
        let ports = self.agents.iter().filter_map(|agent| Some(format!("{}={address}:{}", agent.name, agent.port?)));
        ports.collect::<Vec<_>>().join(",")
    }

    /// The address at which controllers listen so that they are reached at the host of the file.
    pub(crate) fn address(&self) -> String {
        match (self.host.as_str(), self.host.trim_matches(['[', ']']).parse::<IpAddr>()) {
            ("localhost", _) => "127.0.0.1".to_owned(),
            (_, Ok(IpAddr::V6(address))) => format!("[{address}]"),
            (_, Ok(address)) => address.to_string(),
            // A name says nothing of the machine's addresses.
            (_, Err(_)) => "0.0.0.0".to_owned(),
        }
    }
}

impl Entry {
    fn read(name: &str, value: &Value) -> Result<Self, String> {
        let at = format!("agents.{name}.");
        let Value::Object(members) = value else { return Err(format!("agents.{name} is not a mapping")) };
        known(members, &at, &AGENT_KEYS)?;
        let depends_on = match members.get("depends_on") {
            None | Some(Value::Null) => Vec::new(),
            Some(Value::Array(names)) if names.iter().all(Value::is_string) => {
                names.iter().filter_map(Value::as_str).map(str::to_owned).collect()
            }
            Some(_) => return Err(format!("{at}depends_on is not a list of names")),
        };
        let instance_scope = text_of(members, &at, "instance_scope")?;
        if instance_scope.as_deref().is_some_and(|scope| !["shared", "connection", "request"].contains(&scope)) {
            return Err(format!("{at}instance_scope is none of shared, connection and request"));
        }
        Ok(Self {
            name: name.to_owned(),
            module: text_of(members, &at, "module")?.ok_or(format!("{at}module is missing"))?,
            port: port(members, &at, "port")?,
            title: text_of(members, &at, "title")?,
            description: text_of(members, &at, "description")?,
            depends_on,
            max_iterations: number(members, &at, "max_iterations", 1, 1_000_000)?,
            loop_repeat_threshold: number(members, &at, "loop_repeat_threshold", 0, 1_000)?,
            instance_scope,
        })
    }
}

fn port(members: &Map<String, Value>, at: &str, key: &str) -> Result<Option<u16>, String> {
    Ok(number(members, at, key, 1, u16::MAX.into())?.and_then(|port| u16::try_from(port).ok()))
}

/// Refuses unknown keys: one that is misspelt would otherwise have no effect.
fn known(members: &Map<String, Value>, at: &str, keys: &[&'static str]) -> Result<(), String> {
    let Some(unknown) = members.keys().find(|key| !keys.contains(&key.as_str())) else { return Ok(()) };
    Err(match nearest(unknown, keys.iter().copied()) {
        Some(meant) => format!("unknown key {at}{unknown}; did you mean \"{meant}\"?"),
        None => format!("unknown key {at}{unknown}; known are {}", keys.join(", ")),
    })
}

fn text_of(members: &Map<String, Value>, at: &str, key: &str) -> Result<Option<String>, String> {
    match members.get(key) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) if !text.trim().is_empty() => Ok(Some(text.clone())),
        Some(_) => Err(format!("{at}{key} is not a text")),
    }
}

fn number(members: &Map<String, Value>, at: &str, key: &str, min: u64, max: u64) -> Result<Option<u64>, String> {
    match members.get(key) {
        None | Some(Value::Null) => Ok(None),
        Some(value) => match value.as_u64().filter(|number| (min..=max).contains(number)) {
            Some(number) => Ok(Some(number)),
            None => Err(format!("{at}{key} is not a whole number from {min} to {max}")),
        },
    }
}

#[cfg(test)]
mod tests;
