//! Tests jobs that Python agents spawn: they are sent until they are answered, across sessions.

use std::time::Duration;

use atlas_types::{Assignment, Micros, Spawn, SpawnEnd, SpawnRule, Spawner};
use atlas_wire::session::{ToLeader, ToWorker};

use crate::support::{End, Session, Stage, python, without_python};

/// Spawns the job given in its input and returns that job's result.
const PARENT: &str = r#"
import asyncio
from atlas.runtime.base import AgentBase

class Parent(AgentBase):
    async def execute(self, input_data):
        spawn = self.context.spawn("child", input_data["to"], priority=2, timeout=30.0)
        if "patience" in input_data:
            try:
                await asyncio.wait_for(spawn, input_data["patience"])
            except asyncio.TimeoutError:
                return {"gave": "up", "depth": self.context.depth}
        child = await spawn
        return {"success": child.success, "data": child.data, "error": child.error}
"#;

impl Stage {
    /// Grants a parent with this input and reads its spawn request.
    async fn parent(&mut self, input: &str) -> (Assignment, u64, Spawn) {
        let agent = self.controller.publish_owned(&python(PARENT, "  requires: { spawn_agents: true }\n"));
        let rule = SpawnRule { depth: 1, depth_max: 3, permitted: true };
        let assignment = Assignment { spawn: Some(rule), ..self.controller.assignment(&agent, input) };
        self.session.grant(&assignment).await;
        let (number, spawn) = spawned(&mut self.session).await;
        (assignment, number, spawn)
    }

    async fn answer(&mut self, number: u64, end: SpawnEnd) -> End {
        self.session.say(ToWorker::Spawned { number, end }).await;
        self.session.end().await.1
    }
}

async fn spawned(session: &mut Session) -> (u64, Spawn) {
    loop {
        match session.next().await {
            ToLeader::Spawn { number, spawn } => return (number, *spawn),
            ToLeader::Renew { number } => session.say(ToWorker::RenewAck { number }).await,
            _ => {}
        }
    }
}

#[tokio::test]
async fn a_child_is_asked_for_and_its_end_told() {
    if without_python() {
        return;
    }
    let mut stage = Stage::set().await;
    let (assignment, number, spawn) = stage.parent(r#"{"to": {"n": 1}}"#).await;
    let Spawn { spawner, agent, skill: _, input, priority, timeout, again, step } = spawn;
    assert!(!again && step.is_none());
    assert_eq!(spawner, Spawner { job: assignment.job, token: assignment.token });
    assert_eq!((agent.as_str(), stage.controller.text(&input), priority), ("child", r#"{"n":1}"#.to_owned(), 2));
    assert!(timeout > Micros::from_secs(20) && timeout <= Micros::from_secs(30), "{timeout:?}");
    let output = stage.controller.payload(r#"{"m":2}"#);
    let end = stage.answer(number, SpawnEnd::Completed(output)).await;
    assert_eq!(end.output(&stage.controller), r#"{"success":true,"data":{"m":2},"error":""}"#);

    let (_, number, _) = stage.parent(r#"{"to": {}}"#).await;
    let end = stage.answer(number, SpawnEnd::Failed("kaput".to_owned())).await;
    assert_eq!(end.output(&stage.controller), r#"{"success":false,"data":{},"error":"kaput"}"#);

    let (_, number, _) = stage.parent(r#"{"to": {}}"#).await;
    let end = stage.answer(number, SpawnEnd::Refused("Queue is full (1 jobs).".to_owned())).await;
    assert_eq!(end.error(), "Queue is full (1 jobs).");
    stage.node.shutdown().await;
}

#[tokio::test]
async fn what_was_not_answered_is_said_again_on_the_next_session() {
    if without_python() {
        return;
    }
    let mut stage = Stage::set().await;
    let (assignment, number, first) = stage.parent(r#"{"to": {"n": 1}}"#).await;
    let Stage { mut controller, node, session } = stage;
    drop(session);
    let session = controller.welcomed(vec![assignment]).await;
    let mut stage = Stage { controller, node, session };
    let (again, same) = spawned(&mut stage.session).await;
    assert_eq!((again, &same.agent, &same.input), (number, &first.agent, &first.input));
    assert!(same.timeout <= first.timeout && same.again);
    let end = stage.answer(number, SpawnEnd::Failed("late".to_owned())).await;
    assert_eq!(end.output(&stage.controller), r#"{"success":false,"data":{},"error":"late"}"#);
    stage.node.shutdown().await;
}

#[tokio::test]
async fn an_agent_that_gives_up_says_so() {
    if without_python() {
        return;
    }
    let mut stage = Stage::set().await;
    let (_, number, _) = stage.parent(r#"{"to": {}, "patience": 0.1}"#).await;
    let (again, spawn) = spawned(&mut stage.session).await;
    assert_eq!((again, spawn.timeout.as_duration()), (number, Duration::ZERO));
    let end = stage.session.end().await.1;
    assert_eq!(end.output(&stage.controller), r#"{"gave":"up","depth":1}"#);
    stage.node.shutdown().await;
}

#[tokio::test]
async fn large_inputs_and_outputs_travel_beside_the_stream() {
    if without_python() {
        return;
    }
    let mut stage = Stage::set().await;
    let text = "x".repeat(100_000);
    let (_, number, spawn) = stage.parent(&format!(r#"{{"to": {{"text": "{text}"}}}}"#)).await;
    let input = stage.controller.text(&spawn.input);
    assert_eq!(input, format!(r#"{{"text":"{text}"}}"#));
    let output = stage.controller.payload(&input);
    let end = stage.answer(number, SpawnEnd::Completed(output)).await;
    assert!(end.output(&stage.controller).contains(&text));
    stage.node.shutdown().await;
}

#[tokio::test]
async fn without_permission_nothing_is_asked() {
    if without_python() {
        return;
    }
    let mut stage = Stage::set().await;
    let agent = stage.controller.publish_owned(&python(PARENT, ""));
    let error = async |session: &mut Session, assignment: &Assignment| session.run(assignment).await.error();
    // An assignment of an older controller contains no spawn rule.
    let rules = [None, Some(SpawnRule { depth: 0, depth_max: 3, permitted: false })];
    for spawn in rules {
        let assignment = Assignment { spawn, ..stage.controller.assignment(&agent, r#"{"to": {}}"#) };
        assert_eq!(error(&mut stage.session, &assignment).await, "Agent does not have spawn_agents permission");
    }
    let spawn = Some(SpawnRule { depth: 3, depth_max: 3, permitted: true });
    let assignment = Assignment { spawn, ..stage.controller.assignment(&agent, r#"{"to": {}}"#) };
    assert_eq!(error(&mut stage.session, &assignment).await, "Max spawn depth (3) exceeded at depth 3");
    stage.node.shutdown().await;
}
