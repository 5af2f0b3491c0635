//! The settings of a Loki agent.

use atlas_supervisor::Settings;
use atlas_turn::{AutoContinueLayer, ToolAction, ToolRule};
use serde_json::Value;

use crate::read::{ConfigError, Reader};
use crate::variables::Variable;

/// A `config.yaml`.
#[derive(Debug, Clone, PartialEq)]
pub struct Config {
    /// The name for people; the agent's own name is that of its folder.
    pub name: String,
    /// For people, and for agents that start it.
    pub description: String,
    /// Any text.
    pub version: String,
    /// The model, as `CLIENT:MODEL`. None is the model of the caller.
    pub model: Option<String>,
    /// How freely the model chooses its words.
    pub temperature: Option<f64>,
    /// The share of likely words from which it chooses.
    pub top_p: Option<f64>,
    /// The session that is opened at the start.
    pub session: Option<String>,
    /// The system prompt.
    pub instructions: String,
    /// Whether the function `_instructions` of the agent's tools makes the system prompt instead.
    pub dynamic_instructions: bool,
    /// Values that the caller can give.
    pub variables: Vec<Variable>,
    /// Prompts that are suggested to people.
    pub conversation_starters: Vec<String>,
    /// Sources of knowledge.
    pub documents: Vec<String>,
    /// The model that turns documents and prompts into vectors. None searches by words alone.
    pub rag_embedding_model: Option<String>,
    /// The model that sorts what a search has found.
    pub rag_reranker_model: Option<String>,
    /// Most chunks that a prompt gets.
    pub rag_top_k: Option<u64>,
    /// Bytes of a chunk.
    pub rag_chunk_size: Option<u64>,
    /// Bytes that a chunk repeats of the one before.
    pub rag_chunk_overlap: Option<u64>,
    /// The text of a prompt with what was found, with `__INPUT__`, `__CONTEXT__` and perhaps `__SOURCES__`. None is our own.
    pub rag_template: Option<String>,
    /// Files of the folder of tools that it may use.
    pub global_tools: Vec<String>,
    /// MCP servers that it may use.
    pub mcp_servers: Vec<String>,
    /// What happens to calls of some tools. Loki does not know it.
    pub tool_permissions: Vec<ToolRule>,
    /// The todo list and its continuation.
    pub auto_continue: AutoContinueLayer,
    /// Helpers.
    pub helpers: Settings,
    /// Whether the instructions explain the tools for helpers.
    pub inject_spawn_instructions: bool,
    /// The model that summarises outputs of helpers. None is the agent's own.
    pub summarization_model: Option<String>,
    /// The size of a session from which it is compressed.
    pub compression_threshold: Option<u64>,
    /// Members that mean nothing here.
    pub unknown: Vec<String>,
}

/// Members of the format that have no effect, and what happens to what they are for.
pub const WITHOUT_EFFECT: [(&str, &str); 2] = [
    ("compression_threshold", "sessions are kept whole, within the limits of conversations"),
    ("conversation_starters", "nothing suggests prompts to people"),
];

/// Members that only have an effect together with `can_spawn_agents: true`.
pub const OF_HELPERS: [&str; 5] = [
    "inject_spawn_instructions",
    "max_agent_depth",
    "max_concurrent_agents",
    "summarization_model",
    "summarization_threshold",
];

impl Config {
    /// The members of the format.
    pub fn members() -> Vec<&'static str> {
        let mut known = Vec::new();
        // The names do not depend on the document.
        let read = Self::read_noting(&serde_json::json!({"name": ""}), &mut known);
        debug_assert!(read.is_ok(), "{read:?}");
        known
    }

    /// Reads a document.
    pub fn read(document: &Value) -> Result<Self, ConfigError> {
        Self::read_noting(document, &mut Vec::new())
    }

    fn read_noting(document: &Value, known: &mut Vec<&'static str>) -> Result<Self, ConfigError> {
        let mut reader = Reader::new(document, "")?;
        let variables = reader.list("variables")?.iter().enumerate();
        let variables = variables.map(|(place, one)| Variable::read(one, &format!("variables[{place}].")));
        let rules = reader.list("tool_permissions")?.iter().enumerate();
        let rules = rules.map(|(place, one)| rule(one, &format!("tool_permissions[{place}].")));
        Ok(Self {
            name: reader.required("name")?,
            description: reader.text("description")?.unwrap_or_default(),
            version: reader.text("version")?.unwrap_or_default(),
            model: reader.text("model")?,
            temperature: reader.number("temperature")?,
            top_p: reader.number("top_p")?,
            session: reader.text("agent_session")?,
            instructions: reader.text("instructions")?.unwrap_or_default(),
            dynamic_instructions: reader.truth("dynamic_instructions")?.unwrap_or(false),
            variables: variables.collect::<Result<_, _>>()?,
            conversation_starters: reader.texts("conversation_starters")?,
            documents: reader.texts("documents")?,
            rag_embedding_model: reader.text("rag_embedding_model")?,
            rag_reranker_model: reader.text("rag_reranker_model")?,
            rag_top_k: reader.range("rag_top_k", 1..=100, "a whole number from 1 to 100")?,
            rag_chunk_size: reader.range("rag_chunk_size", 1..=100_000, "a whole number from 1 to 100000")?,
            rag_chunk_overlap: overlap(&mut reader)?,
            rag_template: template(&mut reader)?,
            global_tools: reader.texts("global_tools")?,
            mcp_servers: reader.texts("mcp_servers")?,
            tool_permissions: rules.collect::<Result<_, _>>()?,
            auto_continue: AutoContinueLayer {
                enabled: reader.truth("auto_continue")?,
                max: reader.count("max_auto_continues")?,
                inject: reader.truth("inject_todo_instructions")?,
                prompt: reader.text("continuation_prompt")?,
            },
            helpers: helpers(&mut reader)?,
            inject_spawn_instructions: reader.truth("inject_spawn_instructions")?.unwrap_or(true),
            summarization_model: reader.text("summarization_model")?,
            compression_threshold: reader.count("compression_threshold")?,
            unknown: {
                known.extend(reader.names());
                reader.unknown()
            },
        })
    }
}

/// The bytes of a chunk, if a configuration does not say.
const CHUNK_SIZE: u64 = 1_000;
/// What a template of prompts must have.
const PLACEHOLDERS: [&str; 2] = ["__INPUT__", "__CONTEXT__"];

fn overlap(reader: &mut Reader<'_>) -> Result<Option<u64>, ConfigError> {
    let size = reader.count("rag_chunk_size")?.unwrap_or(CHUNK_SIZE);
    let overlap = reader.count("rag_chunk_overlap")?;
    match overlap.filter(|overlap| *overlap >= size) {
        Some(overlap) => Err(ConfigError::Overlap { overlap, size }),
        None => Ok(overlap),
    }
}

fn template(reader: &mut Reader<'_>) -> Result<Option<String>, ConfigError> {
    let template = reader.text("rag_template")?;
    let lacks = |template: &String| PLACEHOLDERS.into_iter().find(|name| !template.contains(name));
    match template.as_ref().and_then(lacks) {
        Some(missing) => Err(ConfigError::Template { missing }),
        None => Ok(template),
    }
}

fn rule(document: &Value, prefix: &str) -> Result<ToolRule, ConfigError> {
    let mut reader = Reader::new(document, prefix)?;
    let tool = reader.required("tool")?;
    let word = reader.required("action")?;
    let wrong =
        || ConfigError::Type { field: format!("{prefix}action"), expected: "allow, ask or deny", got: "another text" };
    Ok(ToolRule { tool, action: ToolAction::of(&word).ok_or_else(wrong)? })
}

fn helpers(reader: &mut Reader<'_>) -> Result<Settings, ConfigError> {
    let standard = Settings::default();
    let timeout: Option<u64> = reader.count("escalation_timeout")?;
    Ok(Settings {
        spawns: reader.truth("can_spawn_agents")?.unwrap_or(standard.spawns),
        concurrent: reader.count("max_concurrent_agents")?.unwrap_or(standard.concurrent),
        depth: reader.count("max_agent_depth")?.unwrap_or(standard.depth),
        summarize_from: reader.count("summarization_threshold")?.unwrap_or(standard.summarize_from),
        escalation_timeout_ms: timeout.map_or(standard.escalation_timeout_ms, |seconds| seconds.saturating_mul(1000)),
    })
}
