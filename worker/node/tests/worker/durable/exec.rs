//! Programs without a host: shell scripts that say their steps as lines of JSON.

use atlas_types::{Assignment, Micros, StepKind};

use super::scene::Scene;
use crate::support::shell;

const SCRIPT: &str = r#"
file=$(sed 's/.*"file":"\([^"]*\)".*/\1/')
say() { echo "$1" > /dev/fd/$ATLAS_STEP_OUT; }
hear() { read -r answer < /dev/fd/$ATLAS_STEP_IN; }
step() {
    say "{\"name\":\"$1\",\"args\":[1]}"
    hear
    case "$answer" in
        *'"make":true'*)
            echo "$1" >> "$file"
            say "{\"made\":0,\"value\":\"did $1\"}"
            hear ;;
    esac
}
step a
step b
"#;

#[tokio::test]
async fn a_script_records_its_steps() {
    let script = format!("{SCRIPT}echo \"{{\\\"last\\\": $answer}}\"");
    let mut scene = Scene::set(&shell(&script, "  durable: true\n")).await;
    let first = scene.attempt(1);
    scene.session.grant(&first).await;
    assert!(scene.record_until(3).await.is_none());
    scene.revoke(&first).await;
    let second = scene.attempt(2);
    let output = scene.run(&second).await.output(&scene.controller);
    assert!(output.starts_with(r#"{"last": {"call":0,"value":"did b","at_us":"#), "{output}");
    assert_eq!(scene.lines(), "a\nb\n");
    assert_eq!(scene.kinds(), [StepKind::Start, StepKind::Code, StepKind::Code]);
    assert_eq!(scene.names(), ["", "a", "b"]);
    let third = scene.attempt(3);
    assert_eq!(scene.run(&third).await.output(&scene.controller), output);
    assert_eq!(scene.lines(), "a\nb\n");
    scene.shutdown().await;
}

#[tokio::test]
async fn a_script_that_waits_is_parked_and_begins_anew() {
    let script = format!(
        "{SCRIPT}say '{{\"kind\":\"sleep\",\"for\":3600,\"args\":[3600]}}'\nhear\nstep c\necho '{{\"done\":true}}'"
    );
    let mut scene = Scene::set(&shell(&script, "  durable: true\n")).await;
    let first = scene.attempt(1);
    scene.session.grant(&first).await;
    assert!(scene.record_until(u64::MAX).await.is_none(), "it parks");
    let [atlas_types::Wait::Time { at }] = scene.parked[0].waits[..] else { panic!("{:?}", scene.parked) };
    scene.slept_until = at;
    let second = scene.attempt(2);
    assert_eq!(scene.run(&second).await.output(&scene.controller), r#"{"done":true}"#);
    assert_eq!(scene.lines(), "a\nb\nc\n");
    scene.shutdown().await;
}

#[tokio::test]
async fn a_line_that_is_none_is_an_error_and_many_of_them_end_the_job() {
    let script =
        format!("echo '{{\"call\": 5, \"na' > /dev/fd/$ATLAS_STEP_OUT\n{SCRIPT}echo \"{{\\\"told\\\": $answer}}\"");
    // The first answer is the one to half a line.
    let script = script.replacen("step a\nstep b", "hear", 1);
    let mut scene = Scene::set(&shell(&script, "  durable: true\n")).await;
    let only = scene.attempt(1);
    let output = scene.run(&only).await.output(&scene.controller);
    assert!(output.contains(r#""text":"a line to ATLAS_STEP_OUT: "#), "{output}");
    scene.shutdown().await;
    let script = "for i in $(seq 200); do echo 'step a'; done > /dev/fd/$ATLAS_STEP_OUT\nsleep 60";
    let mut scene = Scene::set(&shell(script, "  durable: true\n")).await;
    let only = scene.attempt(1);
    let error = scene.run(&only).await.error();
    assert!(error.starts_with("E3018: ") && error.contains("a line to ATLAS_STEP_OUT: "), "{error}");
    scene.shutdown().await;
}

#[tokio::test]
async fn a_killed_step_does_not_keep_the_job_from_its_park() {
    let call = r#"say '{"call":11,"name":"x","args":[1],"single":true}'
hear
printf '{"made":11,"va' > /dev/fd/$ATLAS_STEP_OUT
printf '\n{"call":12,"single":true,"kind":"sleep","for":3600,"args":[3600]}\n' > /dev/fd/$ATLAS_STEP_OUT
hear
sleep 60
"#;
    let script = SCRIPT.replacen("step a\nstep b\n", call, 1);
    let mut scene = Scene::set(&shell(&script, "  durable: true\n")).await;
    let first = scene.attempt(1);
    scene.session.grant(&first).await;
    assert!(scene.record_until(u64::MAX).await.is_none(), "it parks");
    assert!(matches!(scene.parked[0].waits[..], [atlas_types::Wait::Time { .. }]), "{:?}", scene.parked);
    scene.shutdown().await;
}

/// A script that differs from its record in the second attempt is told so: at once if it makes one call at a time, else in half of its time.
#[tokio::test]
async fn a_script_that_differs_from_its_record_is_found() {
    for (single, limit) in [(r#","single":true"#, 60), ("", 4)] {
        let script = SCRIPT.replace(r#"\"args\":[1]}"#, &format!(r#"\"args\":[1]{}}}"#, single.replace('"', r#"\""#)));
        let script =
            script.replacen("step a\n", "if [ -e \"$file\" ]; then step other; else step a; fi\n", 1) + "echo '{}'";
        let mut scene = Scene::set(&shell(&script, "  durable: true\n")).await;
        let first = scene.attempt(1);
        scene.session.grant(&first).await;
        assert!(scene.record_until(3).await.is_none());
        scene.revoke(&first).await;
        let second = Assignment { execution_timeout: Micros::from_secs(limit), ..scene.attempt(2) };
        let error = scene.run(&second).await.error();
        let expected = "E3013: the program asks for the step 'other' with [1], and its record has the step 'a' there";
        assert!(error.starts_with(expected), "{single} {error}");
        assert_eq!(scene.lines(), "a\nb\n");
        scene.shutdown().await;
    }
}
