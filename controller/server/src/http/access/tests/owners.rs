//! Who may change what somebody began, at every door: one test for each door and verb, with whoever began it, somebody else with the same
//! role, an operator, and an administrator of another namespace.

use std::collections::BTreeSet;
use std::fs;

use atlas_access::Right;
use atlas_contract::platform;
use serde_json::{Value, json};

use super::{Cluster, ask_at, send_at};
use atlas_api::operations;

/// The way by which somebody asks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Door {
    /// An operation of the HTTP interface.
    Http,
    /// A tool of `/mcp`, or a method on its tasks.
    Mcp,
    /// A tool of the MCP server that is compatible with Atlas for Python.
    Compatible,
}

/// What a verb changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Thing {
    Job,
    EndedJob,
    Run,
    Conversation,
    Question,
}

/// Who may.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Rule {
    /// Whoever began it, and whoever may control what others began.
    OwnOrControl,
    /// Whoever may control what others began.
    Control,
    /// Whoever may answer questions.
    Answer,
}

/// A verb at a door.
#[derive(Debug, Clone, Copy)]
struct Row {
    door: Door,
    verb: &'static str,
    thing: Thing,
    rule: Rule,
}

macro_rules! matrix {
    ($($name:ident: $door:ident $verb:literal $thing:ident $rule:ident;)*) => {
        const ROWS: &[Row] =
            &[$(Row { door: Door::$door, verb: $verb, thing: Thing::$thing, rule: Rule::$rule }),*];

        mod each {
            use super::{Door, Row, Rule, Thing};

            $(#[tokio::test]
            async fn $name() {
                super::check(Row { door: Door::$door, verb: $verb, thing: Thing::$thing, rule: Rule::$rule }).await;
            })*
        }
    };
}

matrix! {
    http_cancels_jobs: Http "cancelJob" Job OwnOrControl;
    http_deletes_jobs: Http "deleteJob" Job OwnOrControl;
    http_retries_jobs: Http "retryJob" EndedJob OwnOrControl;
    http_forks_jobs: Http "forkJob" Job OwnOrControl;
    http_writes_to_jobs: Http "sendMessage" Job OwnOrControl;
    http_resolves_jobs: Http "resolveJob" Job Control;
    http_erases_jobs: Http "eraseJob" EndedJob Control;
    http_erases_all_jobs: Http "eraseJobs" EndedJob Control;
    http_cancels_runs: Http "cancelChainRun" Run OwnOrControl;
    http_deletes_conversations: Http "deleteConversation" Conversation OwnOrControl;
    http_answers_questions: Http "answerQuestion" Question Answer;
    mcp_cancels_jobs: Mcp "job_cancel" Job OwnOrControl;
    mcp_cancels_tasks: Mcp "tasks/cancel" Job OwnOrControl;
    mcp_answers_questions: Mcp "job_answer" Question Answer;
    mcp_updates_tasks: Mcp "tasks/update" Question Answer;
    compatible_cancels_jobs: Compatible "atlas.exec.cancel" Job OwnOrControl;
}

/// What happened to a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Heard {
    /// The caller lacks a right.
    Refused,
    /// There is no such thing.
    Unknown,
    /// Neither.
    LetIn,
}

fn heard(text: &str) -> Heard {
    // No such job, object, run of a chain, question.
    let unknown = ["E3001", "E1115", "E3030", "E3040", r#"cancelled\":false"#, r#""cancelled":false"#];
    match text {
        text if text.contains("E2107") => Heard::Refused,
        text if unknown.iter().any(|unknown| text.contains(unknown)) => Heard::Unknown,
        _ => Heard::LetIn,
    }
}

/// The tokens of those who ask.
struct People {
    cluster: Cluster,
    owner: String,
    other: String,
    operator: String,
    elsewhere: String,
}

/// Something that the owner began: its id and, of a question, that of its job.
struct Begun {
    id: String,
    job: String,
}

impl People {
    async fn start() -> Self {
        let cluster = Cluster::start(true).await;
        let people = Self {
            owner: cluster.principal("ann", "submitter", Some("default")).await,
            other: cluster.principal("bob", "submitter", Some("default")).await,
            operator: cluster.principal("olga", "operator", Some("default")).await,
            elsewhere: cluster.principal("eve", "admin", Some("b")).await,
            cluster,
        };
        for name in ["talker", "asked"] {
            let dir = tempfile::tempdir().expect("a folder");
            let contract = format!(
                "agent:\n  name: {name}\n  version: 1.0.0\n  provider: {{ type: exec, command: [cat] }}\n  \
                 input: {{ schema: {{ type: object, properties: {{ messages: {{ type: array }} }} }} }}\n"
            );
            fs::write(dir.path().join("agent.yaml"), contract).expect("a file");
            let package = atlas_package::pack(dir.path()).expect("packs");
            let (address, root) = (people.cluster.controller.http_addr(), Some(people.cluster.root.as_str()));
            let made = send_at(address, "POST", "/api/agents", root, &[], &package.bytes).await;
            assert_eq!(made.status, 201, "{}", made.text);
        }
        let when = "agent.name == 'asked'";
        let rule = json!({"name": "r", "on": ["submit"], "when": when, "effect": "ask", "ask": {"self": true}});
        people.does("PUT", "/api/objects/policy/p", &people.cluster.root, json!({"spec": {"rules": [rule]}})).await;
        people
    }

    async fn does(&self, method: &str, path: &str, token: &str, body: Value) -> Value {
        let heard = self.cluster.ask(method, path, Some(token), &body).await;
        assert!((200..300).contains(&heard.status), "{method} {path}: {}", heard.text);
        let body = heard.text.split_once("\r\n\r\n").map(|(_, body)| body).expect("a body");
        serde_json::from_str(body).unwrap_or_else(|error| panic!("{error}: {}", heard.text))
    }

    async fn submit(&self, body: Value) -> String {
        let made = self.does("POST", "/api/jobs", &self.owner, body).await;
        made["id"].as_str().expect("an id").to_owned()
    }

    /// What the owner begins. No worker is there, so that nothing ends by itself.
    async fn begin(&self, thing: Thing, name: &str) -> Begun {
        let (id, job) = match thing {
            Thing::Job => (self.submit(json!({"agent": "talker"})).await, String::new()),
            Thing::EndedJob => {
                let id = self.submit(json!({"agent": "talker"})).await;
                self.does("POST", &format!("/api/jobs/{id}/cancel"), &self.cluster.root, Value::Null).await;
                (id, String::new())
            }
            Thing::Run => {
                let chain = json!({"name": "c", "steps": [{"agent": "talker"}]});
                let made = self.does("POST", "/api/chains", &self.owner, json!({"chain": chain})).await;
                (made["id"].as_str().expect("an id").to_owned(), String::new())
            }
            Thing::Conversation => {
                let said = json!({"agent": "talker", "input": {"message": "hello"}, "conversation": name});
                (name.to_owned(), self.submit(said).await)
            }
            Thing::Question => {
                let job = self.submit(json!({"agent": "asked"})).await;
                let path = format!("/api/jobs/{job}?view=full");
                let shown = self.does("GET", &path, &self.cluster.root, Value::Null).await;
                let question = shown["needs_approval"][0]["question"].as_str();
                (question.unwrap_or_else(|| panic!("no question: {shown}")).to_owned(), job)
            }
        };
        Begun { id, job }
    }

    /// What a request could have changed.
    async fn seen(&self) -> Value {
        let get = async |path: &str| self.does("GET", path, &self.cluster.root, Value::Null).await;
        let (jobs, runs) = (get("/api/jobs?limit=1000").await, get("/api/chains").await);
        // Whether a run has its job yet is not of interest.
        let jobs = jobs
            .as_array()
            .expect("jobs")
            .iter()
            .map(|job| json!([job["id"], job["status"]]))
            .filter(|job| runs.as_array().is_some_and(Vec::is_empty) || job[1] != "pending");
        let ended = runs.as_array().expect("runs").iter().filter(|run| run["status"] == "cancelled").count();
        json!({
            "jobs": jobs.collect::<Vec<_>>(),
            "runs": ended,
            "conversations": get("/api/conversations").await.as_array().map(Vec::len),
            "questions": get("/api/questions").await.as_array().map(Vec::len),
        })
    }

    /// Asks at a door, in a namespace.
    async fn ask(&self, row: Row, begun: &Begun, token: &str, namespace: &str) -> String {
        let Begun { id, job } = begun;
        match row.door {
            Door::Http => {
                let operation = operations().find(|operation| operation.id.name() == row.verb).expect("an operation");
                let path = format!("{}?namespace={namespace}", operation.path.replace("{id}", id));
                let body = match row.verb {
                    "forkJob" => json!({"steps": 1}),
                    "sendMessage" => json!({"message": 1}),
                    "resolveJob" => json!({"error": "x"}),
                    "answerQuestion" => json!({"answer": "approve"}),
                    _ => Value::Null,
                };
                self.cluster.ask(operation.verb.as_str(), &path, Some(token), &body).await.text
            }
            Door::Mcp => {
                let tool =
                    |arguments: Value| ("tools/call", row.verb, json!({"name": row.verb, "arguments": arguments}));
                let (method, name, params) = match row.verb {
                    "tasks/cancel" => (row.verb, id.as_str(), json!({"taskId": id})),
                    "tasks/update" => {
                        let response = json!({"action": "accept", "content": {"answer": "approve"}});
                        (row.verb, job.as_str(), json!({"taskId": job, "inputResponses": {id: response}}))
                    }
                    "job_answer" => tool(json!({"job_id": job, "question_id": id, "answer": "approve"})),
                    _ => tool(json!({"job_id": id})),
                };
                self.mcp(token, namespace, method, name, params).await
            }
            Door::Compatible => {
                let params = json!({"name": row.verb, "arguments": {"job_id": id}});
                self.cluster.call_compatible(token, "tools/call", &params).await.to_string()
            }
        }
    }

    async fn mcp(&self, token: &str, namespace: &str, method: &str, name: &str, mut params: Value) -> String {
        params["_meta"] = json!({
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": {
                "elicitation": {}, "extensions": {"io.modelcontextprotocol/tasks": {}}
            },
        });
        let headers = [("mcp-protocol-version", "2026-07-28"), ("mcp-method", method), ("mcp-name", name)];
        let call = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
        let path = format!("/mcp?namespace={namespace}");
        ask_at(self.cluster.controller.http_addr(), "POST", &path, Some(token), &headers, &call).await.text
    }
}

async fn check(row: Row) {
    let people = People::start().await;
    let viewer = people.cluster.principal("vic", "viewer", Some("default")).await;
    let (owner_may, other_may) = match row.rule {
        Rule::OwnOrControl => (Heard::LetIn, Heard::Refused),
        Rule::Control => (Heard::Refused, Heard::Refused),
        Rule::Answer => (Heard::LetIn, Heard::LetIn),
    };
    let mut wrong = Vec::new();
    for (who, token, namespace, expected) in [
        ("whoever began it", &people.owner, "default", owner_may),
        ("somebody else", &people.other, "default", other_may),
        ("somebody who only reads", &viewer, "default", Heard::Refused),
        ("the administrator of another namespace", &people.elsewhere, "default", Heard::Refused),
        ("the same in that namespace", &people.elsewhere, "b", Heard::Unknown),
        // Last: an erasure reaches the history a moment after its answer.
        ("an operator", &people.operator, "default", Heard::LetIn),
    ] {
        let is_one = namespace == "default" || row.door != Door::Compatible && row.verb != "eraseJobs";
        if !is_one {
            // These are about no other namespace than that of the caller.
            continue;
        }
        let begun = people.begin(row.thing, &who.replace(' ', "-")).await;
        let before = people.seen().await;
        let text = people.ask(row, &begun, token, namespace).await;
        if heard(&text) != expected {
            wrong.push(format!("{who}: {text}"));
        }
        if expected != Heard::LetIn && people.seen().await != before {
            wrong.push(format!("{who} was refused and changed something"));
        }
    }
    assert_eq!(wrong, Vec::<String>::new(), "{row:?}");
    people.cluster.controller.shutdown().await;
}

/// Tools that only read, or begin something new.
const READS_OR_BEGINS: &[&str] = &[
    "agent_run",
    "chain_run",
    "atlas.registry.list",
    "atlas.registry.describe",
    "atlas.registry.search",
    "atlas.exec.run",
    "atlas.exec.spawn",
    "atlas.exec.status",
    "atlas.queue.inspect",
    "atlas.monitor.health",
    "atlas.monitor.metrics",
    "atlas.monitor.trace",
    "atlas.monitor.traces",
];

#[tokio::test]
async fn every_verb_that_changes_what_somebody_began_has_a_test() {
    let cluster = Cluster::start(true).await;
    let root = cluster.root.clone();
    let tools = cluster.call("/mcp", &root, "tools/list", json!({})).await;
    let tools = tools["result"]["tools"].as_array().expect("tools").clone();
    let changes = tools.iter().filter(|tool| tool["annotations"]["readOnlyHint"] != true);
    let changes = changes.filter_map(|tool| tool["name"].as_str());
    let changes = changes.chain(platform::TOOLS.iter().map(|tool| tool.name));
    let changes = changes.filter(|name| !READS_OR_BEGINS.contains(name));
    let of_others = |right: Right| [Right::JobsControl, Right::QuestionsAnswer].contains(&right);
    let changes = changes.chain(operations().filter(|operation| of_others(operation.right)).map(|one| one.id.name()));
    let changes: BTreeSet<String> = changes.map(str::to_owned).collect();
    let tested: BTreeSet<String> =
        ROWS.iter().map(|row| row.verb.to_owned()).filter(|verb| !verb.starts_with("tasks/")).collect();
    assert_eq!(changes, tested);
    cluster.controller.shutdown().await;
}

#[tokio::test]
async fn a_conversation_is_not_deleted_as_an_object_by_somebody_else() {
    let people = People::start().await;
    let role = json!({"spec": {"rights": ["jobs.submit", "objects.write"]}});
    people.does("PUT", "/api/objects/role/writer", &people.cluster.root, role).await;
    let carl = people.cluster.principal("carl", "writer", Some("default")).await;
    let begun = people.begin(Thing::Conversation, "trip").await;
    let path = format!("/api/objects/conversation/{}", begun.id);
    for (method, body) in [("DELETE", Value::Null), ("PUT", json!({"labels": {"a": "b"}, "spec": {}}))] {
        let heard = people.cluster.ask(method, &path, Some(&carl), &body).await;
        assert_eq!(heard.code, "E2107", "{method}: {}", heard.text);
    }
    people.does("DELETE", &path, &people.operator, Value::Null).await;
    people.cluster.controller.shutdown().await;
}

/// Who may submit jobs and not read them sees what happens to its own.
#[tokio::test]
async fn a_call_that_goes_on_shows_no_job_of_another() {
    let people = People::start().await;
    let role = json!({"spec": {"rights": ["agents.read", "jobs.submit"]}});
    people.does("PUT", "/api/objects/role/runner", &people.cluster.root, role).await;
    let carl = people.cluster.principal("carl", "runner", Some("default")).await;
    let chain = json!({"spec": {"steps": [{"agent": "talker"}]}});
    people.does("PUT", "/api/objects/chain/c", &people.cluster.root, chain).await;
    let id = |text: &str, begin: &str| {
        let at = text.find(begin).unwrap_or_else(|| panic!("no {begin}: {text}"));
        text[at..].chars().take(begin.len() + 16).collect::<String>()
    };

    let run = |state: Option<&str>| {
        let mut params = json!({"name": "agent_run", "arguments": {"agent": "talker", "wait_seconds": 0}});
        if let Some(state) = state {
            (params["requestState"], params["inputResponses"]) = (json!(state), json!({}));
        }
        params
    };
    let call = async |tool: &str, params: Value| people.mcp(&carl, "default", "tools/call", tool, params).await;
    let own = id(&call("agent_run", run(None)).await, "job-");
    assert_eq!(heard(&call("agent_run", run(Some(&own))).await), Heard::LetIn);
    let other = people.begin(Thing::Job, "").await.id;
    let text = call("agent_run", run(Some(&other))).await;
    assert!(text.contains("E2107") && text.contains("jobs.read"), "{text}");

    let wait = |arguments: Value| json!({"name": "chain_run", "arguments": arguments});
    let own = id(&call("chain_run", wait(json!({"chain": "c", "wait_seconds": 0}))).await, "chain-");
    assert_eq!(heard(&call("chain_run", wait(json!({"id": own, "wait_seconds": 0}))).await), Heard::LetIn);
    let other = people.begin(Thing::Run, "").await.id;
    let text = call("chain_run", wait(json!({"id": other, "wait_seconds": 0}))).await;
    assert!(text.contains("E2107") && text.contains("jobs.read"), "{text}");
    people.cluster.controller.shutdown().await;
}
