//! The MCP servers of one attempt. What belongs to its caller ends with it.

use std::collections::BTreeMap;
use std::time::Duration;

use atlas_mcp::{
    CallResult, Listing, McpError, McpErrorKind, Pool, RemoteTool, ServerSpec, Surroundings, Target, Transport, Verdict,
};
use atlas_types::{AttachedServer, SecretText};
use serde_json::{Map, Value, json};

use crate::attempt::Work;
use crate::provider::Shared;
use crate::provider::exec::traceparent;
use crate::provider::login::Logins;
use crate::provider::platform::Platform;
use crate::secrets::Secrets;

/// The servers by name, and why others cannot be used.
pub(in crate::provider) struct Servers {
    pool: Pool,
    targets: BTreeMap<String, Result<Target, McpError>>,
    logins: Logins,
}

/// What a server lists.
pub(in crate::provider) struct Admitted {
    /// The tools that may be called.
    pub(in crate::provider) tools: Vec<RemoteTool>,
    /// Those that wait until a person has accepted them.
    pub(in crate::provider) held: Vec<(RemoteTool, Verdict)>,
    /// What nobody can use, in words.
    pub(in crate::provider) left_out: Vec<String>,
}

impl Servers {
    /// The servers that came with a lease.
    pub(in crate::provider) fn of(work: &Work, secrets: &Secrets, shared: &Shared) -> Self {
        let (assignment, logins) = (&work.assignment, Logins::new(Platform::of(work, shared), shared));
        let attachments = &assignment.attachments;
        let secret = |name: &str| secrets.of_models(name).cloned();
        let variable = |name: &str| secrets.variable_of_models(name).cloned();
        let around = Surroundings { secret: &secret, variable: &variable, bearer: attachments.bearer() };
        // The program of a server has the rights of the agent.
        let rights = match shared.settings.sandboxes.access(&work.agent.contract) {
            Ok(access) => Ok(access.map(|access| json!(access).to_string())),
            Err(unconfined) => Err(refused(unconfined.to_string())),
        };
        let resolve = |server: &AttachedServer| {
            let AttachedServer { name, spec, login } = server;
            let spec = ServerSpec::read(spec).map_err(|error| refused(format!("the MCP server {name}: {error}")))?;
            let target = Target::resolve(assignment.namespace.as_str(), name, &spec, &around)?;
            let target = target.with_trace(traceparent(assignment));
            let target = match &rights {
                Err(refused) if spec.transport == Transport::Stdio => return Err(refused.clone()),
                Ok(Some(rights)) => target.confined(rights),
                Ok(None) | Err(_) => target,
            };
            Ok(if *login { target.with_login(logins.server(name)) } else { target })
        };
        let servers = attachments.servers().iter();
        let targets = servers.map(|server| (server.name.clone(), resolve(server))).collect();
        Self { pool: shared.servers.clone(), targets, logins }
    }

    /// Removes access tokens from the texts of the attempt, once there are any.
    pub(in crate::provider) fn hide(&self, secrets: &mut Secrets) {
        for (name, token) in self.logins.unhidden() {
            secrets.hide(&name, token);
        }
    }

    /// Access tokens that texts do not have hidden yet.
    pub(in crate::provider) fn unhidden(&self) -> Vec<(String, SecretText)> {
        self.logins.unhidden().into_iter().collect()
    }

    /// Whether there is such a server.
    pub(in crate::provider) fn has(&self, name: &str) -> bool {
        self.targets.contains_key(name)
    }

    /// A server.
    pub(in crate::provider) fn get(&self, name: &str) -> Result<&Target, McpError> {
        match self.targets.get(name) {
            Some(Ok(target)) => Ok(target),
            Some(Err(error)) => Err(error.clone()),
            None => Err(refused(format!("there is no MCP server \"{name}\"; add it: atlasctl mcp add {name}"))),
        }
    }

    /// The tools of a server. The list may be a minute old.
    pub(in crate::provider) async fn admitted(&self, target: &Target) -> Result<Admitted, McpError> {
        Ok(admitted(target, &*self.pool.tools(target).await?))
    }

    /// The tools of a server as it lists them now.
    pub(in crate::provider) async fn admitted_now(&self, target: &Target) -> Result<Admitted, McpError> {
        Ok(admitted(target, &*self.pool.tools_now(target).await?))
    }

    /// Calls a tool that is allowed. The pool compares its definition with the accepted one if the server is pinned.
    pub(in crate::provider) async fn call(
        &self,
        target: &Target,
        tool: &str,
        arguments: Map<String, Value>,
        limit: Duration,
    ) -> Result<CallResult, McpError> {
        let (spec, server) = (target.spec(), target.name());
        if !spec.allows(tool) {
            let text = format!("the tool {tool} of the MCP server {server} is not allowed");
            return Err(McpError { kind: McpErrorKind::Refused, text });
        }
        self.pool.call(target, tool, arguments, limit.min(Duration::from_secs(spec.timeout_seconds.into()))).await
    }

    /// Whether a server answers, within three seconds and on a connection of its own.
    pub(in crate::provider) async fn probe(&self, target: &Target) -> Result<(), McpError> {
        self.pool.probe(target).await
    }

    /// Runs an agent of another cluster: for as long as its job may take, and without a limit for tools.
    pub(in crate::provider) async fn run(
        &self,
        target: &Target,
        tool: &str,
        arguments: Map<String, Value>,
        limit: Duration,
    ) -> Result<CallResult, McpError> {
        self.pool.call(target, tool, arguments, limit).await
    }
}

fn admitted(target: &Target, listing: &Listing) -> Admitted {
    let (tools, held) = target.spec().admit(listing.tools.clone());
    Admitted { tools, held, left_out: listing.left_out.clone() }
}

/// Whether the servers of an attempt include programs on this machine.
pub(in crate::provider) fn has_programs(work: &Work) -> bool {
    let is_program =
        |server: &AttachedServer| ServerSpec::read(&server.spec).is_ok_and(|spec| spec.transport == Transport::Stdio);
    work.assignment.attachments.servers().iter().any(is_program)
}

/// Which limits of an agent do not bind the programs of its servers, as text: they serve other attempts and agents as well.
pub(in crate::provider) fn unlimited(work: &Work) -> Option<String> {
    let stated = work.agent.contract.stated_limits;
    let limits = match (stated.memory_mb, stated.cpu_seconds) {
        (None, None) => return None,
        (Some(_), None) => "memory",
        (None, Some(_)) => "cpu time",
        (Some(_), Some(_)) => "memory and cpu time",
    };
    has_programs(work).then(|| format!("{limits} of MCP servers not enforced"))
}

/// What is said about a tool that models are not offered.
pub(in crate::provider) fn unoffered(tool: &str, why: &str) -> String {
    format!("tool {tool:?} is not offered to models, because providers would refuse it: {why}")
}

/// What a tool that is held back is.
pub(in crate::provider) fn word(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Accepted => "offered",
        Verdict::New => "new",
        Verdict::Changed => "changed",
    }
}

/// The name of a server as it is written, or the one in the member of the input that `{input.MEMBER}` names.
pub(in crate::provider) fn named(asked: &str, input: &[u8]) -> String {
    let member = asked.strip_prefix("{input.").and_then(|rest| rest.strip_suffix('}'));
    let Some(member) = member else { return asked.to_owned() };
    let input: Value = serde_json::from_slice(input).unwrap_or_default();
    input[member].as_str().unwrap_or_default().to_owned()
}

fn refused(text: String) -> McpError {
    McpError { kind: McpErrorKind::Configuration, text }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn servers_are_named_by_contract_or_input() {
        assert_eq!(named("github", b"{}"), "github");
        assert_eq!(named("{input.server}", br#"{"server": "lab"}"#), "lab");
        assert_eq!(named("{input.server}", b"[]"), "");
    }
}
