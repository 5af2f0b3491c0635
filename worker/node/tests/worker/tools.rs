//! Tests tools of the platform that Python agents call.

use atlas_types::{SpawnEnd, SpawnRule, ToolEnd};
use atlas_wire::session::{ToLeader, ToWorker};

use crate::support::{End, Stage, python, without_python};

/// Calls the tool in its input.
const CALLER: &str = r#"
from atlas.runtime.base import AgentBase

class Caller(AgentBase):
    async def execute(self, input_data):
        return {"result": await self.context.skill(input_data["tool"], input_data["input"])}
"#;

/// Runs a job, and answers what it asks for.
async fn run(stage: &mut Stage, requires: &str, input: &str) -> (Vec<String>, End) {
    let agent = stage.controller.publish_owned(&python(CALLER, &format!("  requires: {{{requires}}}\n")));
    let rule = SpawnRule { depth: 0, depth_max: 3, permitted: requires.contains("spawn_agents") };
    let mut assignment = stage.controller.assignment(&agent, input);
    assignment.spawn = Some(rule);
    stage.session.grant(&assignment).await;
    let mut asked = Vec::new();
    loop {
        match stage.session.next().await {
            ToLeader::CallTool { number, call } => {
                asked.push(format!("{} {}", call.tool, String::from_utf8_lossy(&call.arguments)));
                let end = match call.tool.as_str() {
                    "atlas.monitor.health" => ToolEnd::Refused("no".to_owned()),
                    _ => ToolEnd::Result(br#"{"agents": []}"#.as_slice().into()),
                };
                stage.session.say(ToWorker::ToolCalled { number, end }).await;
            }
            ToLeader::Spawn { number, spawn } => {
                asked.push(format!("spawn {} {}", spawn.agent, stage.controller.text(&spawn.input)));
                let error = format!("Pool error: Agent not found or no implementation: {}", spawn.agent);
                stage.session.say(ToWorker::Spawned { number, end: SpawnEnd::Failed(error) }).await;
            }
            ToLeader::Renew { number } => stage.session.say(ToWorker::RenewAck { number }).await,
            ToLeader::Report { number, report } => {
                let result = atlas_types::ReportResult::Applied;
                stage.session.say(ToWorker::ReportAck { number, result }).await;
                if let Some(end) = End::of(report.kind) {
                    return (asked, end);
                }
            }
            _ => {}
        }
    }
}

#[tokio::test]
async fn python_agents_call_the_tools_that_their_contract_names() {
    if without_python() {
        return;
    }
    let mut stage = Stage::set().await;
    let search = r#"{"tool": "atlas.registry.search", "input": {"capabilities": ["x"]}}"#;
    for requires in ["skills: [atlas.registry.search]", "platform_tools: true"] {
        let (asked, end) = run(&mut stage, requires, search).await;
        assert_eq!(asked, [r#"atlas.registry.search {"capabilities":["x"]}"#]);
        assert_eq!(end.output(&stage.controller), r#"{"result":{"agents":[]}}"#);
    }
    let (asked, end) = run(&mut stage, "skills: [atlas.registry.list]", search).await;
    let error = "Skill 'atlas.registry.search' not available — declare it in requires.skills";
    assert_eq!((asked.len(), end.error().as_str()), (0, error));
    let health = r#"{"tool": "atlas.monitor.health", "input": {}}"#;
    let (_, end) = run(&mut stage, "platform_tools: true", health).await;
    assert_eq!(end.error(), "no");
    stage.node.shutdown().await;
}

#[tokio::test]
async fn a_run_of_an_agent_is_a_child_and_tells_of_failures_as_a_value() {
    if without_python() {
        return;
    }
    let mut stage = Stage::set().await;
    let run_ghost = r#"{"tool": "atlas.exec.run", "input": {"agent": "ghost", "input": {"n": 1}}}"#;
    let (asked, end) = run(&mut stage, "platform_tools: true, spawn_agents: true", run_ghost).await;
    assert_eq!(asked, [r#"spawn ghost {"n":1}"#]);
    let output = r#"{"result":{"success":false,"data":null,"error":"Agent not found: ghost","agent_name":"ghost"}}"#;
    assert_eq!(end.output(&stage.controller), output);
    let (asked, end) = run(&mut stage, "platform_tools: true", run_ghost).await;
    let error = r#""error":"Agent does not have spawn_agents permission""#;
    assert!(asked.is_empty() && end.output(&stage.controller).contains(error), "{end:?}");
    stage.node.shutdown().await;
}
