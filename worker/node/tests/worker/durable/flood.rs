//! Programs without a host that go beyond the bounds of what they may say, or do not read what they are told.

use std::time::Duration;

use super::scene::Scene;
use crate::support::shell;

/// A worker that parks nothing, and that a slow machine does not lose its session.
async fn scene(script: &str) -> Scene {
    let files = shell(script, "  durable: true\n  execution_timeout: 600\n");
    Scene::set_with(Duration::from_secs(120), Duration::from_secs(600), &files).await
}

/// Runs a script to its error.
async fn error(script: &str) -> String {
    let mut scene = scene(script).await;
    let only = scene.attempt(1);
    let error = scene.run(&only).await.error();
    scene.shutdown().await;
    error
}

/// Runs a script to its output.
async fn output(script: &str) -> String {
    let mut scene = scene(script).await;
    let only = scene.attempt(1);
    let output = scene.run(&only).await.output(&scene.controller);
    scene.shutdown().await;
    output
}

#[tokio::test]
async fn a_line_without_an_end_ends_the_job() {
    let error = error("head -c 20000000 /dev/zero | tr '\\0' x > /dev/fd/$ATLAS_STEP_OUT\nsleep 600").await;
    assert!(error.starts_with("E3018: a line to ATLAS_STEP_OUT has more than "), "{error}");
}

#[tokio::test]
async fn lines_that_cannot_be_read_end_the_job() {
    let error = error("yes 'step a' > /dev/fd/$ATLAS_STEP_OUT").await;
    assert!(error.starts_with("E3018: more than 100 lines cannot be read; a line to ATLAS_STEP_OUT: "), "{error}");
}

#[tokio::test]
async fn calls_without_end_end_the_job_though_nobody_reads_the_answers() {
    for calls in [r#"{"call":1,"name":"x","args":[1]}"#, r#"{"call":1,"name":"x","args":[1]}\n{"forget":1}"#] {
        let error = error(&format!("yes \"$(printf '{calls}')\" > /dev/fd/$ATLAS_STEP_OUT")).await;
        assert!(error.starts_with("E3018: the program has made 100000 calls"), "{error}");
    }
}

#[tokio::test]
async fn more_open_calls_than_a_program_may_have_are_refused() {
    let script = r#"
for n in $(seq 1030); do echo "{\"call\":$n,\"name\":\"x\",\"args\":[1]}"; done > /dev/fd/$ATLAS_STEP_OUT
told=$(grep -m1 error < /dev/fd/$ATLAS_STEP_IN)
echo "{\"told\": $told}"
"#;
    let output = output(script).await;
    assert!(output.contains(r#""call":1025,"error":{"#), "{output}");
    assert!(output.contains(r#""text":"E3018: the program waits for 1024 calls already"#), "{output}");
}

#[tokio::test]
async fn what_open_calls_ask_with_has_a_bound() {
    let script = r#"
large=$(head -c 7000000 /dev/zero | tr '\0' x)
for n in $(seq 12); do
    printf '{"call":%s,"kind":"spawn","name":"other","agent":"other","args":[1],"input":"%s"}\n' $n "$large"
done > /dev/fd/$ATLAS_STEP_OUT
told=$(grep -m1 error < /dev/fd/$ATLAS_STEP_IN)
echo "{\"told\": $told}"
"#;
    let output = output(script).await;
    assert!(output.contains(r#""call":10,"error":{"#), "{output}");
    assert!(output.contains("E3018: what the program's open calls ask with has more than 64 MiB together"), "{output}");
}

/// The results of twelve steps, which the program never reads.
#[tokio::test]
async fn answers_that_nobody_reads_have_a_bound() {
    let script = r#"
large=$(head -c 7000000 /dev/zero | tr '\0' x)
for n in $(seq 12); do echo "{\"call\":$n,\"name\":\"x\",\"args\":[$n]}" > /dev/fd/$ATLAS_STEP_OUT; done
for n in $(seq 12); do read -r made < /dev/fd/$ATLAS_STEP_IN; done
for n in $(seq 12); do printf '{"made":%s,"value":"%s"}\n' $n "$large"; done > /dev/fd/$ATLAS_STEP_OUT
sleep 600
"#;
    let error = error(script).await;
    assert!(error.starts_with("E3018: the program does not read ATLAS_STEP_IN, where "), "{error}");
}

#[tokio::test]
async fn a_digest_is_a_digest() {
    let script = r#"
digest=$(head -c 100 /dev/zero | tr '\0' a)
echo "{\"call\":1,\"name\":\"x\",\"digest\":\"$digest\"}" > /dev/fd/$ATLAS_STEP_OUT
read -r told < /dev/fd/$ATLAS_STEP_IN
echo "{\"told\": $told}"
"#;
    let output = output(script).await;
    assert!(output.contains("is not a digest: at most 64 hexadecimal digits"), "{output}");
}
