//! How long the recorded steps of a durable program took.

use super::scene::{Scene, agent};
use crate::support::without_python;

const ASKS: &str = r#"
    async def execute(self, input_data):
        await self.context.step("slow", slow, input_data["file"], "slow", 0.3)
        await self.context.ask("First?")
        await self.context.step("between", counted, input_data["file"], 1)
        await self.context.ask("Second?")
        await self.context.sleep(0.2)
        return {}
"#;

/// Of each recorded step, in microseconds.
fn durations(scene: &Scene) -> Vec<u64> {
    scene.journal.steps.iter().map(|step| step.usage.duration.0).collect()
}

#[tokio::test]
async fn steps_and_waits_say_how_long_they_took() {
    if without_python() {
        return;
    }
    let mut scene = Scene::set(&agent(ASKS, "")).await;
    scene.parks = false;
    scene.answers.extend([r#"{"answer":"a"}"#; 2]);
    let only = scene.attempt(1);
    assert_eq!(scene.run(&only).await.output(&scene.controller), "{}");
    let [start, slow, first, between, second, sleep] = durations(&scene)[..] else { panic!("{:?}", scene.kinds()) };
    assert_eq!(start, 0, "it records only what the job is fixed to");
    assert!((300_000..30_000_000).contains(&slow), "{slow}");
    assert!(first > 0 && between > 0 && second > 0, "{first} {between} {second}");
    assert!((200_000..30_000_000).contains(&sleep), "{sleep}");
    scene.shutdown().await;
}

#[tokio::test]
async fn a_wait_that_an_earlier_attempt_may_have_begun_says_no_time() {
    if without_python() {
        return;
    }
    let mut scene = Scene::set(&agent(ASKS, "")).await;
    let first = scene.attempt(1);
    scene.session.grant(&first).await;
    assert!(scene.record_until(u64::MAX).await.is_none(), "it parks at the first question");
    scene.parks = false;
    scene.answers.extend([r#"{"answer":"a"}"#; 2]);
    let second = scene.attempt(2);
    assert_eq!(scene.run(&second).await.output(&scene.controller), "{}");
    let [_, _, asked, between, asked_later, _] = durations(&scene)[..] else { panic!("{:?}", scene.kinds()) };
    assert!(asked == 0 && between > 0 && asked_later > 0, "{asked} {between} {asked_later}");
    scene.shutdown().await;
}

#[tokio::test]
async fn a_sleep_over_attempts_took_the_time_since_its_recorded_beginning() {
    if without_python() {
        return;
    }
    let code = "\n    async def execute(self, d):\n        await self.context.sleep(3600)\n        return {}\n";
    let mut scene = Scene::set(&agent(code, "")).await;
    let first = scene.attempt(1);
    scene.session.grant(&first).await;
    assert!(scene.record_until(u64::MAX).await.is_none(), "it parks");
    let [atlas_types::Wait::Time { at }] = scene.parked[0].waits[..] else { panic!("{:?}", scene.parked) };
    scene.slept_until = at;
    let second = scene.attempt(2);
    assert_eq!(scene.run(&second).await.output(&scene.controller), "{}");
    let took = durations(&scene).pop().expect("the sleep");
    // The leader says that the hour is over; the clock of this machine has moved by the time of the test.
    assert!((1..600_000_000).contains(&took), "{took}");
    scene.shutdown().await;
}
