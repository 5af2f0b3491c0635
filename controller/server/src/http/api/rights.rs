//! The right that each operation needs. While authentication is off, every caller has all of them.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use atlas_access::Right;

/// Each right, and the operations that need it. A test compares them with the table of operations.
const RIGHTS: &[(Right, &[&str])] = &[
    (
        Right::Public,
        &[
            "health",
            "ready",
            "version",
            "openApi",
            "errorPage",
            "securityPolicy",
            "mcpRegistry",
            "mcpResource",
            "mcpResourceOfAgent",
            "callHook",
            "whoami",
            "listObjectKinds",
        ],
    ),
    (
        Right::JobsRead,
        &[
            "listJobs",
            "getJob",
            "waitForJob",
            "getJobTree",
            "getJobPolicies",
            "explainJob",
            "listSteps",
            "getReceipt",
            "followJob",
            "jobLogs",
            "listTraces",
            "getTrace",
            "followAll",
            "followAllAtWs",
            "checkChain",
            "listChainRuns",
            "getChainRun",
            "getChainTree",
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
            "eraseJob",
            "eraseJobs",
            "forkJob",
            "resolveJob",
            "sendMessage",
            "cancelChainRun",
            "deleteConversation",
        ],
    ),
    (Right::QuestionsAnswer, &["answerQuestion"]),
    (
        Right::AgentsRead,
        &["listAgents", "getAgent", "listVersions", "getVersion", "skills", "getSkill", "explainPolicies"],
    ),
    (
        Right::AgentsPublish,
        &[
            "registerAgent",
            "retireAgent",
            "deprecateAgent",
            "resumeAgent",
            "rollBackAgent",
            "deleteAgent",
            "deploySkill",
            "removeSkill",
        ],
    ),
    (Right::NodesRead, &["listNodes", "getNode"]),
    (Right::NodesOperate, &["removeNode", "drainNode", "cordonNode", "uncordonNode", "resumeNode", "labelNode"]),
    (
        Right::ObjectsRead,
        &["listObjects", "getObject", "listTriggers", "getTrigger", "nextFirings", "triggerDeliveries", "orchestrator"],
    ),
    (
        Right::ObjectsWrite,
        &[
            "putObject",
            "deleteObject",
            "setSecret",
            "logInToModel",
            "logOutOfModel",
            "logInToMcpServer",
            "logOutOfMcpServer",
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
    (Right::AccessManage, &["createToken"]),
    (Right::AuditRead, &["readAudit"]),
];

/// The operations with which callers that may submit jobs change what they began themselves. The service functions know whose it is.
pub(super) const OF_OWNER: &[&str] =
    &["cancelJob", "deleteJob", "retryJob", "forkJob", "sendMessage", "cancelChainRun", "deleteConversation"];

/// The table by operation.
static BY_OPERATION: LazyLock<BTreeMap<&str, Right>> = LazyLock::new(|| {
    RIGHTS.iter().flat_map(|(right, operations)| operations.iter().map(|operation| (*operation, *right))).collect()
});

/// The right that an operation needs; none if it has no row.
pub(super) fn of(operation: &str) -> Option<Right> {
    BY_OPERATION.get(operation).copied()
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
        wrong.extend(
            OF_OWNER.iter().filter(|id| of(id) != Some(Right::JobsControl)).map(|id| format!("{id} has no owner")),
        );
        assert_eq!(wrong, Vec::<String>::new());
    }
}
