//! Approvals and clients of MCP: a call waits, and only those who may answer are asked through it.

use serde_json::{Value, json};

use super::rig::Rig;

/// Rights of whoever runs agents over MCP.
const RUNS: [&str; 4] = ["agents.read", "jobs.read", "jobs.submit", "questions.answer"];
/// The approval, as content of a form.
const APPROVE: &str = "approve";

/// A client with the token of one person, whose user is asked during calls.
struct Client<'a> {
    http: reqwest::Client,
    url: String,
    token: &'a str,
    session: String,
}

/// What a call came to: its result, and the messages of the questions that the user was asked.
type Called = (Value, Vec<String>);

impl<'a> Client<'a> {
    async fn open(rig: &Rig, token: &'a str) -> Self {
        let http = reqwest::Client::builder().no_proxy().build().expect("a client");
        let mut client =
            Self { http, url: format!("http://{}/mcp", rig.controller.http), token, session: String::new() };
        let hello = json!({
            "protocolVersion": "2025-11-25", "capabilities": { "elicitation": { "form": {} } },
            "clientInfo": { "name": "t", "version": "0" }
        });
        let hello = json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": hello });
        let answer = client.send(&hello).await;
        client.session = answer.headers()["mcp-session-id"].to_str().expect("text").to_owned();
        client.send(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" })).await;
        client
    }

    async fn send(&self, message: &Value) -> reqwest::Response {
        let request = self.http.post(&self.url).bearer_auth(self.token).body(message.to_string());
        let request = request.header("accept", "application/json, text/event-stream");
        let request = request.header("content-type", "application/json");
        let request = match self.session.as_str() {
            "" => request,
            session => request.header("mcp-session-id", session).header("mcp-protocol-version", "2025-11-25"),
        };
        let answer = request.send().await.expect("an answer");
        assert!(answer.status().is_success(), "{}", answer.status());
        answer
    }

    /// Calls a tool. The user gives these answers, one to each question, and declines to give more.
    async fn call(&self, tool: &str, arguments: Value, answers: &[&str]) -> Called {
        let params = json!({ "name": tool, "arguments": arguments });
        let mut stream =
            self.send(&json!({ "jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": params })).await;
        let (mut text, mut asked, mut answers) = (String::new(), Vec::new(), answers.iter());
        loop {
            let piece = stream.chunk().await.expect("a stream").unwrap_or_else(|| panic!("no result: {text}"));
            text += &String::from_utf8_lossy(&piece);
            while let Some((line, rest)) = text.split_once('\n').map(|(line, rest)| (line.to_owned(), rest.to_owned()))
            {
                text = rest;
                let message = line.strip_prefix("data:").and_then(|data| serde_json::from_str::<Value>(data).ok());
                let Some(message) = message else { continue };
                if message["method"] == "elicitation/create" {
                    asked.push(message["params"]["message"].as_str().unwrap_or_default().to_owned());
                    let result = match answers.next() {
                        Some(answer) => json!({ "action": "accept", "content": { "answer": answer } }),
                        None => json!({ "action": "decline" }),
                    };
                    self.send(&json!({ "jsonrpc": "2.0", "id": message["id"], "result": result })).await;
                } else if message["id"] == 7 {
                    return (message["result"].clone(), asked);
                }
            }
        }
    }
}

/// A request of a client of the newest version of the protocol, which has no session; its result or error.
async fn alone(rig: &Rig, token: &str, capabilities: Value, method: &str, name: &str, mut params: Value) -> Value {
    params["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": { "name": "t", "version": "0" },
        "io.modelcontextprotocol/clientCapabilities": capabilities
    });
    let message = json!({ "jsonrpc": "2.0", "id": 8, "method": method, "params": params });
    let http = reqwest::Client::builder().no_proxy().build().expect("a client");
    let request = http.post(format!("http://{}/mcp", rig.controller.http)).bearer_auth(token);
    let request = request.header("accept", "application/json, text/event-stream").body(message.to_string());
    let request = request.header("content-type", "application/json").header("mcp-protocol-version", "2026-07-28");
    let answer = request.header("mcp-method", method).header("mcp-name", name).send().await.expect("an answer");
    let text = answer.text().await.expect("a body");
    let document = text.lines().find_map(|line| serde_json::from_str::<Value>(line.strip_prefix("data:")?).ok());
    document.or_else(|| serde_json::from_str(&text).ok()).unwrap_or_else(|| panic!("no message: {text}"))
}

fn run(to: &str) -> Value {
    json!({ "agent": "mail", "input": { "to": to }, "wait_seconds": 0.5 })
}

fn job_of(result: &Value) -> &str {
    result["structuredContent"]["job_id"].as_str().unwrap_or_else(|| panic!("no job: {result}"))
}

#[tokio::test]
async fn a_call_waits_and_only_others_are_asked_by_elicitation() {
    let rig = Rig::start(false).await;
    let (ann, bob) = (rig.person("ann", &RUNS).await, rig.person("bob", &RUNS).await);
    let carl = rig.person("carl", &["agents.read", "jobs.read", "jobs.submit"]).await;
    let (ann, bob, carl) =
        (Client::open(&rig, &ann).await, Client::open(&rig, &bob).await, Client::open(&rig, &carl).await);

    let (result, asked) = ann.call("agent_run", run("all"), &[APPROVE]).await;
    let content = &result["structuredContent"];
    assert_eq!((asked.len(), &content["status"]), (0, &json!("pending")), "{result}");
    let waits = "waiting for an approval, demanded by the rule \"mails\" of the policy \"base\"";
    assert_eq!(content["waiting_for"], waits, "{result}");
    let who = "whoever has the right questions.answer, except whoever submitted the job";
    assert_eq!(content["questions_to_others"][0]["who"], who, "{result}");
    let next = content["next"].as_str().unwrap_or_default();
    assert!(content["questions"].is_null() && next.contains("tell the user who may"), "{result}");
    let job = job_of(&result).to_owned();

    // The submitter answers in no way, and neither does somebody who may only wait.
    let question = content["questions_to_others"][0]["id"].clone();
    let answer = json!({ "job_id": job, "question_id": question, "answer": APPROVE });
    let (refused, _) = ann.call("job_answer", answer.clone(), &[]).await;
    assert!(refused["isError"] == true && refused.to_string().contains("E3042"), "{refused}");
    let (refused, _) = ann.call("job_answer", json!({ "job_id": job, "answer": APPROVE }), &[]).await;
    assert!(refused.to_string().contains("no open question that you may answer"), "{refused}");
    let (refused, _) = carl.call("job_answer", answer, &[]).await;
    assert!(refused["isError"] == true && refused.to_string().contains("E2107"), "{refused}");
    for client in [&ann, &carl] {
        let (result, asked) =
            client.call("job_wait", json!({ "job_id": job, "wait_seconds": 0.3 }), &[APPROVE, APPROVE]).await;
        assert_eq!((asked.len(), &result["structuredContent"]["status"]), (0, &json!("pending")), "{result}");
    }
    assert_eq!(rig.runs(), [Value::Null; 0]);

    // Another one is asked again after an answer that is none, and the job runs once.
    let wait = json!({ "job_id": job, "wait_seconds": 30 });
    let (result, asked) = bob.call("job_wait", wait, &["yes", APPROVE]).await;
    assert!(asked.len() == 2 && asked[0].starts_with("May ann run mail 1.0.0"), "{asked:?}");
    assert!(asked[1].contains("the answer must be \"approve\""), "{asked:?}");
    assert_eq!(result["structuredContent"]["output"], json!({ "sent": true }), "{result}");
    assert_eq!(rig.runs(), [json!({ "to": "all" })]);

    // A refusal is the result of whoever waits.
    let (result, _) = ann.call("agent_run", run("some"), &[]).await;
    let job = job_of(&result).to_owned();
    let (_, asked) = bob.call("job_wait", json!({ "job_id": job, "wait_seconds": 30 }), &["reject: no"]).await;
    assert_eq!(asked.len(), 1);
    let (result, _) = ann.call("job_wait", json!({ "job_id": job, "wait_seconds": 30 }), &[]).await;
    let error = result["structuredContent"]["error"].as_str().unwrap_or_default();
    assert!(result["isError"] == true && error.starts_with("E2112: bob rejected the job"), "{result}");
    assert_eq!(rig.runs().len(), 1);
}

#[tokio::test]
async fn a_rule_that_says_so_lets_the_submitter_answer_during_the_call() {
    let rig = Rig::start(true).await;
    let ann = rig.person("ann", &RUNS).await;
    let ann = Client::open(&rig, &ann).await;
    let (result, asked) = ann.call("agent_run", json!({ "agent": "mail", "input": { "to": "me" } }), &[APPROVE]).await;
    assert_eq!((asked.len(), &result["structuredContent"]["status"]), (1, &json!("completed")), "{result}");
    // Who declines goes on waiting.
    let (result, asked) = ann.call("agent_run", run("nobody"), &[]).await;
    assert_eq!((asked.len(), &result["structuredContent"]["status"]), (1, &json!("pending")), "{result}");
    // Without the right to answer, the rule is no help.
    let carl = rig.person("carl", &["agents.read", "jobs.read", "jobs.submit"]).await;
    let carl = Client::open(&rig, &carl).await;
    let (result, asked) = carl.call("agent_run", run("carl"), &[APPROVE]).await;
    assert_eq!((asked.len(), &result["structuredContent"]["status"]), (0, &json!("pending")), "{result}");
    assert_eq!(rig.runs(), [json!({ "to": "me" })]);
}

#[tokio::test]
async fn a_task_asks_whoever_may_answer() {
    let rig = Rig::start(false).await;
    let (ann, bob) = (rig.person("ann", &RUNS).await, rig.person("bob", &RUNS).await);
    let asks = json!({ "elicitation": {} });
    let tasks = json!({ "elicitation": {}, "extensions": { "io.modelcontextprotocol/tasks": {} } });
    let params = json!({ "name": "agent_run", "arguments": { "agent": "mail", "input": { "to": "all" } } });
    let task = alone(&rig, &ann, tasks.clone(), "tools/call", "agent_run", params).await;
    let id = task["result"]["taskId"].as_str().unwrap_or_else(|| panic!("no task: {task}")).to_owned();
    let get = async |token: &str| {
        alone(&rig, token, tasks.clone(), "tasks/get", &id, json!({ "taskId": id })).await["result"].clone()
    };
    let (of_ann, of_bob) = (get(&ann).await, get(&bob).await);
    assert_eq!(of_ann["status"], "working", "{of_ann}");
    assert_eq!(of_bob["status"], "input_required", "{of_bob}");
    let (question, request) =
        of_bob["inputRequests"].as_object().and_then(|all| all.iter().next()).expect("a question");
    assert!(request.to_string().contains("May ann run mail"), "{request}");

    // The submitter knows the id of the question, and may not answer: neither for the task, nor as the input that a result required.
    let responses = json!({ (question): { "action": "accept", "content": { "answer": APPROVE } } });
    let update = json!({ "taskId": id, "inputResponses": responses });
    let refused = alone(&rig, &ann, tasks.clone(), "tasks/update", &id, update.clone()).await;
    assert!(refused["error"].to_string().contains("E3042"), "{refused}");
    let again = json!({
        "name": "agent_run", "arguments": { "agent": "mail" }, "requestState": id, "inputResponses": responses
    });
    let refused = alone(&rig, &ann, asks.clone(), "tools/call", "agent_run", again).await;
    assert!(refused.to_string().contains("E3042"), "{refused}");
    assert_eq!(rig.runs(), [Value::Null; 0]);

    // Another one is asked by the result of a wait.
    let wait = json!({ "name": "job_wait", "arguments": { "job_id": id } });
    let asked = alone(&rig, &bob, asks, "tools/call", "job_wait", wait).await;
    assert_eq!(asked["result"]["resultType"], "input_required", "{asked}");
    let taken = alone(&rig, &bob, tasks.clone(), "tasks/update", &id, update).await;
    assert!(taken["error"].is_null(), "{taken}");
    rig.becomes(&id, "completed", "").await;
    let done = get(&ann).await;
    assert_eq!(done["result"]["structuredContent"]["output"], json!({ "sent": true }), "{done}");
    assert_eq!(rig.runs(), [json!({ "to": "all" })]);
}
