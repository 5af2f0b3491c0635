//! Who may use what: each operation with each role, with no role and with tokens that are none, at each door that reaches it.
//!
//! The cases come from the rows of the operations, and from what the doors say that their tools and methods stand for. What is expected comes from
//! the row. What somebody began is in `owners`, and what the rows say in `rows`.

use atlas_access::{BUILT_IN, Right, Rights, token};
use atlas_api::{Agents, Bases, Body, Operation, Ownership, operations};
use atlas_contract::platform;
use atlas_gateway::mcp_verbs;
use atlas_service::tool_operation;
use serde_json::{Map, Value, json};

use super::*;

/// The tools that everybody with a token may call. Every other tool stands for an operation.
const PUBLIC_TOOLS: [&str; 2] = ["docs_search", "atlas.monitor.health"];

/// The tools of the compatible server that change something; that server says it of none.
const CHANGES: [&str; 3] = ["atlas.exec.run", "atlas.exec.spawn", "atlas.exec.cancel"];

/// The way by which somebody asks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Door {
    /// An operation of the HTTP interface.
    Http,
    /// A tool or a method of `/mcp`.
    Mcp,
    /// A tool or a method of the MCP server that is compatible with Atlas for Python.
    Compatible,
}

/// One operation at one door.
#[derive(Debug, Clone, Copy)]
pub(super) struct Case {
    pub(super) door: Door,
    /// The operation, the tool or the method.
    pub(super) verb: &'static str,
    /// Whether it is a tool.
    is_tool: bool,
    /// The operation that it stands for; none for what is public.
    pub(super) row: Option<&'static Operation>,
}

/// What a request names.
#[derive(Debug, Clone)]
pub(super) struct Named {
    pub(super) namespace: &'static str,
    /// What stands for the first parameter of a path, and the job of a tool.
    pub(super) id: String,
    /// The job of a tool, if it is another one.
    pub(super) job: String,
    pub(super) question: String,
}

/// All cases of a door.
pub(super) fn cases(door: Door) -> Vec<Case> {
    match door {
        Door::Http => {
            let case = |row: &'static Operation| Case { door, verb: row.id.name(), is_tool: false, row: Some(row) };
            operations().map(case).collect()
        }
        Door::Mcp => {
            let verbs = mcp_verbs();
            verbs
                .map(|verb| Case {
                    door,
                    verb: verb.name,
                    is_tool: verb.is_tool,
                    row: verb.operation.map(|operation| operation.row()),
                })
                .collect()
        }
        Door::Compatible => {
            let list = Case { door, verb: "tools/list", is_tool: false, row: Some(Agents::ListAgents.id().row()) };
            let tool = |tool: &platform::Tool| Case {
                door,
                verb: tool.name,
                is_tool: true,
                row: tool_operation(tool.name).map(|operation| operation.row()),
            };
            platform::TOOLS.iter().map(tool).chain([list]).collect()
        }
    }
}

impl Case {
    /// Whether somebody with these rights may: by the right of the row, or as the one who began what is named.
    pub(super) fn lets_in(self, rights: Rights, is_own: bool) -> bool {
        let Some(row) = self.row else { return true };
        let owns = is_own && row.ownership == Ownership::OwnOrControl && rights.has(Right::JobsSubmit);
        row.right == Right::Public || rights.has(row.right) || owns
    }

    /// Whether an answer without a valid token is a refusal.
    fn needs_token(self) -> bool {
        let is_told = |row: &Operation| row.errors().iter().any(|error| error.code == "E2106");
        // The servers of MCP ask for a token before they look at a message.
        self.door != Door::Http || self.row.is_some_and(is_told)
    }

    /// Whether an answer says that the caller lacks a right.
    fn is_refusal(self, heard: &Heard) -> bool {
        match self.door {
            Door::Http => heard.code == "E2107",
            // The servers of MCP tell errors in their messages.
            _ => heard.text.contains("E2107"),
        }
    }

    /// Whether a refusal names the right that is lacking.
    fn names_its_right(self, heard: &Heard) -> bool {
        self.row.is_some_and(|row| heard.text.contains(&format!("lacks the right {}", row.right)))
    }

    /// Whether it only reads, and names nothing that has to be there.
    fn lists(self) -> bool {
        self.row.is_none_or(|row| row.verb.as_str() == "GET" && !row.path.contains('{'))
    }

    fn is_in_namespace(self) -> bool {
        self.row.is_none_or(|row| row.in_namespace)
    }

    /// Asks for it.
    pub(super) async fn ask(self, cluster: &Cluster, token: Option<&str>, named: &Named) -> Heard {
        let (verb, params) = match self.door {
            Door::Http => return self.ask_http(cluster, token, named).await,
            _ if self.is_tool => ("tools/call", json!({"name": self.verb, "arguments": self.arguments(named)})),
            _ => (self.verb, self.params(named)),
        };
        match self.door {
            Door::Compatible => cluster.ask_compatible(token, verb, &params).await,
            _ => cluster.ask_mcp(token, named.namespace, verb, params).await,
        }
    }

    async fn ask_http(self, cluster: &Cluster, token: Option<&str>, named: &Named) -> Heard {
        let row = self.row.expect("an operation is a row");
        let part = |part: &str| match part {
            "{kind}" => "webhook".to_owned(),
            "{version}" => "1.0.0".to_owned(),
            part if part.starts_with('{') => named.id.clone(),
            part => part.to_owned(),
        };
        let mut path = row.path.split('/').map(part).collect::<Vec<_>>().join("/");
        if row.in_namespace {
            path = format!("{path}?namespace={}", named.namespace);
        }
        let body = match (row.body, self.verb) {
            (Body::None | Body::MaybeJson(_) | Body::Package, _) => Value::Null,
            (Body::Json(_), "forkJob") => json!({"steps": 1}),
            (Body::Json(_), "sendMessage") => json!({"message": 1}),
            (Body::Json(_), "resolveJob") => json!({"error": "x"}),
            (Body::Json(_), "answerQuestion") => json!({"answer": "approve"}),
            (Body::Json(_), verb) if self.is_about_what_was_begun() => panic!("write a body of {verb}"),
            // Whether somebody may is decided before the body is read.
            (Body::Json(_), _) => Value::Null,
        };
        cluster.ask(row.verb.as_str(), &path, token, &body).await
    }

    /// Whether it changes what somebody began.
    pub(super) fn is_about_what_was_begun(self) -> bool {
        self.row.is_some_and(|row| {
            row.ownership == Ownership::OwnOrControl
                || [Right::JobsControl, Right::QuestionsAnswer].contains(&row.right)
        })
    }

    /// The arguments of a tool, by its schema.
    fn arguments(self, named: &Named) -> Value {
        let schema = match self.door {
            Door::Compatible => platform::find(self.verb).map(platform::Tool::input_schema),
            _ => mcp_verbs().find(|verb| verb.name == self.verb).and_then(|verb| verb.input_schema()),
        };
        let schema = schema.unwrap_or_else(|| panic!("{self:?} has no schema"));
        let value = |name: &str| {
            Some(match name {
                "job_id" | "trace_id" => json!(named.job),
                "question_id" => json!(named.question),
                "answer" => json!("approve"),
                "agent" | "name" | "chain" | "base" => json!("nothing"),
                "input" => json!({}),
                "query" => json!("x"),
                "wait_seconds" => json!(0),
                _ => return None,
            })
        };
        let properties = schema["properties"].as_object().into_iter().flatten();
        let given: Map<String, Value> = properties.filter_map(|(name, _)| Some((name.clone(), value(name)?))).collect();
        let required = schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str);
        let missing: Vec<&str> = required.filter(|name| !given.contains_key(*name)).collect();
        assert!(missing.is_empty(), "write what {self:?} gets for {missing:?}");
        Value::Object(given)
    }

    /// The parameters of a method.
    fn params(self, named: &Named) -> Value {
        match self.verb {
            "tools/list" => json!({}),
            "subscriptions/listen" => json!({"notifications": {"toolsListChanged": true}}),
            "resources/read" => json!({"uri": format!("atlas://jobs/{}/output", named.job)}),
            "tasks/get" | "tasks/cancel" => json!({"taskId": named.job}),
            "tasks/update" => {
                let response = json!({"action": "accept", "content": {"answer": "approve"}});
                json!({"taskId": named.job, "inputResponses": {&named.question: response}})
            }
            verb => panic!("write the parameters of {verb}"),
        }
    }
}

/// Things that do not exist.
fn nothing(namespace: &'static str) -> Named {
    Named {
        namespace,
        id: "nothing".to_owned(),
        job: "job-0000000000000001".to_owned(),
        question: "question-0000000000000001".to_owned(),
    }
}

/// Each role, and none, at each case of a door. Whether it is somebody's is not asked here: there is nothing.
async fn roles(door: Door) {
    let cluster = Cluster::start(true).await;
    let mut wrong = Vec::new();
    let roles =
        BUILT_IN.into_iter().flat_map(|(role, rights)| [(Some(role), rights, None), (Some(role), rights, Some("a"))]);
    for (role, rights, place) in roles.chain([(None, Rights::of(&[]), None)]) {
        let name = format!("{}-{}", role.unwrap_or("nobody"), place.unwrap_or("everywhere"));
        let token = match role {
            Some(role) => cluster.principal(&name, role, place).await,
            None => cluster.token_of(&name).await,
        };
        for case in cases(door) {
            // The compatible server knows the namespace `default` alone.
            let counts = match door {
                Door::Compatible => place.is_none(),
                _ => place.is_none() || case.is_in_namespace(),
            };
            let expected = case.lets_in(if counts { rights } else { Rights::of(&[]) }, true);
            // A stream does not end for those who may have it.
            if expected && case.verb == "subscriptions/listen" {
                continue;
            }
            let heard = case.ask(&cluster, Some(&token), &nothing(if counts { "a" } else { "default" })).await;
            if case.is_refusal(&heard) == expected || heard.code == "E2106" {
                wrong.push(format!("{name}: {} gives {} {}", case.verb, heard.status, heard.text));
            }
            if case.is_refusal(&heard) && !case.names_its_right(&heard) {
                wrong.push(format!("{name}: {} does not name the right: {}", case.verb, heard.text));
            }
        }
    }
    assert_eq!(wrong, Vec::<String>::new());
    cluster.controller.shutdown().await;
}

#[tokio::test]
async fn every_operation_needs_its_right() {
    roles(Door::Http).await;
}

#[tokio::test]
async fn every_verb_of_mcp_needs_the_right_of_its_operation() {
    roles(Door::Mcp).await;
}

#[tokio::test]
async fn every_verb_of_the_compatible_server_needs_the_right_of_its_operation() {
    roles(Door::Compatible).await;
}

#[tokio::test]
async fn without_a_valid_token_only_public_operations_answer() {
    let cluster = Cluster::start(true).await;
    let (forged, expired) = (token("ci", [9; 4]), cluster.expired().await);
    let revoked = cluster.principal("gone", "admin", None).await;
    let removed = cluster.ask("DELETE", "/api/objects/token/gone", Some(&cluster.root), &Value::Null).await;
    assert_eq!(removed.status, 200, "{}", removed.text);
    let mut wrong = Vec::new();
    for case in [Door::Http, Door::Mcp, Door::Compatible].into_iter().flat_map(cases) {
        for token in [None, Some("secret"), Some(forged.as_str()), Some(expired.as_str()), Some(revoked.as_str())] {
            let heard = case.ask(&cluster, token, &nothing("default")).await;
            let (is_refused, has_code) = (heard.status == 401, heard.code == "E2106");
            if is_refused != case.needs_token() || has_code != case.needs_token() {
                wrong.push(format!(
                    "{:?} {} with {token:?} gives {} {}",
                    case.door, case.verb, heard.status, heard.code
                ));
            }
            if is_refused && !heard.text.contains("www-authenticate: Bearer") {
                wrong.push(format!("{:?} {} names no scheme: {}", case.door, case.verb, heard.text));
            }
        }
    }
    assert_eq!(wrong, Vec::<String>::new());
    cluster.controller.shutdown().await;
}

/// Every tool that a server lists has a case, and one that changes something stands for an operation that does.
#[tokio::test]
async fn every_tool_stands_for_an_operation() {
    let cluster = Cluster::start(true).await;
    for (door, listed) in [
        (Door::Mcp, cluster.ask_mcp(Some(&cluster.root), "default", "tools/list", json!({})).await),
        (Door::Compatible, cluster.ask_compatible(Some(&cluster.root), "tools/list", &json!({})).await),
    ] {
        let listed = listed.body();
        let tools = listed["result"]["tools"].as_array().unwrap_or_else(|| panic!("{listed}"));
        assert!(!tools.is_empty());
        for tool in tools {
            let case = cases(door).into_iter().find(|case| case.verb == tool["name"]);
            let case = case.unwrap_or_else(|| panic!("{door:?}: {} is no case", tool["name"]));
            let is_public = PUBLIC_TOOLS.contains(&case.verb);
            assert_eq!(case.row.is_none(), is_public, "{case:?}: whoever may call it has the right of an operation");
            let changes = match door {
                Door::Compatible => CHANGES.contains(&case.verb),
                _ => tool["annotations"]["readOnlyHint"] != true,
            };
            // A search has its question in the body.
            let is_search = |row: &Operation| row.id == Bases::SearchDocuments.id();
            let stands_for_a_change = case.row.is_some_and(|row| row.verb.as_str() != "GET" && !is_search(row));
            assert_eq!(changes, stands_for_a_change, "{case:?}");
        }
    }
    cluster.controller.shutdown().await;
}

#[tokio::test]
async fn who_only_reads_reads_over_mcp() {
    let cluster = Cluster::start(true).await;
    let viewer = cluster.principal("ann", "viewer", None).await;
    for door in [Door::Mcp, Door::Compatible] {
        let mut read = 0;
        // A stream has no end.
        for case in cases(door).into_iter().filter(|case| case.lists() && case.verb != "subscriptions/listen") {
            let heard = case.ask(&cluster, Some(&viewer), &nothing("default")).await.body();
            let is_read = heard["result"].is_object() && heard["result"]["isError"] != true;
            assert!(is_read, "{door:?} {}: {heard}", case.verb);
            read += 1;
        }
        assert!(read >= 3, "{door:?}: {read}");
    }
    cluster.controller.shutdown().await;
}

/// The server of an agent names operations as well.
#[tokio::test]
async fn the_server_of_an_agent_needs_rights() {
    let cluster = Cluster::start(true).await;
    let nobody = cluster.principal("nobody", "viewer", Some("elsewhere")).await;
    let viewer = cluster.principal("ann", "viewer", None).await;
    let health = json!({"name": "get_health", "arguments": {}});
    let heard = cluster.call("/agents/echo/mcp", &nobody, "tools/call", health.clone()).await;
    assert!(heard.to_string().contains("E2107") && heard.to_string().contains("agents.read"), "{heard}");
    let heard = cluster.call("/agents/echo/mcp", &viewer, "tools/call", health).await;
    assert_eq!(heard["code"], "E1101", "{heard}");
    let heard = cluster
        .ask("POST", "/agents/nobody/mcp", None, &json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"}))
        .await;
    assert_eq!((heard.status, heard.code.as_str()), (401, "E2106"), "{}", heard.text);
    cluster.controller.shutdown().await;
}
