//! Programs that wait: their jobs are parked, and their processes stay.

use std::time::Duration;

use atlas_types::{StepKind, Wait};

use super::scene::{Scene, agent};
use crate::support::without_python;

/// Says in which process each attempt ran, and how many jobs that process had before.
const SLEEPS: &str = r#"
    async def on_startup(self):
        self.jobs = 0

    async def execute(self, input_data):
        self.jobs += 1
        try:
            await self.context.step("before", counted, input_data["file"], 1)
            await self.context.sleep(3600)
            await self.context.step("after", counted, input_data["file"], 2)
        finally:
            wrote(input_data["file"], f"attempt {self.jobs} ends")
        return {"jobs": self.jobs}
"#;

#[tokio::test]
async fn a_program_that_sleeps_parks_and_its_process_serves_the_next_attempt() {
    if without_python() {
        return;
    }
    let mut scene = Scene::set(&agent(SLEEPS, "")).await;
    let first = scene.attempt(1);
    scene.session.grant(&first).await;
    assert!(scene.record_until(u64::MAX).await.is_none(), "it parks");
    let [Wait::Time { at }] = scene.parked[0].waits[..] else { panic!("{:?}", scene.parked) };
    scene.slept_until = at;
    let second = scene.attempt(2);
    let end = scene.run(&second).await;
    assert_eq!(end.output(&scene.controller), r#"{"jobs":2}"#);
    assert!(end.usage().warm, "the process stayed");
    assert_eq!(scene.lines(), "1\nattempt 1 ends\n2\nattempt 2 ends\n");
    let kinds = [StepKind::Start, StepKind::Code, StepKind::Effect, StepKind::Sleep, StepKind::Code];
    assert_eq!(scene.kinds(), kinds);
    scene.shutdown().await;
}

/// Longer than the time after which jobs park, or it would begin anew whenever its job goes on.
#[tokio::test]
async fn a_short_wait_that_parks_ends_at_the_same_time_in_each_attempt() {
    if without_python() {
        return;
    }
    for call in ["sleep(6)", "receive(\"never\", timeout=6)"] {
        let code =
            format!("\n    async def execute(self, d):\n        await self.context.{call}\n        return {{}}\n");
        let mut scene = Scene::set(&agent(&code, "")).await;
        for attempt in 1..=2 {
            let next = scene.attempt(attempt);
            scene.session.grant(&next).await;
            assert!(scene.record_until(u64::MAX).await.is_none(), "it parks");
        }
        assert_eq!(scene.parked[0].waits, scene.parked[1].waits, "{call}");
        let time = scene.parked[0].waits.iter().find_map(|wait| match wait {
            Wait::Time { at } => Some(*at),
            _ => None,
        });
        scene.slept_until = time.expect("a time");
        scene.parks = false;
        let last = scene.attempt(3);
        assert_eq!(scene.run(&last).await.output(&scene.controller), "{}");
        scene.shutdown().await;
    }
}

#[tokio::test]
async fn a_program_that_does_not_leave_is_killed() {
    if without_python() {
        return;
    }
    let code = r#"
    async def execute(self, input_data):
        try:
            await self.context.sleep(3600)
        finally:
            time.sleep(600)
"#;
    let mut scene = Scene::set(&agent(code, "")).await;
    let first = scene.attempt(1);
    scene.session.grant(&first).await;
    assert!(scene.record_until(u64::MAX).await.is_none());
    let [Wait::Time { at }] = scene.parked[0].waits[..] else { panic!("{:?}", scene.parked) };
    scene.slept_until = at;
    scene.publish(&agent(
        "\n    async def execute(self, d):\n        await self.context.sleep(3600)\n        return {}\n",
        "",
    ));
    let second = scene.attempt(2);
    assert_eq!(scene.run(&second).await.output(&scene.controller), "{}");
    scene.shutdown().await;
}

#[tokio::test]
async fn a_job_whose_function_runs_does_not_park() {
    if without_python() {
        return;
    }
    let code = r#"
    async def execute(self, input_data):
        nap = asyncio.ensure_future(self.context.sleep(3600))
        await self.context.step("works", slow, input_data["file"], "works", 4)
        nap.cancel()
        return {}
"#;
    let (ttl, park_after) = (Duration::from_secs(10), Duration::from_secs(3));
    let mut scene = Scene::set_with(ttl, park_after, &agent(code, "")).await;
    let first = scene.attempt(1);
    assert_eq!(scene.run(&first).await.output(&scene.controller), "{}");
    assert!(scene.parked.is_empty(), "{:?}", scene.parked);
    scene.shutdown().await;
}

#[tokio::test]
async fn jobs_questions_and_tools_are_waited_for() {
    if without_python() {
        return;
    }
    let code = r#"
    async def execute(self, input_data):
        child = await self.context.spawn("echo", {"n": 1})
        answer = await self.context.ask("Really?", kind="confirm")
        tools = await self.context.call_tool("atlas.registry.list", {})
        return {"child": child.data, "answer": answer, "tools": tools}
"#;
    let more = "  requires: {spawn_agents: true, platform_tools: true}\n";
    let mut scene = Scene::set(&agent(code, more)).await;
    let rule = atlas_types::SpawnRule { depth: 0, depth_max: 3, permitted: true };
    scene.parks = false;
    scene.answers.extend([r#"{"answer":true}"#, r#"{"agents":[]}"#]);
    let first = atlas_types::Assignment { spawn: Some(rule), ..scene.attempt(1) };
    let output = scene.run(&first).await.output(&scene.controller);
    assert_eq!(output, r#"{"child":{"heard":1},"answer":true,"tools":{"agents":[]}}"#);
    assert_eq!(scene.spawned, [r#"echo {"n":1}"#]);
    assert_eq!(scene.asked[0]["tool"], "$question");
    assert_eq!(scene.asked[0]["arguments"]["prompt"], "Really?");
    assert_eq!(scene.kinds(), [StepKind::Start, StepKind::Child, StepKind::Question, StepKind::Tools]);
    let again = atlas_types::Assignment { spawn: Some(rule), ..scene.attempt(2) };
    assert_eq!(scene.run(&again).await.output(&scene.controller), output);
    assert_eq!((scene.spawned.len(), scene.asked.len()), (1, 2));
    scene.shutdown().await;
}
