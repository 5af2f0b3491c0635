//! Graph agents in folders: reading `graph.yaml`, and what a validation looks up outside it.

use std::collections::BTreeSet;
use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use atlas_contract::yaml::{Budget, MarkedDocument, YamlError, load_core, load_core_with_nulls};
use atlas_graph::{
    Availability, Finding, Graph, Kind, LoadError, LoadErrorKind, LoadErrors, LoadedGraph, Source, Surroundings, inside,
};
use atlas_loki_agent::Overrides;

use crate::CONTRACT_FILE;
use crate::overrides::{self, OverridesError};

/// The definition of a graph agent.
pub const GRAPH_FILE: &str = "graph.yaml";
/// The definition of an agent with a model and without a graph.
pub const CONFIG_FILE: &str = "config.yaml";

/// Scripts that are larger are not read for a validation.
const SCRIPT_BYTES_MAX: u64 = 1 << 20;

/// Tools that every graph has.
const TOOLS: [&str; 6] =
    ["agent__send_message", "agent__check_inbox", "user__ask", "user__confirm", "user__input", "user__checkbox"];

/// Tools that a graph with an agent node has.
const SPAWN_TOOLS: [&str; 10] = [
    "agent__spawn",
    "agent__check",
    "agent__collect",
    "agent__list",
    "agent__cancel",
    "agent__reply_escalation",
    "agent__task_create",
    "agent__task_list",
    "agent__task_complete",
    "agent__task_fail",
];

/// Why the graph of a folder cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum GraphError {
    #[error("the folder has both {GRAPH_FILE} and {CONFIG_FILE}; remove one of them")]
    TwoDefinitions,
    #[error("the folder has no {GRAPH_FILE}")]
    NoDefinition,
    #[error("could not read \"{}\"", .path.display())]
    Read { path: PathBuf, source: io::Error },
    #[error(transparent)]
    Load(#[from] LoadErrors),
    /// A variable has neither a value nor a default.
    #[error("these variables need a value: {}", .names.join(", "))]
    Variables { names: Vec<String> },
    #[error(transparent)]
    Overrides(#[from] OverridesError),
    #[error("the tool file \"{name}\" does not exist")]
    ToolFile { name: String },
    #[error("the model \"{name}\" does not exist")]
    Model { name: String },
    /// The validation found errors.
    #[error("the graph is not valid: {} {}: {}", .errors.len(), if .errors.len() == 1 { "error" } else { "errors" }, listed(.errors))]
    Invalid { errors: Vec<Finding> },
}

fn listed(findings: &[Finding]) -> String {
    findings.iter().map(Finding::to_string).collect::<Vec<_>>().join("; ")
}

/// Names outside a folder. None where they are not known; then they are not checked.
#[derive(Debug, Clone, Default)]
pub struct KnownNames {
    pub tools: Option<BTreeSet<String>>,
    pub servers: Option<BTreeSet<String>>,
    pub models: Option<BTreeSet<String>>,
    /// True if other agents are found by their names elsewhere, and not in folders.
    pub agents_elsewhere: bool,
}

/// The folder of a graph agent.
#[derive(Debug, Clone)]
pub struct GraphFolder {
    pub folder: PathBuf,
    /// The folder that has the folders of other agents.
    pub agents: PathBuf,
    pub known: KnownNames,
}

/// Reads a graph from the text of `graph.yaml`, which is YAML 1.2.
pub fn graph(text: &[u8]) -> Result<LoadedGraph, LoadErrors> {
    changed_graph(text, &Overrides::default(), Reading::Strict)
}

/// What happens to values of YAML that JSON cannot represent: `.inf`, `.nan`, bytes and sets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reading {
    /// They are refused, before a definition is registered.
    Strict,
    /// They are null, as they were when definitions with them could be registered. Those run as before.
    WithNulls,
}

impl Reading {
    pub(crate) fn load(self, text: &[u8]) -> Result<MarkedDocument, YamlError> {
        match self {
            Self::Strict => load_core(text, Budget::default()),
            Self::WithNulls => load_core_with_nulls(text, Budget::default()),
        }
    }
}

fn changed_graph(text: &[u8], overrides: &Overrides, reading: Reading) -> Result<LoadedGraph, LoadErrors> {
    let mut marked = reading.load(text).map_err(|error| {
        let kind = LoadErrorKind::Syntax { problem: error.to_string() };
        LoadErrors(vec![LoadError { kind, pointer: String::new(), line: None, suggestion: None }])
    })?;
    overrides.apply(&mut marked.value);
    atlas_graph::load(Source { value: &marked.value, lines: &marked.lines, nearest })
}

fn nearest(name: &str, known: &[&str]) -> Option<String> {
    atlas_contract::nearest(name, known.iter().copied()).map(str::to_owned)
}

/// The tools that the nodes of a graph can name: those of `global_tools`, which have the names of their files, and the built-in ones.
pub fn graph_tools(graph: &Graph) -> BTreeSet<String> {
    let spawns = graph.nodes.iter().any(|node| matches!(node.kind, Kind::Agent(_)));
    let built_in = TOOLS.iter().chain(SPAWN_TOOLS.iter().filter(|_| spawns)).map(|name| (*name).to_owned());
    let stem = |file: &String| file.rsplit_once('.').map_or(file.as_str(), |(stem, _)| stem).to_owned();
    graph.global_tools.iter().map(stem).chain(built_in).collect()
}

impl GraphFolder {
    /// A folder next to the folders of other agents.
    pub fn new(folder: &Path) -> Self {
        let parent = folder.parent().filter(|parent| !parent.as_os_str().is_empty());
        let agents = parent.map_or_else(|| folder.join(".."), Path::to_owned);
        Self { folder: folder.to_owned(), agents, known: KnownNames::default() }
    }

    /// Reads the definition of a registered agent, with what `overrides.json` replaces.
    pub fn read(&self) -> Result<LoadedGraph, GraphError> {
        self.read_with(&overrides::of_folder(&self.folder)?, Reading::WithNulls)
    }

    /// The same for one that is to be registered: values that JSON cannot represent are refused, and not read as null.
    pub fn read_strictly(&self) -> Result<LoadedGraph, GraphError> {
        self.read_with(&overrides::of_folder(&self.folder)?, Reading::Strict)
    }

    pub(crate) fn read_with(&self, overrides: &Overrides, reading: Reading) -> Result<LoadedGraph, GraphError> {
        let (path, config) = (self.folder.join(GRAPH_FILE), self.folder.join(CONFIG_FILE));
        match (path.is_file(), config.is_file()) {
            (false, _) => Err(GraphError::NoDefinition),
            (true, true) => Err(GraphError::TwoDefinitions),
            (true, false) => {
                let bytes_max = Budget::default().bytes_max as u64;
                let text = read(&path, bytes_max + 1).map_err(|source| GraphError::Read { path, source })?;
                Ok(changed_graph(&text, overrides, reading)?)
            }
        }
    }

    /// Whether the agent has a file of tools of its own.
    pub fn has_own_tools(&self) -> bool {
        !crate::own_tools(&self.folder).is_empty()
    }

    /// Whether the agent can start: its tool files exist below `tools`, and each of its variables has a value.
    pub fn check_start(&self, graph: &Graph, tools: &Path) -> Result<(), GraphError> {
        if let Some(name) = graph.global_tools.iter().find(|name| !tools.join(name).is_file()) {
            return Err(GraphError::ToolFile { name: name.clone() });
        }
        let open = graph.variables.iter().filter(|variable| variable.default.is_none());
        let names: Vec<String> = open.map(|variable| variable.name.clone()).collect();
        if names.is_empty() { Ok(()) } else { Err(GraphError::Variables { names }) }
    }

    /// Validates a graph that is to be run.
    pub fn validate(&self, loaded: &LoadedGraph) -> Result<Vec<Finding>, GraphError> {
        let found = atlas_graph::check(loaded, self);
        let (errors, warnings): (Vec<Finding>, Vec<Finding>) =
            found.into_iter().partition(|finding| finding.level == atlas_graph::Level::Error);
        if errors.is_empty() { Ok(warnings) } else { Err(GraphError::Invalid { errors }) }
    }
}

impl Surroundings for GraphFolder {
    fn script(&self, path: &str) -> Option<String> {
        let path = self.folder.join(inside(path)?);
        if !path.is_file() {
            return None;
        }
        Some(String::from_utf8_lossy(&read(&path, SCRIPT_BYTES_MAX).ok()?).into_owned())
    }

    fn agent(&self, name: &str) -> Availability {
        if self.known.agents_elsewhere {
            return Availability::Yes;
        }
        let folder = self.agents.join(name);
        let is_name = !name.is_empty() && !name.starts_with('.') && !name.contains(['/', '\\']);
        if !is_name || !folder.is_dir() {
            return Availability::No;
        }
        let defined = [GRAPH_FILE, CONFIG_FILE, CONTRACT_FILE].iter().any(|file| folder.join(file).is_file());
        if defined { Availability::Yes } else { Availability::Undefined }
    }

    fn tools(&self) -> Option<&BTreeSet<String>> {
        self.known.tools.as_ref()
    }

    fn servers(&self) -> Option<&BTreeSet<String>> {
        self.known.servers.as_ref()
    }

    fn models(&self) -> Option<&BTreeSet<String>> {
        self.known.models.as_ref()
    }

    fn nearest(&self, name: &str, known: &[&str]) -> Option<String> {
        nearest(name, known)
    }
}

pub(crate) fn read(path: &Path, bytes_max: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    fs::File::open(path)?.take(bytes_max).read_to_end(&mut bytes)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A folder of agents in which `g` has this graph.
    fn agents(graph: &str, others: &[&str]) -> (tempfile::TempDir, GraphFolder) {
        let root = tempfile::tempdir().expect("a folder");
        let folder = root.path().join("g");
        fs::create_dir(&folder).expect("a folder");
        fs::write(folder.join(GRAPH_FILE), graph).expect("a file");
        for file in others {
            let path = root.path().join(file);
            fs::create_dir_all(path.parent().expect("a parent")).expect("a folder");
            fs::write(path, "").expect("a file");
        }
        (root, GraphFolder::new(&folder))
    }

    #[test]
    fn a_finding_has_its_line_and_a_suggestion() {
        let text = "name: g\nstart: a\nnodes:\n  a:\n    type: script\n    script: scripts/a.sh\n    next: finsih\n  finish:\n    type: end\n";
        let (_root, folder) = agents(text, &[]);
        let loaded = folder.read().expect("a graph");
        let error = folder.validate(&loaded).expect_err("two errors").to_string();
        let expected = "the graph is not valid: 2 errors: line 7: [a] target 'finsih' in next does not exist (V1); did you mean \"finish\"?; \
                        line 6: [a] script file not found: scripts/a.sh (V6)";
        assert_eq!(error, expected);
    }

    #[test]
    fn what_json_cannot_represent_is_refused_before_a_graph_is_registered() {
        let text = "name: g\nstart: a\nnodes:\n  a: {type: end}\ninitial_state: {most: .inf}\n";
        let (_root, folder) = agents(text, &[]);
        let error = folder.read_strictly().expect_err("no number").to_string();
        assert!(error.contains("line 5, column 23: .inf is no number"), "{error}");
        // One that is registered already runs as it did.
        let loaded = folder.read().expect("a graph");
        assert_eq!(loaded.graph.to_json()["initial_state"], serde_json::json!({"most": null}));
    }

    #[test]
    fn other_agents_are_in_the_folder_next_to_it() {
        let (_root, folder) =
            agents("", &["kid/config.yaml", "flow/graph.yaml", "own/agent.yaml", "odd/README.md", "file"]);
        let installed = |name| folder.agent(name);
        assert_eq!(["kid", "flow", "own", "g"].map(installed), [Availability::Yes; 4]);
        assert_eq!(
            ["odd", "none", "file", "../g", "", "."].map(installed),
            [
                Availability::Undefined,
                Availability::No,
                Availability::No,
                Availability::No,
                Availability::No,
                Availability::No
            ]
        );
    }

    /// T34.
    #[test]
    fn a_folder_has_one_definition() {
        let (_root, folder) = agents("x: [", &[]);
        let error = folder.read().expect_err("no YAML").to_string();
        assert!(error.starts_with("graph.yaml cannot be read: the file is not YAML: line 1"), "{error}");
        fs::write(folder.folder.join(CONFIG_FILE), "").expect("a file");
        assert!(matches!(folder.read(), Err(GraphError::TwoDefinitions)));
        fs::remove_file(folder.folder.join(GRAPH_FILE)).expect("removed");
        assert!(matches!(folder.read(), Err(GraphError::NoDefinition)));
    }
}
