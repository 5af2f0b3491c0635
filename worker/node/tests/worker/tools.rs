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
                    "atlas.tool.lookup" => ToolEnd::Result(lookup(&call.arguments).as_bytes().into()),
                    _ => ToolEnd::Result(br#"{"agents": []}"#.as_slice().into()),
                };
                stage.session.say(ToWorker::ToolCalled { number, end }).await;
            }
            ToLeader::Spawn { number, spawn } => {
                let what = if spawn.skill { "skill" } else { "spawn" };
                asked.push(format!("{what} {} {}", spawn.agent, stage.controller.text(&spawn.input)));
                let end = match spawn.agent.as_str() {
                    "words" => SpawnEnd::Completed(stage.controller.payload(r#"{"words":2}"#)),
                    "broken" => SpawnEnd::Failed("no text".to_owned()),
                    other => SpawnEnd::Failed(format!("Pool error: Agent not found or no implementation: {other}")),
                };
                stage.session.say(ToWorker::Spawned { number, end }).await;
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

fn lookup(arguments: &[u8]) -> &'static str {
    match arguments {
        br#"{"name":"words@^1.0.0"}"# => r#"{"source":"skill","name":"words"}"#,
        br#"{"name":"broken"}"# => r#"{"source":"skill","name":"broken"}"#,
        br#"{"name":"echo"}"# => r#"{"source":"agent","name":"echo"}"#,
        br#"{"name":"none"}"# => r#"{"error":"Skill 'none' not found in registry","registry":false}"#,
        _ => r#"{"error":"Skill 'ghost' not found in registry","registry":true}"#,
    }
}

#[tokio::test]
async fn python_agents_call_skills_without_the_permission_to_spawn() {
    if without_python() {
        return;
    }
    let mut stage = Stage::set().await;
    let words = r#"{"tool": "words", "input": {"text": "a b"}}"#;
    let (asked, end) = run(&mut stage, "skills: ['words@^1.0.0']", words).await;
    assert_eq!(asked, [r#"atlas.tool.lookup {"name":"words@^1.0.0"}"#, r#"skill words {"text":"a b"}"#]);
    assert_eq!(end.output(&stage.controller), r#"{"result":{"words":2}}"#);
    let (_, end) = run(&mut stage, "skills: [broken]", r#"{"tool": "broken", "input": {}}"#).await;
    assert_eq!(end.error(), "no text");
    for (skill, error) in [
        ("none", "Agent requires skills but no SkillResolver configured"),
        ("ghost", "Skill resolution failed: Skill 'ghost' not found in registry"),
        ("echo", "Skill resolution failed: Skill 'echo' not found in registry"),
    ] {
        let (_, end) = run(&mut stage, &format!("skills: [{skill}]"), words).await;
        assert_eq!(end.error(), error);
    }
    stage.node.shutdown().await;
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
