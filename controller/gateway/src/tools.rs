//! The tools of `/mcp`: names, descriptions, schemas. A test keeps the page small, because every client pays for it in tokens.

use std::borrow::Cow;
use std::sync::{Arc, LazyLock};

use atlas_api::{Agents, Bases, Chains, Jobs, OperationId, Questions};
use rmcp::model::{JsonObject, Tool, ToolAnnotations};
use serde_json::{Value, json};

/// A tool of the platform.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ToolName {
    AgentsSearch,
    AgentDescribe,
    AgentRun,
    JobGet,
    JobWait,
    JobAnswer,
    JobCancel,
    ChainRun,
    DocsSearch,
    SearchDocuments,
}

impl ToolName {
    /// The operation that a tool stands for; none for the documentation, which is public.
    pub(crate) fn operation(self) -> Option<OperationId> {
        Some(match self {
            Self::AgentsSearch => Agents::ListAgents.id(),
            Self::AgentDescribe => Agents::GetAgent.id(),
            Self::AgentRun => Jobs::SubmitJob.id(),
            Self::ChainRun => Chains::StartChain.id(),
            Self::JobGet => Jobs::GetJob.id(),
            Self::JobWait => Jobs::WaitForJob.id(),
            Self::JobAnswer => Questions::AnswerQuestion.id(),
            Self::JobCancel => Jobs::CancelJob.id(),
            Self::SearchDocuments => Bases::SearchDocuments.id(),
            Self::DocsSearch => return None,
        })
    }

    pub(crate) const ALL: [Self; 10] = [
        Self::AgentsSearch,
        Self::AgentDescribe,
        Self::AgentRun,
        Self::JobGet,
        Self::JobWait,
        Self::JobAnswer,
        Self::JobCancel,
        Self::ChainRun,
        Self::DocsSearch,
        Self::SearchDocuments,
    ];

    /// The name in the protocol.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::AgentsSearch => "agents_search",
            Self::AgentDescribe => "agent_describe",
            Self::AgentRun => "agent_run",
            Self::JobGet => "job_get",
            Self::JobWait => "job_wait",
            Self::JobAnswer => "job_answer",
            Self::JobCancel => "job_cancel",
            Self::ChainRun => "chain_run",
            Self::DocsSearch => "docs_search",
            Self::SearchDocuments => "search_documents",
        }
    }

    /// The tool of a name.
    pub(crate) fn of(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|tool| tool.as_str() == name)
    }

    fn about(self) -> &'static str {
        match self {
            Self::AgentsSearch => {
                "Lists the agents whose name, description or capability contains a text; all without one."
            }
            Self::AgentDescribe => "Shows what an agent does and the JSON Schemas of its input and output.",
            Self::AgentRun => {
                "Runs an agent and returns its output. If it takes longer than the wait, the answer has the job's id and \
                 the job continues: call job_wait."
            }
            Self::JobGet => "Shows a job: its status, its output or error, or what it waits for.",
            Self::JobWait => "Waits until a job has ended or needs an answer, then shows it.",
            Self::JobAnswer => "Answers the question of a job; ask the user first. The first answer stands.",
            Self::JobCancel => "Cancels a job that has not ended.",
            Self::ChainRun => {
                "Runs a stored chain of agents and returns its output. If it takes longer than the wait, the chain continues: \
                 call it again with the id alone."
            }
            Self::DocsSearch => {
                "Finds sections of the documentation of Atlas by their words, or the page of an error code."
            }
            Self::SearchDocuments => {
                "Finds the parts of documents that fit a question in a document base: the resources atlas://bases/NAME."
            }
        }
    }

    fn schema(self) -> Value {
        let (properties, required): (Value, &[&str]) = match self {
            Self::AgentsSearch => (
                json!({
                    "query": { "type": "string", "maxLength": 500 },
                    "limit": { "type": "integer", "minimum": 1, "maximum": 100, "default": 20 },
                    "offset": { "type": "integer", "minimum": 0, "default": 0 }
                }),
                &[],
            ),
            Self::AgentDescribe => (json!({ "agent": name_schema(), "version": version_schema() }), &["agent"]),
            Self::AgentRun => (
                json!({
                    "agent": name_schema(),
                    "version": version_schema(),
                    "input": { "type": "object", "description": "Must fit the agent's input schema: see agent_describe." },
                    "wait_seconds": wait_schema(),
                    "questions": {
                        "type": "string",
                        "description": "What happens to its questions to people: fail, wait, or answer:TEXT."
                    },
                    "idempotency_key": {
                        "type": "string", "maxLength": 255,
                        "description": "A repeat with the same key gets the same job."
                    }
                }),
                &["agent"],
            ),
            Self::JobGet | Self::JobCancel => (json!({ "job_id": job_schema() }), &["job_id"]),
            Self::JobAnswer => (
                json!({
                    "job_id": job_schema(),
                    "question_id": { "type": "string", "description": "If the job has several open questions." },
                    "answer": { "description": "An option, a list of options, yes or no, a text, or what the schema asks." }
                }),
                &["job_id", "answer"],
            ),
            Self::JobWait => (json!({ "job_id": job_schema(), "wait_seconds": wait_schema() }), &["job_id"]),
            Self::ChainRun => (
                json!({
                    "chain": { "type": "string", "description": "The name of a stored chain." },
                    "input": { "type": "object" },
                    "id": { "type": "string", "description": "A run to wait for, instead of a new one." },
                    "wait_seconds": wait_schema()
                }),
                &[],
            ),
            Self::DocsSearch => (
                json!({
                    "query": { "type": "string", "maxLength": 500, "description": "Such as: rotate a secret, or E1102." },
                    "limit": { "type": "integer", "minimum": 1, "maximum": 10, "default": 4 }
                }),
                &["query"],
            ),
            Self::SearchDocuments => (
                json!({
                    "base": { "type": "string" },
                    "query": { "type": "string" },
                    "top_k": { "type": "integer", "minimum": 1, "maximum": 100 },
                    "source": { "type": "string", "description": "What the sources of the documents begin with." },
                    "metadata": { "type": "object", "description": "Members that the documents have." }
                }),
                &["base", "query"],
            ),
        };
        json!({ "type": "object", "properties": properties, "required": required, "additionalProperties": false })
    }

    fn annotations(self) -> ToolAnnotations {
        let hints = ToolAnnotations::new();
        match self {
            Self::AgentsSearch | Self::AgentDescribe | Self::JobGet | Self::JobWait => {
                hints.read_only(true).open_world(false)
            }
            Self::DocsSearch | Self::SearchDocuments => hints.read_only(true).open_world(false),
            Self::AgentRun | Self::ChainRun => hints.read_only(false).destructive(true).open_world(true),
            Self::JobAnswer => hints.read_only(false).destructive(false).open_world(false),
            Self::JobCancel => hints.read_only(false).destructive(true).idempotent(true).open_world(false),
        }
    }

    fn definition(self) -> Tool {
        let schema: JsonObject = match self.schema() {
            Value::Object(schema) => schema,
            _ => JsonObject::new(),
        };
        Tool::new(self.as_str(), Cow::Borrowed(self.about()), Arc::new(schema)).with_annotations(self.annotations())
    }
}

fn name_schema() -> Value {
    json!({ "type": "string", "description": "The agent's name." })
}

fn version_schema() -> Value {
    json!({ "type": "string", "description": "A version or a requirement such as ^1.2.0; the highest by default." })
}

fn wait_schema() -> Value {
    json!({ "type": "number", "minimum": 0, "description": "How long to wait; the server has a limit of its own." })
}

fn job_schema() -> Value {
    json!({ "type": "string", "description": "The id, such as job-4f1c09a2." })
}

/// All tools, in the order of the page.
pub(crate) fn all() -> &'static [Tool] {
    static TOOLS: LazyLock<Vec<Tool>> = LazyLock::new(|| ToolName::ALL.into_iter().map(ToolName::definition).collect());
    &TOOLS
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_is_small() {
        let bytes = serde_json::to_vec(all()).expect("JSON").len();
        // Four bytes are about one token of the usual models.
        assert!(bytes < 2_000 * 4, "{bytes} bytes");
        assert!(bytes > 1_000, "{bytes} bytes: the schemas are there");
    }

    #[test]
    fn names_lead_back_to_their_tools() {
        for tool in ToolName::ALL {
            assert_eq!(ToolName::of(tool.as_str()), Some(tool));
        }
        assert_eq!(ToolName::of("agent_runs"), None);
    }
}
