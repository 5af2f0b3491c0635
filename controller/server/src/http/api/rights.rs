//! The right that each operation needs. Authentication is off, so every caller has all of them; the table says what a role will hold.

/// What a caller must be allowed to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Right {
    /// Needs no right: probes, the version, descriptions of the interface.
    Public,
    JobsRead,
    JobsSubmit,
    /// Answer the questions of jobs.
    QuestionsAnswer,
    /// Cancel, retry and resolve jobs of others, and send them messages.
    JobsControl,
    AgentsRead,
    AgentsPublish,
    NodesRead,
    NodesOperate,
    ObjectsRead,
    ObjectsWrite,
    ClusterRead,
    ClusterOperate,
    MetricsRead,
}

impl Right {
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Public => "public",
            Self::JobsRead => "jobs.read",
            Self::JobsSubmit => "jobs.submit",
            Self::QuestionsAnswer => "questions.answer",
            Self::JobsControl => "jobs.control",
            Self::AgentsRead => "agents.read",
            Self::AgentsPublish => "agents.publish",
            Self::NodesRead => "nodes.read",
            Self::NodesOperate => "nodes.operate",
            Self::ObjectsRead => "objects.read",
            Self::ObjectsWrite => "objects.write",
            Self::ClusterRead => "cluster.read",
            Self::ClusterOperate => "cluster.operate",
            Self::MetricsRead => "metrics.read",
        }
    }
}

/// Each right, and the operations that need it. A test compares them with the table of operations.
const RIGHTS: &[(Right, &[&str])] = &[
    (
        Right::Public,
        &["health", "ready", "version", "openApi", "errorPage", "securityPolicy", "mcpRegistry", "callHook"],
    ),
    (
        Right::JobsRead,
        &[
            "listJobs",
            "getJob",
            "waitForJob",
            "getJobTree",
            "listSteps",
            "followJob",
            "jobLogs",
            "listTraces",
            "getTrace",
            "followAll",
            "followAllAtWs",
            "checkChain",
            "listChainRuns",
            "getChainRun",
            "listConversations",
            "getConversation",
            "listQuestions",
            "getQuestion",
        ],
    ),
    (Right::JobsSubmit, &["submitJob", "submitJobs", "startChain", "fireTrigger", "backfillTrigger", "testSkill"]),
    (
        Right::JobsControl,
        &[
            "cancelJob",
            "deleteJob",
            "retryJob",
            "forkJob",
            "resolveJob",
            "sendMessage",
            "cancelChainRun",
            "deleteConversation",
        ],
    ),
    (Right::QuestionsAnswer, &["answerQuestion"]),
    (Right::AgentsRead, &["listAgents", "getAgent", "listVersions", "getVersion", "skills", "getSkill"]),
    (
        Right::AgentsPublish,
        &["registerAgent", "retireAgent", "deprecateAgent", "deleteAgent", "deploySkill", "removeSkill"],
    ),
    (Right::NodesRead, &["listNodes", "getNode"]),
    (Right::NodesOperate, &["removeNode", "drainNode", "cordonNode", "uncordonNode", "labelNode"]),
    (
        Right::ObjectsRead,
        &["listObjectKinds", "listObjects", "getObject", "listTriggers", "getTrigger", "nextFirings", "orchestrator"],
    ),
    (
        Right::ObjectsWrite,
        &[
            "putObject",
            "deleteObject",
            "setSecret",
            "createTrigger",
            "changeTrigger",
            "deleteTrigger",
            "testTrigger",
            "selectOrchestrator",
        ],
    ),
    (Right::ClusterRead, &["cluster", "listMembers", "followEvents"]),
    (Right::ClusterOperate, &["removeMember", "createJoinToken", "revokeJoinToken", "transferLeader", "snapshot"]),
    (Right::MetricsRead, &["figures", "figuresOfAgent", "metrics"]),
];

/// The right that an operation needs; none if it has no row.
pub(super) fn of(operation: &str) -> Option<Right> {
    RIGHTS.iter().find(|(_, operations)| operations.contains(&operation)).map(|(right, _)| *right)
}

#[cfg(test)]
mod tests {
    use super::super::operations;
    use super::*;

    #[test]
    fn every_operation_needs_one_right() {
        let listed: Vec<&str> = RIGHTS.iter().flat_map(|(_, operations)| operations.iter().copied()).collect();
        let mut wrong = Vec::new();
        for operation in operations() {
            let rows = listed.iter().filter(|id| **id == operation.id).count();
            if rows != 1 {
                wrong.push(format!("{} has {rows} rows", operation.id));
            }
        }
        let known = |id: &str| operations().any(|operation| operation.id == id);
        wrong.extend(listed.iter().filter(|id| !known(id)).map(|id| format!("{id} is no operation")));
        assert_eq!(wrong, Vec::<String>::new());
    }
}
