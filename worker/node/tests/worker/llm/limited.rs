//! Models with limits: each try of a call begins when the leader says so, and a new session learns of all tries.

use std::time::Duration;

use atlas_llm_server::{Reply, Server};
use atlas_types::{Assignment, ReportResult, StepsResult};
use atlas_wire::session::{ModelAsk, ModelUses, ToLeader, ToWorker};
use serde_json::json;

use super::scene::{Scene, contract};
use super::stored::{spec, with};
use crate::support::End;

/// What the worker says next about models, or how the attempt ended. Steps are recorded.
async fn said(scene: &mut Scene) -> Result<ToLeader, End> {
    loop {
        match scene.session.next().await {
            ToLeader::RecordSteps { number, steps, .. } => {
                scene.journal.steps.extend(steps);
                scene.session.say(ToWorker::StepsAck { number, result: StepsResult::Applied }).await;
            }
            ToLeader::Renew { number } => scene.session.say(ToWorker::RenewAck { number }).await,
            ToLeader::Report { number, report } => {
                scene.session.say(ToWorker::ReportAck { number, result: ReportResult::Applied }).await;
                if let Some(end) = End::of(report.kind) {
                    return Err(end);
                }
            }
            said @ (ToLeader::AskModel(_) | ToLeader::ModelDone { .. } | ToLeader::AnnounceModels(_)) => {
                return Ok(said);
            }
            _ => {}
        }
    }
}

async fn ask(scene: &mut Scene) -> ModelAsk {
    match said(scene).await.expect("the attempt goes on") {
        ToLeader::AskModel(ask) => ask,
        other => panic!("{other:?}"),
    }
}

async fn done(scene: &mut Scene) -> (u64, Option<u64>) {
    match said(scene).await.expect("the attempt goes on") {
        ToLeader::ModelDone { number, tokens } => (number, tokens),
        other => panic!("{other:?}"),
    }
}

async fn announced(scene: &mut Scene) -> ModelUses {
    match said(scene).await.expect("the attempt goes on") {
        ToLeader::AnnounceModels(uses) => uses,
        other => panic!("{other:?}"),
    }
}

/// Another session of the same leader, or of the next one.
async fn reconnect(mut scene: Scene, lease: &Assignment) -> Scene {
    drop(scene.session);
    scene.session = scene.controller.welcomed(vec![lease.clone()]).await;
    scene
}

#[tokio::test]
async fn each_try_asks_and_a_new_session_hears_of_all() {
    let server = Server::start(|_, number| match number {
        0 => Reply::Error { status: 500, text: "broken".to_owned() },
        _ => Reply::Held(Box::new(Reply::text("{}"))),
    });
    let server = server.expect("a server");
    let mut model = spec(&server, "tiny");
    model["limits"] = json!({"concurrency": 1});
    model["retry"] = json!({"attempts": 2});
    let mut scene = Scene::set(&[("agent.yaml", &contract("", ""))], &[]).await;
    let only = with(scene.attempt(1, "{}"), &[("small", model)]);
    scene.session.grant(&only).await;
    let first = ask(&mut scene).await;
    assert_eq!((first.number, first.model.as_str(), first.job, first.token), (1, "small", only.job, only.token));
    assert!(first.tokens > 4_096, "the request and an answer: {}", first.tokens);
    assert!(server.requests().is_empty(), "no call begins before the leader says so");
    scene.session.say(ToWorker::ModelGranted { number: 1 }).await;
    assert_eq!(done(&mut scene).await, (1, Some(0)));
    let second = ask(&mut scene).await;
    assert_eq!(second.number, 2);

    // It waits, and has ended a try within the minute.
    let mut scene = reconnect(scene, &only).await;
    let uses = announced(&mut scene).await;
    assert!(uses.held.is_empty(), "{uses:?}");
    assert_eq!((uses.past.len(), uses.past[0].requests, uses.past[0].tokens), (1, 1, 0));
    assert_eq!(ask(&mut scene).await, second, "it asks again");
    scene.session.say(ToWorker::ModelGranted { number: 2 }).await;
    crate::support::until("the call is made", Duration::from_secs(60), || server.requests().len() == 2).await;

    // It is under way.
    let mut scene = reconnect(scene, &only).await;
    let uses = announced(&mut scene).await;
    let held: Vec<_> = uses.held.iter().map(|held| (held.number, held.job, held.model.as_str(), held.tokens)).collect();
    assert_eq!(held, [(2, only.job, "small", second.tokens)]);
    server.release();
    assert_eq!(done(&mut scene).await, (2, Some(15)));
    assert!(matches!(said(&mut scene).await, Err(End::Completed { .. })));
    scene.node.shutdown().await;
}

#[tokio::test]
async fn an_attempt_that_is_cancelled_takes_its_question_back() {
    let server = Server::start(|_, _| Reply::text("{}")).expect("a server");
    let mut model = spec(&server, "tiny");
    model["limits"] = json!({"requests_per_minute": 1});
    let mut scene = Scene::set(&[("agent.yaml", &contract("", ""))], &[]).await;
    let only = with(scene.attempt(1, "{}"), &[("small", model)]);
    scene.session.grant(&only).await;
    assert_eq!(ask(&mut scene).await.number, 1);
    let grace = atlas_types::Micros::from_secs(5);
    scene.session.say(ToWorker::Cancel { job: only.job, token: only.token, grace }).await;
    assert_eq!(done(&mut scene).await, (1, None));
    match said(&mut scene).await {
        Err(End::Failed { cancelled: true, .. }) => {}
        other => panic!("{other:?}"),
    }
    assert!(server.requests().is_empty());
    scene.node.shutdown().await;
}
