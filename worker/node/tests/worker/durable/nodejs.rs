//! The same for agents in JavaScript: they ask the same of the worker.

use atlas_types::{Assignment, SpawnRule, StepKind, Wait};

use super::scene::Scene;
use crate::nodejs::{javascript, without_nodejs};

const HEADER: &str = r#"
import { appendFileSync } from "node:fs";
const count = (file, line) => { appendFileSync(file, `${line}\n`); return line; };
"#;

fn agent(body: &str, more: &str) -> Vec<(&'static str, String)> {
    javascript(&format!("{HEADER}{body}"), &format!("  durable: true\n  execution_timeout: 600\n{more}"))
}

#[tokio::test]
async fn a_step_runs_once_over_attempts_that_are_killed() {
    if without_nodejs() {
        return;
    }
    let code = r#"
export default agent(async (input, ctx) => {
  const out = [];
  for (let n = 0; n < 3; n += 1) out.push(await ctx.step("count", count, { args: [input.file, n] }));
  return { out, now: ctx.now(), random: ctx.random(), id: ctx.uuid() };
});
"#;
    let mut scene = Scene::set(&agent(code, "")).await;
    for (attempt, steps) in [(1, 2), (2, 3)] {
        let assignment = scene.attempt(attempt);
        scene.session.grant(&assignment).await;
        assert!(scene.record_until(steps).await.is_none());
        scene.revoke(&assignment).await;
    }
    let last = scene.attempt(3);
    let output = scene.run(&last).await.output(&scene.controller);
    assert!(output.starts_with(r#"{"out":[0,1,2]"#), "{output}");
    assert_eq!(scene.kinds(), [StepKind::Start, StepKind::Code, StepKind::Code, StepKind::Code]);
    assert_eq!(scene.lines(), "0\n1\n2\n");
    let again = scene.attempt(4);
    assert_eq!(scene.run(&again).await.output(&scene.controller), output);
    assert_eq!((scene.lines().as_str(), scene.kinds().len()), ("0\n1\n2\n", 4));
    scene.shutdown().await;
}

#[tokio::test]
async fn several_steps_at_a_time_end_in_the_order_of_their_records() {
    if without_nodejs() {
        return;
    }
    let code = r#"
const slow = async (file, line, ms) => { count(file, line); await new Promise((done) => setTimeout(done, ms)); return line; };
export default agent(async ({ file }, ctx) => {
  const order = [];
  const one = async (name, ms) => {
    order.push(await ctx.step(name, slow, { args: [file, name, ms] }));
    order.push(await ctx.step(`after ${name}`, slow, { args: [file, `${name}2`, 0] }));
  };
  await Promise.all([one("a", 400), one("b", 200), one("c", 0)]);
  const won = await Promise.race([ctx.step("quick", slow, { args: [file, "quick", 1] }), ctx.sleep("1h").then(() => "sleep")]);
  return { order, won };
});
"#;
    let mut scene = Scene::set(&agent(code, "")).await;
    scene.parks = false;
    let first = scene.attempt(1);
    scene.session.grant(&first).await;
    assert!(scene.record_until(4).await.is_none());
    scene.revoke(&first).await;
    let second = scene.attempt(2);
    let output = scene.run(&second).await.output(&scene.controller);
    assert!(output.ends_with(r#""won":"quick"}"#), "{output}");
    let names = scene.names();
    let third = scene.attempt(3);
    assert_eq!(scene.run(&third).await.output(&scene.controller), output);
    assert_eq!(scene.names(), names, "nothing is recorded again");
    scene.shutdown().await;
}

#[tokio::test]
async fn a_step_that_threw_throws_again() {
    if without_nodejs() {
        return;
    }
    let code = r#"
export default agent(async ({ file }, ctx) => {
  try {
    await ctx.step("fails", (file) => { count(file, "tried"); throw new RangeError("no luck"); }, { args: [file], retry: 2 });
  } catch (error) {
    return { name: error.name, type: error.type, text: error.message };
  }
});
"#;
    let mut scene = Scene::set(&agent(code, "")).await;
    scene.parks = false;
    let first = scene.attempt(1);
    let output = scene.run(&first).await.output(&scene.controller);
    assert_eq!(
        output,
        r#"{"name":"StepError","type":"RangeError","text":"step \"fails\" failed: RangeError: no luck"}"#
    );
    let second = scene.attempt(2);
    assert_eq!(scene.run(&second).await.output(&scene.controller), output);
    assert_eq!(scene.lines(), "tried\ntried\n");
    scene.shutdown().await;
}

#[tokio::test]
async fn jobs_and_questions_are_waited_for() {
    if without_nodejs() {
        return;
    }
    let code = r#"
export default agent(async (_, ctx) => {
  const child = await ctx.spawn("echo", { n: 1 });
  const answer = await ctx.ask("Really?", { kind: "confirm" });
  const tools = await ctx.callTool("atlas.registry.list", {});
  return { child: child.data, answer, tools };
});
"#;
    let more = "  requires: {spawn_agents: true, platform_tools: true}\n";
    let mut scene = Scene::set(&agent(code, more)).await;
    scene.parks = false;
    let rule = SpawnRule { depth: 0, depth_max: 3, permitted: true };
    scene.answers.extend([r#"{"answer":true}"#, r#"{"agents":[]}"#]);
    let first = Assignment { spawn: Some(rule), ..scene.attempt(1) };
    let output = scene.run(&first).await.output(&scene.controller);
    assert_eq!(output, r#"{"child":{"heard":1},"answer":true,"tools":{"agents":[]}}"#);
    let again = Assignment { spawn: Some(rule), ..scene.attempt(2) };
    assert_eq!(scene.run(&again).await.output(&scene.controller), output);
    assert_eq!((scene.spawned.len(), scene.asked.len()), (1, 2));
    scene.shutdown().await;
}

/// Nothing of the run that parked goes on: neither `catch`, which takes everything in JavaScript, nor `finally`.
#[tokio::test]
async fn a_program_that_sleeps_parks_and_its_process_serves_the_next_attempt() {
    if without_nodejs() {
        return;
    }
    let code = r#"
let jobs = 0;
export default agent(async ({ file }, ctx) => {
  jobs += 1;
  ctx.signal.addEventListener("abort", () => count(file, `left ${ctx.signal.reason.name}`));
  try {
    await ctx.step("before", count, { args: [file, 1] });
    await ctx.sleep("1h");
    await ctx.step("after", count, { args: [file, 2] });
  } catch (error) {
    count(file, `caught ${error}`);
  }
  return { jobs };
});
"#;
    let mut scene = Scene::set(&agent(code, "")).await;
    let first = scene.attempt(1);
    scene.session.grant(&first).await;
    assert!(scene.record_until(u64::MAX).await.is_none(), "it parks");
    let [Wait::Time { at }] = scene.parked[0].waits[..] else { panic!("{:?}", scene.parked) };
    scene.slept_until = at;
    let second = scene.attempt(2);
    let end = scene.run(&second).await;
    assert_eq!(end.output(&scene.controller), r#"{"jobs":2}"#);
    assert!(end.usage().warm, "the process stayed");
    assert!(scene.lines().starts_with("1\nleft Parked\n2\n"), "{}", scene.lines());
    assert!(!scene.lines().contains("caught"), "{}", scene.lines());
    scene.shutdown().await;
}
