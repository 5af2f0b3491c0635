//! Paths.

use atlas_service::NodeAction;

use super::query::percent_decoded;

/// What a path names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Route {
    Jobs,
    Job(String),
    JobWait(String),
    JobCancel(String),
    JobRetry(String),
    JobResolve(String),
    JobEvents(String),
    JobLogs(String),
    Events,
    Agents,
    Agent(String),
    AgentVersion(String, String),
    Nodes,
    Node(String),
    NodeAction(String, NodeAction),
    Cluster,
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
}

impl Route {
    /// Reads a path.
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
            ["api", "jobs", id] => Self::Job(name(id)?),
            ["api", "jobs", id, "wait"] => Self::JobWait(name(id)?),
            ["api", "jobs", id, "cancel"] => Self::JobCancel(name(id)?),
            ["api", "jobs", id, "retry"] => Self::JobRetry(name(id)?),
            ["api", "jobs", id, "resolve"] => Self::JobResolve(name(id)?),
            ["api", "jobs", id, "events"] => Self::JobEvents(name(id)?),
            ["api", "jobs", id, "logs"] => Self::JobLogs(name(id)?),
            ["api", "events"] | ["ws"] => Self::Events,
            ["api", "agents"] => Self::Agents,
            ["api", "agents", agent] => Self::Agent(name(agent)?),
            ["api", "agents", agent, "versions", version] => Self::AgentVersion(name(agent)?, name(version)?),
            ["api", "nodes"] => Self::Nodes,
            ["api", "nodes", node] => Self::Node(name(node)?),
            ["api", "nodes", node, action] => Self::NodeAction(name(node)?, node_action(action)?),
            ["api", "cluster"] => Self::Cluster,
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
            _ => return None,
        })
    }

    /// The methods that the path has.
    pub(crate) fn methods(&self) -> &'static str {
        match self {
            Self::Jobs | Self::Agents => "GET, POST",
            Self::Job(_) | Self::Node(_) => "GET, DELETE",
            Self::JobCancel(_) | Self::JobRetry(_) | Self::JobResolve(_) | Self::NodeAction(..) => "POST",
            Self::JoinTokens | Self::JoinTokenRevoke | Self::TransferLeader => "POST",
            Self::AgentVersion(..) | Self::Member(_) => "DELETE",
            _ => "GET",
        }
    }

    /// Whether the path is ours rather than the source system's: then an error is a problem document unasked.
    pub(crate) fn is_ours(&self) -> bool {
        !matches!(
            self,
            Self::Jobs
                | Self::Job(_)
                | Self::JobEvents(_)
                | Self::JobWait(_)
                | Self::Events
                | Self::Health
                | Self::Agents
                | Self::Figures
                | Self::FiguresOf(_)
        )
    }
}

fn node_action(word: &str) -> Option<NodeAction> {
    Some(match word {
        "drain" => NodeAction::Drain,
        "cordon" => NodeAction::Cordon,
        "uncordon" => NodeAction::Uncordon,
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
        assert_eq!(Route::of("/ws"), Some(Route::Events));
        assert_eq!(Route::of("/api/nodes/n1/drain"), Some(Route::NodeAction("n1".to_owned(), NodeAction::Drain)));
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
