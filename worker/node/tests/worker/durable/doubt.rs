//! Steps that must not happen twice, and that were under way when their worker was lost.

use atlas_types::StepKind;

use super::scene::{Scene, agent};
use crate::support::without_python;

const CHARGES: &str = r#"
    async def execute(self, input_data):
        paid = await self.context.step("charge", counted, input_data["file"], 5, effects="once")
        return {"paid": paid}
"#;

/// A job whose worker was lost before the end of its step was recorded.
async fn lost(code: &str) -> Scene {
    let mut scene = Scene::set(&agent(code, "")).await;
    let first = scene.attempt(1);
    scene.session.grant(&first).await;
    assert!(scene.record_until(3).await.is_none());
    scene.revoke(&first).await;
    assert_eq!((scene.kinds().pop(), scene.lines().as_str()), (Some(StepKind::Code), "5\n"));
    scene.journal.steps.pop();
    scene.parks = false;
    scene
}

#[tokio::test]
async fn people_say_what_came_of_it() {
    if without_python() {
        return;
    }
    for (answer, paid, lines) in [
        (r#"{"answer":"happened"}"#, "null", "5\n"),
        (r#"{"answer":"did not happen"}"#, "5", "5\n5\n"),
        (r#"{"answer":"{\"id\": 3}"}"#, r#"{"id": 3}"#, "5\n"),
    ] {
        let mut scene = lost(CHARGES).await;
        scene.answers.push_back(answer);
        let second = scene.attempt(2);
        let output = scene.run(&second).await.output(&scene.controller);
        assert_eq!(output.replace(' ', ""), format!(r#"{{"paid":{paid}}}"#).replace(' ', ""));
        assert_eq!(scene.lines(), lines);
        let prompt = scene.asked[0]["arguments"]["prompt"].as_str().expect("a text").to_owned();
        assert!(prompt.starts_with("Step 'charge' (agent.py:") && prompt.contains("Did it happen?"), "{prompt}");
        scene.shutdown().await;
    }
}

#[tokio::test]
async fn an_answer_that_says_nothing_is_refused_with_what_is_allowed() {
    if without_python() {
        return;
    }
    let mut scene = lost(CHARGES).await;
    scene.answers.extend([r#"{"answer":"no"}"#, r#"{"answer":"did not happen"}"#]);
    let second = scene.attempt(2);
    assert_eq!(scene.run(&second).await.output(&scene.controller).replace(' ', ""), r#"{"paid":5}"#);
    let prompt = scene.asked[1]["arguments"]["prompt"].as_str().expect("a text").to_owned();
    let expected = r#""no" is none of "happened", "did not happen" and a result in JSON. Step 'charge' (agent.py:"#;
    assert!(prompt.starts_with(expected), "{prompt}");
    scene.shutdown().await;
}

#[tokio::test]
async fn a_step_that_did_not_happen_is_in_doubt_again_when_it_is_lost_again() {
    if without_python() {
        return;
    }
    let mut scene = lost(CHARGES).await;
    scene.answers.push_back(r#"{"answer":"did not happen"}"#);
    let second = scene.attempt(2);
    scene.session.grant(&second).await;
    assert!(scene.record_until(4).await.is_none());
    scene.revoke(&second).await;
    scene.journal.steps.pop();
    scene.answers.push_back(r#"{"answer":"happened"}"#);
    let third = scene.attempt(3);
    assert_eq!(scene.run(&third).await.output(&scene.controller), r#"{"paid":null}"#);
    assert_eq!((scene.asked.len(), scene.lines().as_str()), (2, "5\n5\n"));
    scene.shutdown().await;
}

#[tokio::test]
async fn a_job_that_asks_nobody_fails_and_says_how_to_go_on() {
    if without_python() {
        return;
    }
    let mut scene = lost(CHARGES).await;
    scene.answers.push_back("refused E3044: the job asks a question and nobody is there to answer");
    let second = scene.attempt(2);
    let error = scene.run(&second).await.error();
    let expected = "E3017: step \"charge\" (agent.py:";
    assert!(error.starts_with(expected) && error.contains("atlasctl job retry --resume --questions wait"), "{error}");
    assert_eq!(scene.lines(), "5\n");
    scene.shutdown().await;
}

#[tokio::test]
async fn a_program_looks_itself_what_came_of_it() {
    if without_python() {
        return;
    }
    for (found, paid, lines) in [("7", "7", "5\nlooked\n"), ("DID_NOT_HAPPEN", "5", "5\nlooked\n5\n")] {
        let code = format!(
            r#"
    async def execute(self, input_data):
        from atlas.durable import DID_NOT_HAPPEN

        def looks(file, n):
            wrote(file, "looked")
            return {found}

        paid = await self.context.step("charge", counted, input_data["file"], 5, effects="once", reconcile=looks)
        return {{"paid": paid}}
"#
        );
        let mut scene = lost(&code).await;
        let second = scene.attempt(2);
        assert_eq!(scene.run(&second).await.output(&scene.controller), format!(r#"{{"paid":{paid}}}"#));
        assert_eq!((scene.lines().as_str(), scene.asked.len()), (lines, 0));
        scene.shutdown().await;
    }
}
