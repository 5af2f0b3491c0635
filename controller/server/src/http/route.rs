//! Paths.

use atlas_service::NodeAction;

use super::query::percent_decoded;

/// The resource of a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Route {
    Jobs,
    JobBatch,
    Job(String),
    JobWait(String),
    JobTree(String),
    JobPolicies(String),
    JobExplain(String),
    JobSteps(String),
    JobReceipt(String),
    JobCancel(String),
    JobRetry(String),
    JobErase(String),
    JobsErase,
    JobFork(String),
    JobResolve(String),
    JobMessages(String),
    Questions,
    Question(String),
    QuestionAnswer(String),
    JobEvents(String),
    JobLogs(String),
    Chains,
    Chain(String),
    ChainCheck,
    ChainCancel(String),
    ChainTree(String),
    Events,
    Socket,
    Agents,
    Agent(String),
    AgentVersions(String),
    AgentVersion(String, String),
    AgentDeprecate(String, String),
    AgentDelete(String, String),
    AgentResume(String, String),
    AgentRollback(String, String),
    Nodes,
    Node(String),
    NodeAction(String, NodeAction),
    NodeLabels(String),
    ObjectKinds,
    Objects(String),
    Object(String, String),
    Secret(String),
    ModelLogin(String),
    ServerLogin(String),
    Triggers,
    Trigger(String),
    TriggerFire(String),
    TriggerNext(String),
    TriggerDeliveries(String),
    TriggerTest(String),
    TriggerBackfill(String),
    Hook(String),
    Cluster,
    ClusterEvents,
    Members,
    Member(String),
    JoinTokens,
    JoinTokenRevoke,
    TransferLeader,
    Health,
    Ready,
    Version,
    Snapshot,
    Figures,
    FiguresOf(String),
    Metrics,
    OpenApi,
    Traces,
    Trace(String),
    Skills,
    Skill(String),
    SkillTest(String),
    Conversations,
    Conversation(String),
    McpRegistry,
    McpResource,
    McpResourceOf(String),
    SecurityPolicy,
    ExplainPolicies,
    Orchestrator,
    Audit,
    Whoami,
    Tokens,
    ErrorPage(String),
}

impl Route {
    /// Parses a path.
    pub(crate) fn of(path: &str) -> Option<Self> {
        let mut segments = path.strip_prefix('/')?.split('/');
        let mut parts = [""; 6];
        let mut count = 0;
        for segment in segments.by_ref() {
            *parts.get_mut(count)? = segment;
            count += 1;
        }
        let name = |text: &str| percent_decoded(text).filter(|name| !name.is_empty());
        Some(match parts.get(..count)? {
            ["api", "jobs"] => Self::Jobs,
            ["api", "jobs:batch"] => Self::JobBatch,
            ["api", "jobs", id] => Self::Job(name(id)?),
            ["api", "jobs", id, "wait"] => Self::JobWait(name(id)?),
            ["api", "jobs", id, "tree"] => Self::JobTree(name(id)?),
            ["api", "jobs", id, "policies"] => Self::JobPolicies(name(id)?),
            ["api", "jobs", id, "explain"] => Self::JobExplain(name(id)?),
            ["api", "jobs", id, "steps"] => Self::JobSteps(name(id)?),
            ["api", "jobs", id, "receipt"] => Self::JobReceipt(name(id)?),
            ["api", "jobs", id, "cancel"] => Self::JobCancel(name(id)?),
            ["api", "jobs:erase"] => Self::JobsErase,
            ["api", "jobs", id, "erase"] => Self::JobErase(name(id)?),
            ["api", "jobs", id, "retry"] => Self::JobRetry(name(id)?),
            ["api", "jobs", id, "fork"] => Self::JobFork(name(id)?),
            ["api", "jobs", id, "resolve"] => Self::JobResolve(name(id)?),
            ["api", "jobs", id, "messages"] => Self::JobMessages(name(id)?),
            ["api", "jobs", id, "events"] => Self::JobEvents(name(id)?),
            ["api", "jobs", id, "logs"] => Self::JobLogs(name(id)?),
            ["api", "chains"] => Self::Chains,
            ["api", "chains", "check"] => Self::ChainCheck,
            ["api", "chains", id] => Self::Chain(name(id)?),
            ["api", "chains", id, "cancel"] => Self::ChainCancel(name(id)?),
            ["api", "chains", id, "tree"] => Self::ChainTree(name(id)?),
            ["api", "questions"] => Self::Questions,
            ["api", "questions", id] => Self::Question(name(id)?),
            ["api", "questions", id, "answer"] => Self::QuestionAnswer(name(id)?),
            ["api", "events"] => Self::Events,
            ["ws"] => Self::Socket,
            ["api", "agents"] => Self::Agents,
            ["api", "agents", agent] => Self::Agent(name(agent)?),
            ["api", "agents", agent, "versions"] => Self::AgentVersions(name(agent)?),
            ["api", "agents", agent, "versions", version] => Self::AgentVersion(name(agent)?, name(version)?),
            ["api", "agents", agent, "versions", version, "deprecate"] => {
                Self::AgentDeprecate(name(agent)?, name(version)?)
            }
            ["api", "agents", agent, "versions", version, "delete"] => Self::AgentDelete(name(agent)?, name(version)?),
            ["api", "agents", agent, "versions", version, "resume"] => Self::AgentResume(name(agent)?, name(version)?),
            ["api", "agents", agent, "versions", version, "rollback"] => {
                Self::AgentRollback(name(agent)?, name(version)?)
            }
            ["api", "nodes"] => Self::Nodes,
            ["api", "nodes", node] => Self::Node(name(node)?),
            ["api", "nodes", node, "labels"] => Self::NodeLabels(name(node)?),
            ["api", "nodes", node, action] => Self::NodeAction(name(node)?, node_action(action)?),
            ["api", "objects"] => Self::ObjectKinds,
            ["api", "objects", kind] => Self::Objects(name(kind)?),
            ["api", "objects", kind, object] => Self::Object(name(kind)?, name(object)?),
            ["api", "secrets", secret] => Self::Secret(name(secret)?),
            ["api", "models", model, "login"] => Self::ModelLogin(name(model)?),
            ["api", "mcp-servers", server, "login"] => Self::ServerLogin(name(server)?),
            ["api", "triggers"] => Self::Triggers,
            ["api", "triggers", id] => Self::Trigger(name(id)?),
            ["api", "triggers", id, "fire"] => Self::TriggerFire(name(id)?),
            ["api", "triggers", id, "next"] => Self::TriggerNext(name(id)?),
            ["api", "triggers", id, "deliveries"] => Self::TriggerDeliveries(name(id)?),
            ["api", "triggers", id, "test"] => Self::TriggerTest(name(id)?),
            ["api", "triggers", id, "backfill"] => Self::TriggerBackfill(name(id)?),
            ["api", "hooks", id] => Self::Hook(name(id)?),
            ["api", "cluster"] => Self::Cluster,
            ["api", "cluster", "events"] => Self::ClusterEvents,
            ["api", "cluster", "members"] => Self::Members,
            ["api", "cluster", "members", member] => Self::Member(name(member)?),
            ["api", "cluster", "join-tokens"] => Self::JoinTokens,
            ["api", "cluster", "join-tokens", "revoke"] => Self::JoinTokenRevoke,
            ["api", "cluster", "transfer-leader"] => Self::TransferLeader,
            ["api", "health"] => Self::Health,
            ["api", "ready"] => Self::Ready,
            ["api", "version"] => Self::Version,
            ["api", "cluster", "snapshot"] => Self::Snapshot,
            ["api", "metrics"] => Self::Figures,
            ["api", "metrics", agent] => Self::FiguresOf(name(agent)?),
            ["metrics"] => Self::Metrics,
            ["api", "openapi.json"] => Self::OpenApi,
            [".well-known", "mcp", "server.json"] => Self::McpRegistry,
            [".well-known", "oauth-protected-resource", "mcp"]
            | [".well-known", "oauth-protected-resource", "mcp", ""] => Self::McpResource,
            [".well-known", "oauth-protected-resource", "agents", agent, "mcp"]
            | [".well-known", "oauth-protected-resource", "agents", agent, "mcp", ""] => {
                Self::McpResourceOf(name(agent)?)
            }
            ["api", "conversations"] => Self::Conversations,
            ["api", "conversations", conversation] => Self::Conversation(name(conversation)?),
            ["api", "traces"] => Self::Traces,
            ["api", "traces", trace] => Self::Trace(name(trace)?),
            ["api", "skills"] => Self::Skills,
            ["api", "skills", skill] => Self::Skill(name(skill)?),
            ["api", "skills", skill, "test"] => Self::SkillTest(name(skill)?),
            ["api", "security", "policy"] => Self::SecurityPolicy,
            ["api", "policies", "explain"] => Self::ExplainPolicies,
            ["api", "orchestrator"] => Self::Orchestrator,
            ["api", "audit"] => Self::Audit,
            ["api", "auth", "whoami"] => Self::Whoami,
            ["api", "auth", "tokens"] => Self::Tokens,
            ["errors", code] => Self::ErrorPage(name(code)?),
            _ => return None,
        })
    }

    /// The path as written in the table of operations.
    pub(crate) fn template(&self) -> &'static str {
        match self {
            Self::Jobs => "/api/jobs",
            Self::JobBatch => "/api/jobs:batch",
            Self::Job(_) => "/api/jobs/{id}",
            Self::JobWait(_) => "/api/jobs/{id}/wait",
            Self::JobTree(_) => "/api/jobs/{id}/tree",
            Self::JobPolicies(_) => "/api/jobs/{id}/policies",
            Self::JobExplain(_) => "/api/jobs/{id}/explain",
            Self::JobSteps(_) => "/api/jobs/{id}/steps",
            Self::JobReceipt(_) => "/api/jobs/{id}/receipt",
            Self::JobCancel(_) => "/api/jobs/{id}/cancel",
            Self::JobRetry(_) => "/api/jobs/{id}/retry",
            Self::JobErase(_) => "/api/jobs/{id}/erase",
            Self::JobsErase => "/api/jobs:erase",
            Self::JobFork(_) => "/api/jobs/{id}/fork",
            Self::JobResolve(_) => "/api/jobs/{id}/resolve",
            Self::JobMessages(_) => "/api/jobs/{id}/messages",
            Self::JobEvents(_) => "/api/jobs/{id}/events",
            Self::JobLogs(_) => "/api/jobs/{id}/logs",
            Self::Chains => "/api/chains",
            Self::Chain(_) => "/api/chains/{id}",
            Self::ChainCheck => "/api/chains/check",
            Self::ChainCancel(_) => "/api/chains/{id}/cancel",
            Self::ChainTree(_) => "/api/chains/{id}/tree",
            Self::Questions => "/api/questions",
            Self::Question(_) => "/api/questions/{id}",
            Self::QuestionAnswer(_) => "/api/questions/{id}/answer",
            Self::Events => "/api/events",
            Self::Socket => "/ws",
            Self::Agents => "/api/agents",
            Self::Agent(_) => "/api/agents/{name}",
            Self::AgentVersions(_) => "/api/agents/{name}/versions",
            Self::AgentVersion(..) => "/api/agents/{name}/versions/{version}",
            Self::AgentDeprecate(..) => "/api/agents/{name}/versions/{version}/deprecate",
            Self::AgentDelete(..) => "/api/agents/{name}/versions/{version}/delete",
            Self::AgentResume(..) => "/api/agents/{name}/versions/{version}/resume",
            Self::AgentRollback(..) => "/api/agents/{name}/versions/{version}/rollback",
            Self::Nodes => "/api/nodes",
            Self::Node(_) => "/api/nodes/{name}",
            Self::NodeAction(_, NodeAction::Drain { .. }) => "/api/nodes/{name}/drain",
            Self::NodeAction(_, NodeAction::Cordon) => "/api/nodes/{name}/cordon",
            Self::NodeAction(_, NodeAction::Uncordon) => "/api/nodes/{name}/uncordon",
            Self::NodeAction(_, NodeAction::Resume) => "/api/nodes/{name}/resume",
            Self::NodeAction(_, NodeAction::Remove) => "/api/nodes/{name}/remove",
            Self::NodeLabels(_) => "/api/nodes/{name}/labels",
            Self::ObjectKinds => "/api/objects",
            Self::Objects(_) => "/api/objects/{kind}",
            Self::Object(..) => "/api/objects/{kind}/{name}",
            Self::Secret(_) => "/api/secrets/{name}",
            Self::ModelLogin(_) => "/api/models/{name}/login",
            Self::ServerLogin(_) => "/api/mcp-servers/{name}/login",
            Self::Triggers => "/api/triggers",
            Self::Trigger(_) => "/api/triggers/{id}",
            Self::TriggerFire(_) => "/api/triggers/{id}/fire",
            Self::TriggerNext(_) => "/api/triggers/{id}/next",
            Self::TriggerDeliveries(_) => "/api/triggers/{id}/deliveries",
            Self::TriggerTest(_) => "/api/triggers/{id}/test",
            Self::TriggerBackfill(_) => "/api/triggers/{id}/backfill",
            Self::Hook(_) => "/api/hooks/{id}",
            Self::Cluster => "/api/cluster",
            Self::ClusterEvents => "/api/cluster/events",
            Self::Members => "/api/cluster/members",
            Self::Member(_) => "/api/cluster/members/{member}",
            Self::JoinTokens => "/api/cluster/join-tokens",
            Self::JoinTokenRevoke => "/api/cluster/join-tokens/revoke",
            Self::TransferLeader => "/api/cluster/transfer-leader",
            Self::Snapshot => "/api/cluster/snapshot",
            Self::Health => "/api/health",
            Self::Ready => "/api/ready",
            Self::Version => "/api/version",
            Self::Figures => "/api/metrics",
            Self::FiguresOf(_) => "/api/metrics/{agent}",
            Self::Metrics => "/metrics",
            Self::OpenApi => "/api/openapi.json",
            Self::McpRegistry => "/.well-known/mcp/server.json",
            Self::McpResource => "/.well-known/oauth-protected-resource/mcp",
            Self::McpResourceOf(_) => "/.well-known/oauth-protected-resource/agents/{name}/mcp",
            Self::Conversations => "/api/conversations",
            Self::Conversation(_) => "/api/conversations/{id}",
            Self::Traces => "/api/traces",
            Self::Trace(_) => "/api/traces/{id}",
            Self::Skills => "/api/skills",
            Self::Skill(_) => "/api/skills/{name}",
            Self::SkillTest(_) => "/api/skills/{name}/test",
            Self::SecurityPolicy => "/api/security/policy",
            Self::ExplainPolicies => "/api/policies/explain",
            Self::Orchestrator => "/api/orchestrator",
            Self::Audit => "/api/audit",
            Self::Whoami => "/api/auth/whoami",
            Self::Tokens => "/api/auth/tokens",
            Self::ErrorPage(_) => "/errors/{code}",
        }
    }

    /// True if the path does not exist in Atlas for Python. Its errors are always problem documents.
    pub(crate) fn is_ours(&self) -> bool {
        !matches!(
            self,
            Self::Jobs
                | Self::Job(_)
                | Self::JobEvents(_)
                | Self::JobWait(_)
                | Self::Chains
                | Self::Chain(_)
                | Self::Events
                | Self::Socket
                | Self::Health
                | Self::Agents
                | Self::Figures
                | Self::FiguresOf(_)
                | Self::Traces
                | Self::Trace(_)
                | Self::Skills
                | Self::Triggers
                | Self::Trigger(_)
                | Self::TriggerFire(_)
                | Self::Hook(_)
                | Self::SecurityPolicy
                | Self::Orchestrator
        )
    }
}

fn node_action(word: &str) -> Option<NodeAction> {
    Some(match word {
        // The deadline, if any, is in the body.
        "drain" => NodeAction::Drain { deadline: None },
        "cordon" => NodeAction::Cordon,
        "uncordon" => NodeAction::Uncordon,
        "resume" => NodeAction::Resume,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_name_what_they_name() {
        assert_eq!(Route::of("/api/jobs"), Some(Route::Jobs));
        assert_eq!(Route::of("/api/jobs/job%2D1"), Some(Route::Job("job-1".to_owned())));
        assert_eq!(Route::of("/api/jobs/a/wait"), Some(Route::JobWait("a".to_owned())));
        assert_eq!(Route::of("/ws"), Some(Route::Socket));
        let drain = NodeAction::Drain { deadline: None };
        assert_eq!(Route::of("/api/nodes/n1/drain"), Some(Route::NodeAction("n1".to_owned(), drain)));
    }

    #[test]
    fn hostile_paths_name_nothing() {
        for path in
            ["", "*", "/", "//", "/api", "/api/", "/api/jobs/", "/api/jobs//wait", "/api/jobs/%ff", "/a/b/c/d/e/f/g"]
        {
            assert_eq!(Route::of(path), None, "{path:?}");
        }
    }
}
