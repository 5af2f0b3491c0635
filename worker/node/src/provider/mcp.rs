//! Agents that are a tool of an MCP server, or an agent of another cluster behind one. Without either, the input says what to call;
//! without a call it is asked for its tools, or only whether it answers.

mod programs;
mod remote;
pub(super) mod servers;

use atlas_contract::Mcp;
use atlas_mcp::{CallResult, McpError, Target};
use atlas_types::FailureKind;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

pub(crate) use self::programs::Programs;
use self::servers::Admitted;
pub(super) use self::servers::{Servers, has_programs, unlimited};
use super::{Execution, stopped};
use crate::attempt::Work;
use crate::provider::{Control, Shared};

/// An agent in its slot. It has no process of its own, and its slot ends with the job.
pub(crate) struct McpAgent {
    shared: Shared,
}

/// Why a call has no output.
enum Fault {
    /// The contract or the input do not say what to call.
    Contract(String),
    /// The server did not work, or refused.
    Server(McpError),
    /// The tool or the agent failed.
    Failed(String),
}

impl From<McpError> for Fault {
    fn from(error: McpError) -> Self {
        Self::Server(error)
    }
}

impl McpAgent {
    pub(super) fn new(shared: &Shared) -> Self {
        Self { shared: shared.clone() }
    }

    pub(super) async fn execute(&mut self, work: &Work, control: &mut Control<'_>) -> Execution {
        let (env, mailbox, limit) = (control.env, control.mailbox, work.assignment.execution_timeout);
        let servers = Servers::of(work, &control.secrets, &self.shared);
        let end = tokio::select! {
            biased;
            () = stopped(mailbox) => return Execution::stopped(),
            end = answer(work, &servers) => end,
            () = env.clock.sleep(limit.as_duration()) => return Execution::timed_out(limit),
        };
        servers.hide(&mut control.secrets);
        let output = end.and_then(|output| {
            RawValue::from_string(output.to_string()).map_err(|error| Fault::Contract(error.to_string()))
        });
        match output {
            Ok(output) => Execution::Output { output, metadata: Map::new(), usable: false },
            Err(Fault::Contract(why)) => Execution::failed(FailureKind::Agent, why),
            Err(Fault::Failed(why)) => Execution::failed(FailureKind::Agent, why),
            Err(Fault::Server(error)) => {
                let metadata = Map::from_iter([
                    ("_error_code".to_owned(), "E3208".into()),
                    ("_error_kind".to_owned(), error.kind.as_str().into()),
                ]);
                Execution::failed(FailureKind::Dependency, error.text).measured(metadata)
            }
        }
    }
}

async fn answer(work: &Work, servers: &Servers) -> Result<Value, Fault> {
    let contract = |text: &str| Fault::Contract(text.to_owned());
    let Some(mcp) = &work.agent.contract.provider.mcp else {
        return Err(contract("mcp provider requires 'server' in contract"));
    };
    let name = servers::named(&mcp.server, &work.input);
    let target = servers.get(&name)?;
    let input: Value = serde_json::from_slice(&work.input).map_err(|error| Fault::Contract(error.to_string()))?;
    let limit = work.assignment.execution_timeout.as_duration();
    let (tool, arguments) = match mcp {
        Mcp { agent: Some(agent), .. } => return remote::run(servers, target, agent, &input, limit).await,
        Mcp { tool: Some(tool), .. } => (tool.as_str(), &input),
        Mcp { .. } => match input["tool"].as_str() {
            Some(tool) => (tool, &input["arguments"]),
            None if input["probe"] == true => {
                servers.probe(target).await?;
                return Ok(
                    json!({ "server": target.name(), "transport": target.spec().transport.as_str(), "tools": [] }),
                );
            }
            None => return described(servers, target).await,
        },
    };
    let arguments = match arguments {
        Value::Null => Map::new(),
        Value::Object(arguments) => arguments.clone(),
        _ => return Err(contract("the arguments of a tool are an object")),
    };
    let called = servers.call(target, tool, arguments, limit).await?;
    if called.is_error {
        return Err(Fault::Failed(called.complaint()));
    }
    Ok(output(&called))
}

/// The output of a job is an object: the structured result, the text as JSON if it is an object, or `{"result": TEXT}`.
fn output(called: &CallResult) -> Value {
    match called.value() {
        value @ Value::Object(_) => value,
        Value::String(text) => match serde_json::from_str(&text) {
            Ok(value @ Value::Object(_)) => value,
            _ => json!({ "result": text }),
        },
        value => json!({ "result": value }),
    }
}

/// The tools of a server, those that are held back included.
async fn described(servers: &Servers, target: &Target) -> Result<Value, Fault> {
    let Admitted { tools: admitted, held, mut left_out } = servers.admitted_now(target).await?;
    let shown = |tool: &atlas_mcp::RemoteTool, state: &str| {
        let mut shown = tool.definition();
        shown["pin"] = atlas_mcp::digest(tool).into();
        shown["state"] = state.into();
        shown
    };
    let mut tools: Vec<Value> = admitted.iter().map(|tool| shown(tool, "offered")).collect();
    tools.extend(held.iter().map(|(tool, verdict)| shown(tool, servers::word(*verdict))));
    let refused = |tool: &atlas_mcp::RemoteTool| {
        Some(servers::unoffered(&tool.name, &atlas_mcp::for_models(&tool.input_schema).err()?))
    };
    left_out.extend(admitted.iter().chain(held.iter().map(|(tool, _)| tool)).filter_map(refused));
    let mut described =
        json!({ "server": target.name(), "transport": target.spec().transport.as_str(), "tools": tools });
    if !left_out.is_empty() {
        described["warnings"] = left_out.into();
    }
    Ok(described)
}
