//! Tests durable programs in Python: what was recorded is not done again, and a program that waits lets its job park.

mod doubt;
mod durations;
mod exec;
mod flood;
mod library;
mod messages;
mod nodejs;
mod parked;
mod scene;

use std::time::Duration;

use atlas_types::StepKind;

use self::scene::{Scene, agent};
use crate::support::{End, without_python};

#[tokio::test]
async fn a_step_runs_once_over_attempts_that_are_killed() {
    if without_python() {
        return;
    }
    let code = r#"
    async def execute(self, input_data):
        out = []
        for n in range(3):
            out.append(await self.context.step("count", counted, input_data["file"], n))
        return {"out": out, "now": self.context.now().timestamp(), "draw": self.context.random().random(), "id": self.context.uuid()}
"#;
    let mut scene = Scene::set(&agent(code, "")).await;
    for (attempt, steps) in [(1, 2), (2, 3)] {
        let assignment = scene.attempt(attempt);
        scene.session.grant(&assignment).await;
        assert!(scene.record_until(steps).await.is_none());
        scene.revoke(&assignment).await;
    }
    let last = scene.attempt(3);
    let end = scene.run(&last).await;
    let output = end.output(&scene.controller);
    assert!(output.starts_with(r#"{"out":[0,1,2]"#), "{output}");
    assert_eq!(scene.kinds(), [StepKind::Start, StepKind::Code, StepKind::Code, StepKind::Code]);
    assert_eq!(scene.lines(), "0\n1\n2\n");
    // All of it was told at the beginning of one more attempt.
    let again = scene.attempt(4);
    assert_eq!(scene.run(&again).await.output(&scene.controller), output);
    assert_eq!((scene.lines().as_str(), scene.kinds().len()), ("0\n1\n2\n", 4));
    scene.node.shutdown().await;
}

#[tokio::test]
async fn a_step_that_raised_raises_again_and_one_without_json_says_so() {
    if without_python() {
        return;
    }
    let code = r#"
    async def execute(self, input_data):
        said = []
        for function in (fails, returns_a_set):
            try:
                await self.context.step(function.__name__, function, input_data["file"])
            except Exception as error:
                said.append(f"{type(error).__name__}: {error}")
        return {"said": said}
"#;
    let mut scene = Scene::set(&agent(code, "")).await;
    let first = scene.attempt(1);
    let output = scene.run(&first).await.output(&scene.controller);
    assert!(output.contains("no luck") && output.contains("JSON"), "{output}");
    let second = scene.attempt(2);
    assert_eq!(scene.run(&second).await.output(&scene.controller), output);
    assert_eq!(scene.lines(), "failed\n");
    scene.node.shutdown().await;
}

#[tokio::test]
async fn several_steps_at_a_time_end_in_the_order_of_their_records() {
    if without_python() {
        return;
    }
    let code = r#"
    async def execute(self, input_data):
        order = []

        async def one(name, pause):
            order.append(await self.context.step(name, slow, input_data["file"], name, pause))
            order.append(await self.context.step("after " + name, slow, input_data["file"], name + "2", 0))

        await asyncio.gather(one("a", 0.4), one("b", 0.2), one("c", 0))
        return {"order": order}
"#;
    let mut scene = Scene::set(&agent(code, "")).await;
    let first = scene.attempt(1);
    scene.session.grant(&first).await;
    assert!(scene.record_until(4).await.is_none());
    scene.revoke(&first).await;
    let second = scene.attempt(2);
    let output = scene.run(&second).await.output(&scene.controller);
    let names = scene.names();
    let third = scene.attempt(3);
    assert_eq!(scene.run(&third).await.output(&scene.controller), output);
    assert_eq!(scene.names(), names, "nothing is recorded again");
    assert_eq!(names.len(), 7, "{names:?}");
    scene.node.shutdown().await;
}

#[tokio::test]
async fn a_program_that_differs_fails_with_both_sides_and_its_line() {
    if without_python() {
        return;
    }
    let code = r#"
    async def execute(self, input_data):
        await self.context.step("reserve", counted, input_data["file"], 1)
        await self.context.step("charge", counted, input_data["file"], 2)
        return {}
"#;
    let mut scene = Scene::set(&agent(code, "")).await;
    let first = scene.attempt(1);
    scene.run(&first).await;
    scene.publish(&agent(&code.replace("\"charge\"", "\"bill\""), ""));
    let second = scene.attempt(2);
    let error = scene.run(&second).await.error();
    let expected = "E3013: the program asks for the step 'bill' with ";
    assert!(
        error.starts_with(expected) && error.contains("(agent.py:") && error.contains("the step 'charge' there"),
        "{error}"
    );
    assert_eq!(scene.lines(), "1\n2\n", "nothing new was done");
    // A program that leaves something out of what it was told ends.
    let shorter = code.lines().take(3).chain(["        return {}"]).collect::<Vec<_>>().join("\n");
    scene.publish(&agent(&shorter, ""));
    let third = scene.attempt(3);
    assert_eq!(scene.run(&third).await.output(&scene.controller), "{}");
    scene.node.shutdown().await;
}

#[tokio::test]
async fn a_step_outlasts_the_lease_and_a_large_result_is_an_artifact() {
    if without_python() {
        return;
    }
    let code = r#"
    async def execute(self, input_data):
        text = await self.context.step("large", large, input_data["file"])
        return {"length": len(text)}
"#;
    let mut scene = Scene::set_with(Duration::from_secs(3), Duration::ZERO, &agent(code, "")).await;
    let first = scene.attempt(1);
    assert_eq!(scene.run(&first).await.output(&scene.controller), r#"{"length":100000}"#);
    assert!(matches!(scene.journal.steps[1].outcome.body, atlas_types::PayloadBody::Artifact { .. }));
    let second = scene.attempt(2);
    assert_eq!(scene.run(&second).await.output(&scene.controller), r#"{"length":100000}"#);
    assert_eq!(scene.lines(), "large\n");
    scene.node.shutdown().await;
}

#[tokio::test]
async fn a_cancel_ends_a_step() {
    if without_python() {
        return;
    }
    let code = r#"
    async def execute(self, input_data):
        await self.context.step("long", slow, input_data["file"], "long", 600)
"#;
    let mut scene = Scene::set(&agent(code, "")).await;
    let first = scene.attempt(1);
    scene.session.grant(&first).await;
    scene.until_line("long").await;
    scene.cancel(&first).await;
    let end = scene.record_until(u64::MAX).await.expect("it ends");
    assert!(matches!(end, End::Failed { cancelled: true, .. }), "{end:?}");
    scene.node.shutdown().await;
}

#[tokio::test]
async fn what_is_hidden_stays_hidden_in_records() {
    if without_python() {
        return;
    }
    let code = r#"
    async def execute(self, input_data):
        value = await self.context.step("tells", lambda: {"token": self.context.secrets["key"]})
        return {"value": value}
"#;
    let more = "  permissions: {secrets: [key]}\n";
    let mut scene = Scene::set(&agent(code, more)).await;
    let first = scene.attempt_with_secret(1, "key", "canary-4711");
    let output = scene.run(&first).await.output(&scene.controller);
    assert_eq!(output, r#"{"value":{"token":"[redacted:key]"}}"#);
    assert!(!scene.outcomes().contains("canary"), "{}", scene.outcomes());
    scene.node.shutdown().await;
}
