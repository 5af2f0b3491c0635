//! The tools of the platform, `atlas.*` and `user__*`, that agents call (compatibility §18). Each call is made as the principal of the
//! agent's own job, and translates to functions that the doors use as well. Clients of the MCP server that is compatible with Atlas for
//! Python call the same tools as themselves (`outside.rs`).

mod collected;
mod documents;
mod exec;
pub(crate) mod library;
mod lookup;
mod monitor;
mod outside;
mod registry;
mod team;
mod user;

use atlas_api::{Agents, Figures, Jobs, OperationId, Questions};
use atlas_contract::platform::{self, LOOKUP};
use atlas_registry::KnownContract;
use atlas_types::{Job, JobId, MODEL_TOKEN, Spawner, TEAM, ToolEnd, ToolRequest};
use serde_json::{Map, Value};

use crate::skill_run::undeclared;
use crate::{Attempted, Caller, Error, Service, is_denial};

/// Most bytes of a result: as much as a frame to a worker holds.
const TOOL_BYTES_MAX: usize = 1 << 20;

/// Items in one answer, if the call does not say.
const LISTED: usize = 50;

pub use outside::{OutsideCall, Unwanted};

/// One call.
struct Call<'a> {
    caller: Caller,
    tool: &'a str,
    arguments: Map<String, Value>,
    /// The agent's job that calls; none for a client.
    from: Option<CallingJob<'a>>,
    /// When a client does not want the result any more.
    unwanted: Unwanted,
}

/// The attempt that calls.
struct CallingJob<'a> {
    job: &'a Job,
    /// The job that the call spawns if it spawns one.
    spawned: JobId,
    /// Whether the call may be a repeat.
    again: bool,
}

impl Call<'_> {
    /// An argument that is a text, or the empty text.
    fn text(&self, name: &str) -> &str {
        self.arguments.get(name).and_then(Value::as_str).unwrap_or_default()
    }

    /// How many items a list shall have.
    fn limit(&self) -> usize {
        self.arguments.get("limit").and_then(Value::as_u64).map_or(LISTED, |limit| limit as usize)
    }
}

/// Why a call has no result.
enum NoResult {
    /// Told to the agent.
    Refused(String),
    /// Of the service.
    Error(Error),
}

impl From<Error> for NoResult {
    fn from(error: Error) -> Self {
        Self::Error(error)
    }
}

impl Service {
    /// Calls a tool for a running attempt. A repeat of a call that spawns a job finds that job. An error means that the
    /// call may succeed later.
    pub async fn call_tool(&self, request: &ToolRequest) -> Result<ToolEnd, Error> {
        let refused = |why: &str| Ok(ToolEnd::Refused(why.to_owned()));
        let Spawner { job, token } = request.caller;
        let state = self.shared.current().await?;
        let Some(job) = state.job(job).filter(|job| job.lease.as_ref().is_some_and(|lease| lease.token == token))
        else {
            return refused("the lease is outdated");
        };
        let Ok(arguments) = serde_json::from_slice::<Map<String, Value>>(&request.arguments) else {
            return refused("the arguments are not a JSON object");
        };
        if request.tool == MODEL_TOKEN {
            return self.shared.vault.model_token(job, arguments).await;
        }
        let version = job.pin.as_ref().and_then(|pin| state.agent(&job.namespace, &job.agent, pin.version));
        let Some(version) = version else { return refused("the version of the calling agent is not registered") };
        let contract = self.shared.registry.contract(version).await?;
        let from = CallingJob { job, spawned: request.spawned(), again: request.again };
        let caller = self.shared.authenticator.caller_of_job(&state, job);
        let call = Call { caller, tool: &request.tool, arguments, from: Some(from), unwanted: Unwanted::never() };
        let team = request.tool.strip_prefix(TEAM);
        let documents = documents::is_one(call.tool);
        let shared = library::is_one(call.tool);
        let collected = collected::is_one(call.tool);
        if team.is_none()
            && !shared
            && !documents
            && !collected
            && call.tool != ToolRequest::QUESTION
            && !permits(&contract, &call)
        {
            let tool = call.tool;
            return refused(&undeclared(tool));
        }
        let result = match team {
            Some(what) => self.team(&call, job, request.key, what).await,
            None if collected => self.tool_collected(&call, job).await,
            None if documents => self.tool_documents(&call, &contract).await,
            None if shared => self.tool_library(&call, job, request.key, &contract).await,
            None if user::is_one(call.tool) => self.tool_user(&call, job, request.key, &contract).await,
            None => self.dispatch(&call).await,
        };
        match result {
            Ok(result) => {
                let result = result.to_string().into_bytes();
                if result.len() > TOOL_BYTES_MAX {
                    let bytes = result.len();
                    return refused(&format!(
                        "the result has {bytes} bytes, more than {TOOL_BYTES_MAX}; ask for less with a limit or a filter"
                    ));
                }
                Ok(ToolEnd::Result(result.into()))
            }
            Err(NoResult::Refused(why)) => Ok(ToolEnd::Refused(why)),
            // A store outside of the cluster may have got what it did not answer: the agent decides what is tried again.
            Err(NoResult::Error(error @ Error::StoreFailed(_))) => Ok(ToolEnd::Refused(error.to_string())),
            Err(NoResult::Error(error)) if error.is_transient() => Err(error),
            Err(NoResult::Error(error)) => Ok(ToolEnd::Refused(error.to_string())),
        }
    }

    /// Carries out a call, and records it if it is denied.
    async fn dispatch(&self, call: &Call<'_>) -> Result<Value, NoResult> {
        let stands_for = tool_operation(call.tool);
        let result = match stands_for.map_or(Ok(()), |operation| call.caller.may(operation)) {
            Ok(()) => self.carry_out(call).await,
            Err(error) => Err(error.into()),
        };
        if let Err(NoResult::Error(error)) = &result
            && is_denial(error)
        {
            let object = format!("tool/{}", call.tool);
            let attempted = Attempted { verb: stands_for.map_or("callTool", OperationId::name), object: &object };
            self.shared.audit.denied(&call.caller, attempted, error).await;
        }
        result
    }

    async fn carry_out(&self, call: &Call<'_>) -> Result<Value, NoResult> {
        match call.tool {
            // The worker makes that of an agent a child of its job.
            platform::RUN if call.from.is_none() => Ok(self.tool_run(call).await?),
            "atlas.registry.list" => self.tool_list(call).await,
            LOOKUP => self.tool_lookup(call).await,
            "atlas.registry.describe" => self.tool_describe(call).await,
            "atlas.registry.search" => self.tool_search(call).await,
            "atlas.exec.spawn" => self.tool_spawn(call).await,
            "atlas.exec.status" => self.tool_status(call).await,
            "atlas.exec.cancel" => self.tool_cancel(call).await,
            "atlas.queue.inspect" => self.tool_queue(call).await,
            "atlas.monitor.health" => self.tool_health(call).await,
            "atlas.monitor.metrics" => Ok(self.tool_metrics(call)),
            "atlas.monitor.trace" => self.tool_trace(call).await,
            "atlas.monitor.traces" => self.tool_traces(call).await,
            tool => Err(NoResult::Refused(format!("Unknown tool: {tool}"))),
        }
    }
}

/// The operation that a tool of the platform stands for. What an agent declares is looked up for every job, and the health is public.
pub fn tool_operation(tool: &str) -> Option<OperationId> {
    Some(match tool {
        "atlas.registry.list" | "atlas.registry.search" => Agents::ListAgents.id(),
        "atlas.registry.describe" => Agents::GetAgent.id(),
        "atlas.exec.spawn" | platform::RUN => Jobs::SubmitJob.id(),
        "atlas.exec.status" => Jobs::GetJob.id(),
        "atlas.exec.cancel" => Jobs::CancelJob.id(),
        "atlas.queue.inspect" => Jobs::ListJobs.id(),
        "atlas.monitor.metrics" => Figures::Figures.id(),
        "atlas.monitor.trace" => Questions::GetTrace.id(),
        "atlas.monitor.traces" => Questions::ListTraces.id(),
        _ => return None,
    })
}

/// Whether the contract of the calling agent asks for the tool. It may also look up what it names as a tool.
fn permits(contract: &KnownContract, call: &Call<'_>) -> bool {
    let requires = contract.value.get("requires");
    let named = |name: &str| {
        let skills = requires.and_then(|requires| requires.get("skills")).and_then(Value::as_array);
        skills.is_some_and(|skills| skills.iter().any(|skill| skill == name))
    };
    let platform = requires.and_then(|requires| requires.get("platform_tools")) == Some(&Value::Bool(true));
    // An agent whose calls need a permission asks for it. Tools of these providers can have guards of their own.
    let provider = contract.value.get("provider");
    let kind = provider.and_then(|provider| provider.get("type").unwrap_or(provider).as_str());
    let has_rules = provider.is_some_and(|provider| provider.get("tool_permissions").is_some());
    let asks = call.tool == "user__ask" && (has_rules || matches!(kind, Some("normal" | "graph")));
    asks || (platform && !user::is_one(call.tool))
        || named(call.tool)
        || (call.tool == LOOKUP && named(call.text("name")))
}
