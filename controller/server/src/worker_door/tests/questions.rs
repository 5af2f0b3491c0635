//! Tests that attempts ask people, and that whoever answers is checked.

use std::sync::Arc;

use atlas_service::{Caller, Consistency, Error, QuestionQuery};
use atlas_types::{
    AgentPin, Ask, AskKind, AskQuestion, Command, Digest, Door, FencingToken, JobId, Payload, QuestionRule,
    RegisterAgent, Spawner, StepKey, SubmitJob, ToolEnd, ToolRequest, Verdict, Version,
};
use atlas_wire::session::{ToLeader, ToWorker};
use serde_json::{Value, json};

use super::fake::{Cluster, Worker, plain_agent, plain_submission};
use super::steps::record;

const PACKAGE: Digest = Digest([2; 32]);

fn caller() -> Caller {
    Caller::anonymous(Door::Http)
}

/// Jobs 1 to `count` of an agent that may ask, which run and have recorded a step.
async fn running(rule: QuestionRule, count: u64) -> (Cluster, Worker) {
    let cluster = Cluster::start().await;
    let Command::RegisterAgent(command) = plain_agent("asker") else { panic!("an agent") };
    let contract = json!({"requires": {"skills": ["user__ask", "user__checkbox", "user__other"]}});
    let contract = Payload::inline(contract.to_string().as_bytes());
    cluster.does(Command::RegisterAgent(RegisterAgent { digest: PACKAGE, contract, ..command })).await;
    let mut worker = cluster.worker_of("n1", 1, 64).await;
    worker.hears().await;
    let pin = AgentPin { version: Version { major: 1, minor: 0, patch: 0 }, digest: PACKAGE };
    for job in 1..=count {
        let Command::SubmitJob(command) = plain_submission(job, "asker") else { panic!("a job") };
        let verdict = Verdict::Accepted(pin.clone());
        cluster.does(Command::SubmitJob(SubmitJob { verdict, questions: rule.clone(), ..command })).await;
        worker.grant().await;
        worker.say(record(job, job, job, 0, &["1"])).await;
        worker.hears().await;
    }
    (cluster, worker)
}

fn call(number: u64, tool: &str, arguments: &Value) -> ToLeader {
    let call = ToolRequest {
        caller: Spawner { job: JobId(1), token: FencingToken(1) },
        tool: tool.to_owned(),
        arguments: arguments.to_string().into_bytes().into(),
        key: StepKey([u8::try_from(number).expect("small"); 16]),
        again: false,
    };
    ToLeader::CallTool { number, call: Box::new(call) }
}

/// The answer to a call: its result, or why there is none.
async fn answered(worker: &mut Worker) -> Value {
    match worker.frame().await {
        ToWorker::ToolCalled { end: ToolEnd::Result(result), .. } => serde_json::from_slice(&result).expect("JSON"),
        ToWorker::ToolCalled { end: ToolEnd::Refused(why), .. } => json!({"refused": why}),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn an_attempt_waits_for_the_first_answer_and_a_repeat_asks_nothing_new() {
    let (cluster, mut worker) = running(QuestionRule::Wait, 1).await;
    let arguments = json!({"question": "Which?", "options": "[\"a\", 1, \"b\", \"a\"]"});
    worker.say(call(7, "user__checkbox", &arguments)).await;
    let service = cluster.controller.service();
    let id = super::fake::soon(service.asked(JobId(1))).await;
    worker.say(call(7, "user__checkbox", &arguments)).await;
    let refused = service.answer(&caller(), id, &json!(["c"]), false).await.expect_err("it is no option");
    assert_eq!(refused.to_string(), "the answer must be a list of some of \"a\", \"b\"");
    let other = caller().in_namespace("other").expect("a name");
    assert!(matches!(service.answer(&other, id, &json!(["a"]), false).await, Err(Error::UnknownQuestion)));
    let large = service.answer(&caller(), id, &json!("x".repeat(20_000)), true).await;
    assert!(matches!(large, Err(Error::TooLarge { .. })), "{large:?}");
    service.answer(&caller(), id, &json!("b, a"), true).await.expect("it fits");
    assert_eq!(answered(&mut worker).await, json!({"answers": ["b", "a"]}));
    assert_eq!(answered(&mut worker).await, json!({"answers": ["b", "a"]}));
    let late = service.answer(&caller(), id, &json!(["a"]), false).await.expect_err("it has its answer");
    assert_eq!(late.to_string(), "the question is answered");
    let query = QuestionQuery { ended: true, job: Some(JobId(1)), limit: 10, ..QuestionQuery::default() };
    let asked = service.questions(&caller(), &query, Consistency::Linearizable).await.expect("a list");
    assert_eq!(asked.len(), 1, "{asked:?}");
}

#[tokio::test]
async fn what_cannot_be_asked_is_refused_with_the_reason() {
    let (_cluster, mut worker) = running(QuestionRule::Answer("b".into()), 1).await;
    let options = json!({"question": "?", "options": ["a", "b"]});
    let checks = [
        ("user__ask", json!({"options": []}), "Missing 'question' parameter"),
        ("user__ask", json!({"question": "?"}), "Missing 'options' parameter"),
        ("user__ask", json!({"question": "?", "options": "a, b"}), "'options' must be a list of strings"),
        ("user__ask", json!({"question": "?", "options": {}}), "'options' must be a list of strings"),
        ("user__checkbox", json!({"question": "?", "options": [1]}), "'options' has no option to choose"),
        ("user__other", options.clone(), "Unknown tool: user__other"),
        ("user__input", options.clone(), "Skill 'user__input' not available — declare it in requires.skills"),
    ];
    for (number, (tool, arguments, why)) in (1..).zip(checks) {
        worker.say(call(number, tool, &arguments)).await;
        assert_eq!(answered(&mut worker).await, json!({"refused": why}), "{tool} {arguments}");
    }
    worker.say(call(20, "user__ask", &options)).await;
    assert_eq!(answered(&mut worker).await, json!({"answer": "b"}));
    worker.say(call(21, "user__checkbox", &json!({"question": "?", "options": ["a"]}))).await;
    let refused = answered(&mut worker).await["refused"].as_str().expect("a reason").to_owned();
    assert!(refused.starts_with("E3044: the answer \"b\" of the job's rule does not fit"), "{refused}");
}

#[tokio::test]
async fn no_rule_answers_what_only_people_know() {
    let (_cluster, mut worker) = running(QuestionRule::Answer("b".into()), 1).await;
    let question = json!({"kind": "choose", "prompt": "Did it happen?", "options": ["a", "b"]});
    worker.say(call(1, ToolRequest::QUESTION, &question)).await;
    assert_eq!(answered(&mut worker).await, json!({"answer": "b"}));
    let mut in_doubt = question;
    in_doubt["needs_people"] = json!(true);
    worker.say(call(2, ToolRequest::QUESTION, &in_doubt)).await;
    let why = "E3044: the job's rule for questions cannot answer: Did it happen?";
    assert_eq!(answered(&mut worker).await, json!({"refused": why}));
    worker.say(call(3, ToolRequest::QUESTION, &json!({"kind": "guess", "prompt": "?"}))).await;
    let why = "a question is text, confirm, choose or checkbox, not \"guess\"";
    assert_eq!(answered(&mut worker).await, json!({"refused": why}));
}

#[tokio::test]
async fn a_thousand_open_questions_are_listed_in_pages_and_close_with_their_jobs() {
    let (cluster, _worker) = running(QuestionRule::Wait, 16).await;
    let ask =
        Arc::new(Ask { kind: AskKind::Text, prompt: "?".into(), answerers: Vec::new(), timeout: None, default: None });
    for job in 1..=16_u64 {
        for key in 0..63_u8 {
            let (token, node) = (FencingToken(job), "n1".parse().expect("a name"));
            let key = StepKey([key; 16]);
            cluster
                .does(Command::AskQuestion(AskQuestion { job: JobId(job), node, token, key, ask: ask.clone() }))
                .await;
        }
    }
    let service = cluster.controller.service();
    let mut query = QuestionQuery { limit: 400, ..QuestionQuery::default() };
    let mut seen = 0;
    loop {
        let page = service.questions(&caller(), &query, Consistency::Linearizable).await.expect("a list");
        let Some(last) = page.last() else { break };
        (seen, query.after) = (seen + page.len(), last.asked);
    }
    assert_eq!(seen, 16 * 63);
    let of_one = QuestionQuery { job: Some(JobId(3)), limit: 1_000, ..QuestionQuery::default() };
    let listed = async || service.questions(&caller(), &of_one, Consistency::Linearizable).await.expect("a list").len();
    assert_eq!(listed().await, 63);
    cluster.cancel(3).await;
    service.handle().applied().check_invariants().expect("they hold");
}
