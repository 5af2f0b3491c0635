//! Who may change what somebody began, at every door: each case with whoever began it, somebody else with the same role, an operator, and an
//! administrator of another namespace. The rows of the operations say what is expected.

use std::fs;

use atlas_access::{Rights, built_in};
use atlas_api::Operation;
use serde_json::{Value, json};

use super::matrix::{Door, Named, cases};
use super::{Cluster, send_at};

/// What a case changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Thing {
    Job,
    EndedJob,
    Run,
    Conversation,
    Question,
    Response,
}

impl Thing {
    /// What an operation is about, by its path.
    fn of(row: &Operation) -> Self {
        match row.path {
            path if path.ends_with("/retry") || path.ends_with("erase") => Self::EndedJob,
            path if path.starts_with("/api/jobs") => Self::Job,
            path if path.starts_with("/v1/responses/") => Self::Response,
            path if path.starts_with("/api/chains/") => Self::Run,
            path if path.starts_with("/api/conversations/") => Self::Conversation,
            path if path.starts_with("/api/questions/") => Self::Question,
            path => panic!("write how somebody begins what {path} changes"),
        }
    }
}

/// What happened to a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Outcome {
    /// The caller lacks a right.
    Refused,
    /// There is no such thing.
    Unknown,
    /// Neither.
    LetIn,
}

fn outcome(text: &str) -> Outcome {
    // No such job, object, run of a chain, question.
    let unknown = ["E3001", "E1115", "E3030", "E3040", r#"cancelled\":false"#, r#""cancelled":false"#];
    match text {
        text if text.contains("E2107") => Outcome::Refused,
        text if unknown.iter().any(|unknown| text.contains(unknown)) => Outcome::Unknown,
        _ => Outcome::LetIn,
    }
}

/// The tokens of those who ask.
struct People {
    cluster: Cluster,
    owner: String,
    other: String,
    viewer: String,
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
            viewer: cluster.principal("vic", "viewer", Some("default")).await,
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
            Thing::Response => {
                let asked = json!({"model": "talker", "input": "hello", "background": true});
                let made = self.does("POST", "/v1/responses", &self.owner, asked).await;
                (made["id"].as_str().expect("an id").to_owned(), String::new())
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
}

/// Who asks, with which rights, whether it began what it asks for, and where it looks for it.
struct Asking<'a> {
    who: &'static str,
    token: &'a str,
    rights: Rights,
    is_own: bool,
    namespace: &'static str,
}

/// Each case of a door that changes what somebody began, with whoever began it, with others, and from another namespace.
async fn owners(door: Door) {
    let mut people = People::start().await;
    let rights = |role: &str| built_in(role).expect("a role");
    let nothing = Rights::of(&[]);
    let mut wrong = Vec::new();
    let (mut all, mut tried) = (cases(door), 0);
    let erases = |verb: &str| verb.starts_with("erase") || verb == "deleteResponse";
    all.sort_by_key(|case| erases(case.verb));
    for case in all.into_iter().filter(|case| case.is_about_what_was_begun()) {
        let row = case.row.expect("it is about something");
        if erases(case.verb) {
            // An erasure reaches the history a moment after its answer.
            people.cluster.controller.shutdown().await;
            people = People::start().await;
        }
        let asking = |who, token, rights, is_own, namespace| Asking { who, token, rights, is_own, namespace };
        for Asking { who, token, rights, is_own, namespace } in [
            asking("whoever began it", people.owner.as_str(), rights("submitter"), true, "default"),
            asking("somebody else", &people.other, rights("submitter"), false, "default"),
            asking("somebody who only reads", &people.viewer, rights("viewer"), false, "default"),
            asking("the administrator of another namespace", &people.elsewhere, nothing, false, "default"),
            asking("the same in that namespace", &people.elsewhere, rights("admin"), false, "b"),
            asking("an operator", &people.operator, rights("operator"), false, "default"),
        ] {
            let expected = match (case.lets_in(rights, is_own), namespace) {
                (true, "default") => Outcome::LetIn,
                (true, _) => Outcome::Unknown,
                (false, _) => Outcome::Refused,
            };
            // The compatible server knows no other namespace, and these are about all of one.
            if namespace != "default" && (door == Door::Compatible || !row.path.contains('{')) {
                continue;
            }
            tried += 1;
            let name = format!("{}-{}", case.verb.to_lowercase(), who.replace(' ', "-"));
            let begun = people.begin(Thing::of(row), &name).await;
            let before = people.seen().await;
            let named = Named {
                namespace,
                job: if begun.job.is_empty() { begun.id.clone() } else { begun.job },
                question: begun.id.clone(),
                id: begun.id,
            };
            let heard = case.ask(&people.cluster, Some(token), &named).await;
            if outcome(&heard.text) != expected {
                wrong.push(format!("{}: {who} expects {expected:?}: {}", case.verb, heard.text));
            }
            if expected != Outcome::LetIn && people.seen().await != before {
                wrong.push(format!("{}: {who} was refused and changed something", case.verb));
            }
        }
    }
    assert_eq!(wrong, Vec::<String>::new());
    assert!(tried >= 5, "{tried} cases");
    people.cluster.controller.shutdown().await;
}

#[tokio::test]
async fn owners_count_over_http() {
    owners(Door::Http).await;
}

#[tokio::test]
async fn owners_count_over_mcp() {
    owners(Door::Mcp).await;
}

#[tokio::test]
async fn owners_count_at_the_compatible_server() {
    owners(Door::Compatible).await;
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
    let call = async |params: Value| people.cluster.ask_mcp(Some(&carl), "default", "tools/call", params).await.text;
    let own = id(&call(run(None)).await, "job-");
    assert_eq!(outcome(&call(run(Some(&own))).await), Outcome::LetIn);
    let other = people.begin(Thing::Job, "").await.id;
    let text = call(run(Some(&other))).await;
    assert!(text.contains("E2107") && text.contains("jobs.read"), "{text}");

    let wait = |arguments: Value| json!({"name": "chain_run", "arguments": arguments});
    let own = id(&call(wait(json!({"chain": "c", "wait_seconds": 0}))).await, "chain-");
    assert_eq!(outcome(&call(wait(json!({"id": own, "wait_seconds": 0}))).await), Outcome::LetIn);
    let other = people.begin(Thing::Run, "").await.id;
    let text = call(wait(json!({"id": other, "wait_seconds": 0}))).await;
    assert!(text.contains("E2107") && text.contains("jobs.read"), "{text}");
    people.cluster.controller.shutdown().await;
}
