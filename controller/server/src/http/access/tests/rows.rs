//! Who may use what, in one list: a row that changes, and a tool that stands for another operation, change it.
//!
//! What the other tests expect comes from the same rows, so that they find a door that does not keep to them. This one tells that a row changed:
//! renew it with `UPDATE_EXPECT=1`, and read the difference as what others may do from now on.

use expect_test::expect;

use super::matrix::{Door, cases};

#[test]
fn who_may_use_what_is_agreed() {
    let mut shown = String::new();
    for door in [Door::Http, Door::Mcp, Door::Compatible] {
        for case in cases(door) {
            let (right, ownership) = match case.row {
                Some(row) => (row.right.as_str(), format!("{:?}", row.ownership)),
                None => ("public", "no operation".to_owned()),
            };
            shown.push_str(&format!("{door:?} {} {right} {ownership}\n", case.verb));
        }
    }
    expect![[r#"
        Http submitJob jobs.submit Any
        Http submitJobs jobs.submit Any
        Http listJobs jobs.read Any
        Http getJob jobs.read Any
        Http deleteJob jobs.control OwnOrControl
        Http waitForJob jobs.read Any
        Http getJobTree jobs.read Any
        Http getJobPolicies jobs.read Any
        Http explainJob jobs.read Any
        Http listSteps jobs.read Any
        Http getReceipt jobs.read Any
        Http cancelJob jobs.control OwnOrControl
        Http retryJob jobs.control OwnOrControl
        Http eraseJob jobs.control Any
        Http eraseJobs jobs.control Any
        Http forkJob jobs.control OwnOrControl
        Http resolveJob jobs.control Any
        Http sendMessage jobs.control OwnOrControl
        Http listQuestions jobs.read Any
        Http getQuestion jobs.read Any
        Http answerQuestion questions.answer Any
        Http followJob jobs.read Any
        Http jobLogs jobs.read Any
        Http listTraces jobs.read Any
        Http getTrace jobs.read Any
        Http followAll jobs.read Any
        Http followAllAtWs jobs.read Any
        Http followEvents cluster.read Any
        Http startChain jobs.submit Any
        Http checkChain jobs.read Any
        Http listChainRuns jobs.read Any
        Http getChainRun jobs.read Any
        Http getChainTree jobs.read Any
        Http cancelChainRun jobs.control OwnOrControl
        Http listAgents agents.read Any
        Http registerAgent agents.publish Any
        Http getAgent agents.read Any
        Http listVersions agents.read Any
        Http getVersion agents.read Any
        Http resumeAgent agents.publish Any
        Http rollBackAgent agents.publish Any
        Http retireAgent agents.publish Any
        Http deleteAgent agents.publish Any
        Http deprecateAgent agents.publish Any
        Http listNodes nodes.read Any
        Http getNode nodes.read Any
        Http removeNode nodes.operate Any
        Http drainNode nodes.operate Any
        Http cordonNode nodes.operate Any
        Http uncordonNode nodes.operate Any
        Http resumeNode nodes.operate Any
        Http labelNode nodes.operate Any
        Http listObjectKinds public Any
        Http listObjects objects.read Any
        Http getObject objects.read Any
        Http putObject objects.write Any
        Http deleteObject objects.write Any
        Http setSecret objects.write Any
        Http logInToModel objects.write Any
        Http logOutOfModel objects.write Any
        Http logInToMcpServer objects.write Any
        Http logOutOfMcpServer objects.write Any
        Http orchestrator objects.read Any
        Http selectOrchestrator objects.write Any
        Http explainPolicies agents.read Any
        Http createTrigger objects.write Any
        Http listTriggers objects.read Any
        Http getTrigger objects.read Any
        Http changeTrigger objects.write Any
        Http deleteTrigger objects.write Any
        Http fireTrigger jobs.submit Any
        Http nextFirings objects.read Any
        Http triggerDeliveries objects.read Any
        Http testTrigger objects.write Any
        Http backfillTrigger jobs.submit Any
        Http callHook public Any
        Http health public Any
        Http ready public Any
        Http version public Any
        Http figures metrics.read Any
        Http figuresOfAgent metrics.read Any
        Http metrics metrics.read Any
        Http errorPage public Any
        Http openApi public Any
        Http skills agents.read Any
        Http deploySkill agents.publish Any
        Http getSkill agents.read Any
        Http testSkill jobs.submit Any
        Http removeSkill agents.publish Any
        Http listConversations jobs.read Any
        Http getConversation jobs.read Any
        Http branchConversation jobs.submit Any
        Http deleteConversation jobs.control OwnOrControl
        Http mcpRegistry public Any
        Http getMemory objects.read Any
        Http writeMemory objects.write Any
        Http clearMemory objects.write Any
        Http listMemoryEntries objects.read Any
        Http searchKnowledge objects.read Any
        Http listKnowledge objects.read Any
        Http storeKnowledge objects.write Any
        Http getKnowledge objects.read Any
        Http changeKnowledge objects.write Any
        Http deleteKnowledge objects.write Any
        Http listKnowledgeDomains objects.read Any
        Http getKnowledgeAcl objects.read Any
        Http listBases objects.read Any
        Http createBase objects.write Any
        Http getBase objects.read Any
        Http changeBase objects.write Any
        Http deleteBase objects.write Any
        Http rebuildBase objects.write Any
        Http collectBase objects.write Any
        Http listDocuments objects.read Any
        Http addDocuments objects.write Any
        Http removeDocuments objects.write Any
        Http searchDocuments objects.read Any
        Http listUsableModels jobs.submit Any
        Http getUsableModel jobs.submit Any
        Http getUsableModelOf jobs.submit Any
        Http createChatCompletion jobs.submit Any
        Http createCompletion jobs.submit Any
        Http createEmbeddings jobs.submit Any
        Http createResponse jobs.submit Any
        Http getResponse jobs.submit Any
        Http listInputItems jobs.submit Any
        Http cancelResponse jobs.control OwnOrControl
        Http deleteResponse jobs.control OwnOrControl
        Http securityPolicy public Any
        Http cluster cluster.read Any
        Http listMembers cluster.read Any
        Http removeMember cluster.operate Any
        Http createJoinToken cluster.operate Any
        Http revokeJoinToken cluster.operate Any
        Http transferLeader cluster.operate Any
        Http snapshot cluster.operate Any
        Http whoami public Any
        Http mcpResource public Any
        Http mcpResourceOfAgent public Any
        Http createToken access.manage Any
        Http readAudit audit.read Any
        Mcp agents_search agents.read Any
        Mcp agent_describe agents.read Any
        Mcp agent_run jobs.submit Any
        Mcp job_get jobs.read Any
        Mcp job_wait jobs.read Any
        Mcp job_answer questions.answer Any
        Mcp job_cancel jobs.control OwnOrControl
        Mcp chain_run jobs.submit Any
        Mcp docs_search public no operation
        Mcp search_documents objects.read Any
        Mcp tools/list agents.read Any
        Mcp subscriptions/listen agents.read Any
        Mcp resources/read jobs.read Any
        Mcp tasks/get jobs.read Any
        Mcp tasks/update questions.answer Any
        Mcp tasks/cancel jobs.control OwnOrControl
        Compatible atlas.registry.list agents.read Any
        Compatible atlas.registry.describe agents.read Any
        Compatible atlas.registry.search agents.read Any
        Compatible atlas.exec.run jobs.submit Any
        Compatible atlas.exec.spawn jobs.submit Any
        Compatible atlas.exec.status jobs.read Any
        Compatible atlas.exec.cancel jobs.control OwnOrControl
        Compatible atlas.queue.inspect jobs.read Any
        Compatible atlas.monitor.health public no operation
        Compatible atlas.monitor.metrics metrics.read Any
        Compatible atlas.monitor.trace jobs.read Any
        Compatible atlas.monitor.traces jobs.read Any
        Compatible tools/list agents.read Any
    "#]]
    .assert_eq(&shown);
}
