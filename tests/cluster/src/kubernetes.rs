//! The operator for Kubernetes: an API server of our own, and a real controller.

mod api_server;
mod secrets;
mod store;

pub(crate) use api_server::{GRANTED, GRANTED_AT_HOME};
pub(crate) use secrets::{Secrets, mount};

use std::path::Path;
use std::process::Command;

use expect_test::expect;
use nix::sys::signal::Signal;
use reqwest::Method;
use serde_json::{Value, json};

use self::api_server::ApiServer;
use crate::pair::Controller;
use crate::patience::eventually_async;
use crate::process::Process;
use crate::program::program;

/// A controller with tokens, an API server, and what an operator needs for both.
struct Bench {
    folder: tempfile::TempDir,
    controller: Controller,
    api: ApiServer,
    http: reqwest::Client,
}

const TOKEN: &str = "atl_root_00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff";

impl Bench {
    async fn new() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let root = folder.path().join("root.token");
        write_secret(&root, TOKEN);
        write_secret(&folder.path().join("operator.token"), TOKEN);
        let options = ["--auth", "tokens", "--root-token-file", root.to_str().expect("text")];
        let controller = Controller::start_with(folder.path(), &options);
        let api = ApiServer::start().await;
        let config = json!({
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "test",
            "contexts": [{"name": "test", "context": {"cluster": "test", "user": "test"}}],
            "clusters": [{"name": "test", "cluster": {"server": format!("http://{}", api.address)}}],
            "users": [{"name": "test", "user": {}}],
        });
        std::fs::write(folder.path().join("kubeconfig"), config.to_string()).expect("a file");
        let http = reqwest::Client::builder().no_proxy().build().expect("a client");
        Self { folder, controller, api, http }
    }

    fn operator(&self, identity: &str) -> Process {
        self.operator_of(identity, &format!("http://{}", self.controller.http))
    }

    fn operator_of(&self, identity: &str, server: &str) -> Process {
        let mut command = Command::new(program("atlas-operator"));
        command.env("KUBECONFIG", self.folder.path().join("kubeconfig"));
        command.args(["--server", server]);
        command.arg("--token-file").arg(self.folder.path().join("operator.token"));
        command.args(["--namespace", "atlas", "--watch", "team-a", "--identity", identity, "--resync", "1"]);
        Process::start(command.args(["--listen", "127.0.0.1:0"]))
    }

    /// Asks the controller; an error has the status.
    async fn ask(&self, method: Method, path: &str, body: Option<Value>) -> Result<Value, String> {
        let request = self.http.request(method, format!("http://{}{path}", self.controller.http)).bearer_auth(TOKEN);
        let request = if let Some(body) = body { request.json(&body) } else { request };
        let answer = request.send().await.map_err(|error| error.to_string())?;
        let status = answer.status();
        let text = answer.text().await.map_err(|error| error.to_string())?;
        if !status.is_success() {
            return Err(format!("{}: {text}", status.as_u16()));
        }
        serde_json::from_str(&text).map_err(|error| error.to_string())
    }

    async fn object(&self, path: &str) -> Result<Value, String> {
        self.ask(Method::GET, &format!("/api/objects/{path}"), None).await
    }

    /// Waits until a resource has this condition, for its present generation.
    async fn becomes(&self, resource: &str, expected: &str) -> Value {
        eventually_async(&format!("{resource} becomes {expected}"), async || {
            let found = self.api.get(resource).ok_or("it is gone")?;
            let condition = &found["status"]["conditions"][0];
            let text = |member: &str| condition[member].as_str().unwrap_or_default();
            let shown = format!("{} {}", text("status"), text("reason"));
            let is_new = condition["observedGeneration"] == found["metadata"]["generation"];
            if shown == expected && is_new { Ok(found.clone()) } else { Err(found.to_string()) }
        })
        .await
    }
}

fn write_secret(path: &Path, text: &str) {
    use std::os::unix::fs::PermissionsExt as _;
    std::fs::write(path, text).expect("a file");
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600)).expect("a mode");
}

const CONTRACT: &str = "agent:
  name: hello
  version: 1.0.0
  input_schema: {type: object}
  output_schema: {type: object}
  provider: {type: exec, command: [./run.sh]}
";

fn hello() -> Value {
    json!({"files": {"agent.yaml": CONTRACT, "run.sh": "#!/bin/sh\ncat\n"}, "executable": ["run.sh"]})
}

fn greet(description: &str) -> Value {
    json!({"description": description, "steps": [{"agent": "hello"}]})
}

#[tokio::test(flavor = "multi_thread")]
async fn resources_become_objects_and_stay_so() {
    let bench = Bench::new().await;
    bench.api.put("agents atlas/hello", hello(), json!({}));
    bench.api.put("atlasnamespaces atlas/team-a", json!({"jobs_pending_max": 5}), json!({}));
    bench.api.put(
        "models atlas/small",
        json!({"provider": "openai", "name": "small-1", "key": "secret://key"}),
        json!({}),
    );
    let trigger =
        json!({"trigger_type": "interval", "interval_seconds": 3600.5, "chain_name": "greet", "input_data": {"a": 1}});
    bench.api.put("triggers atlas/hourly", trigger, json!({}));
    bench.api.put("chains atlas/greet", greet("first"), json!({}));
    let mut operator = bench.operator("a");
    operator.says("it holds the lease", |text| text.contains("operator ready").then_some(()));
    for resource in
        ["agents atlas/hello", "atlasnamespaces atlas/team-a", "models atlas/small", "triggers atlas/hourly"]
    {
        bench.becomes(resource, "True Synced").await;
    }
    let chain = bench.becomes("chains atlas/greet", "True Synced").await;
    assert_eq!(chain["status"]["object"], "chain/greet");
    let object = bench.object("chain/greet").await.expect("the chain");
    assert_eq!(object["spec"], greet("first"));
    assert_eq!(object["metadata"]["labels"], json!({"atlas.dev/resource": "atlas/greet"}));
    let agent = bench.ask(Method::GET, "/api/agents/hello/versions/1.0.0", None).await.expect("the agent");
    assert_eq!(agent["retired"], false);
    assert_eq!(bench.object("namespace/team-a").await.expect("the namespace")["spec"]["jobs_pending_max"], 5);
    assert_eq!(bench.object("model/small").await.expect("the model")["spec"]["key"], "secret://key");
    assert_eq!(bench.object("trigger/hourly").await.expect("the trigger")["spec"]["chain_name"], "greet");

    // A change by somebody else is undone, and one of the resource is made.
    let drifted = json!({"labels": object["metadata"]["labels"], "spec": greet("drifted")});
    bench.ask(Method::PUT, "/api/objects/chain/greet", Some(drifted)).await.expect("changed");
    let is_described = async |as_what: &str| {
        eventually_async(as_what, async || {
            let found = bench.object("chain/greet").await?;
            if found["spec"]["description"] == as_what { Ok(()) } else { Err(found.to_string()) }
        })
        .await;
    };
    is_described("first").await;
    bench.api.put("chains atlas/greet", greet("second"), json!({}));
    is_described("second").await;
    bench.becomes("chains atlas/greet", "True Synced").await;
    bench.ask(Method::DELETE, "/api/objects/model/small", None).await.expect("deleted");
    eventually_async("the model is made again", async || bench.object("model/small").await.map(drop)).await;

    // What is deleted is removed there too; a version of an agent is retired.
    for resource in ["triggers atlas/hourly", "chains atlas/greet", "agents atlas/hello", "models atlas/small"] {
        bench.api.delete(resource);
        eventually_async(&format!("{resource} is gone"), async || match bench.api.get(resource) {
            None => Ok(()),
            Some(found) => Err(found.to_string()),
        })
        .await;
    }
    for path in ["trigger/hourly", "chain/greet", "model/small"] {
        let gone = bench.object(path).await.expect_err(path);
        assert!(gone.starts_with("404") && gone.contains("E1115"), "{gone}");
    }
    let agent = bench.ask(Method::GET, "/api/agents/hello/versions/1.0.0", None).await.expect("the agent");
    assert_eq!(agent["retired"], true);
    assert_eq!(operator.end(Signal::SIGTERM), Some(0));
    assert_eq!(bench.api.holder(), "", "the lease is released");
    bench.api.checked();
    bench.controller.end();
}

#[tokio::test(flavor = "multi_thread")]
async fn refusals_are_said_in_conditions_and_events() {
    let bench = Bench::new().await;
    let trigger = json!({"trigger_type": "cron", "cron_expr": "every day", "agent_name": "hello"});
    bench.api.put("triggers atlas/wrong", trigger.clone(), json!({}));
    let body = json!({"labels": {}, "spec": greet("by hand")});
    bench.ask(Method::PUT, "/api/objects/chain/greet", Some(body)).await.expect("made");
    bench.api.put("chains atlas/greet", greet("by a resource"), json!({}));
    bench.api.put("agents atlas/empty", json!({"files": {}}), json!({}));
    bench.api.put("agents atlas/escape", json!({"files": {"../../etc/passwd": ""}}), json!({}));
    bench.api.put("chains team-a/theirs", greet("theirs"), json!({}));
    bench.api.put("chains team-a/ours", greet("ours"), json!({"atlas.dev/namespace": "default"}));
    bench.api.put("atlasnamespaces team-a/default", json!({"jobs_pending_max": 1}), json!({}));
    let operator = bench.operator("a");
    let refused = bench.becomes("triggers atlas/wrong", "False Refused").await;
    let message = refused["status"]["conditions"][0]["message"].as_str().expect("a message");
    assert!(message.contains("E1118") && message.contains("5 fields"), "{message}");
    bench.becomes("agents atlas/empty", "False Invalid").await;
    bench.becomes("agents atlas/escape", "False Invalid").await;
    bench.becomes("chains team-a/ours", "False NotPermitted").await;
    bench.becomes("atlasnamespaces team-a/default", "False NotPermitted").await;
    let theirs = bench.becomes("chains team-a/theirs", "True Synced").await;
    assert_eq!(theirs["status"]["namespace"], "team-a");
    assert!(bench.object("chain/theirs?namespace=team-a").await.is_ok());
    assert!(bench.object("chain/theirs").await.is_err(), "a resource reaches its namespace alone");
    bench.becomes("chains atlas/greet", "False Conflict").await;
    assert_eq!(bench.object("chain/greet").await.expect("the chain")["spec"], greet("by hand"));
    for resource in ["Trigger wrong Refused", "Chain greet Conflict", "AtlasNamespace default NotPermitted"] {
        eventually_async(&format!("an event: {resource}"), async || {
            let events = bench.api.events();
            if events.iter().any(|event| event == resource) { Ok(()) } else { Err(format!("{events:?}")) }
        })
        .await;
    }
    // A resource that was in conflict takes nothing with it when it goes.
    bench.api.delete("chains atlas/greet");
    eventually_async("the resource is gone", async || match bench.api.get("chains atlas/greet") {
        None => Ok(()),
        Some(found) => Err(found.to_string()),
    })
    .await;
    assert_eq!(bench.object("chain/greet").await.expect("the chain")["spec"], greet("by hand"));
    // It takes over what it is told to, and leaves what it is told to leave.
    let annotations = json!({"atlas.dev/adopt": "true", "atlas.dev/deletion": "keep"});
    bench.api.put("chains atlas/greet", greet("by a resource"), annotations);
    bench.becomes("chains atlas/greet", "True Synced").await;
    bench.api.delete("chains atlas/greet");
    eventually_async("the resource is gone", async || match bench.api.get("chains atlas/greet") {
        None => Ok(()),
        Some(found) => Err(found.to_string()),
    })
    .await;
    assert_eq!(bench.object("chain/greet").await.expect("the chain")["spec"], greet("by a resource"));
    // A corrected resource is no longer refused, although its pauses grew.
    let mut trigger = trigger;
    trigger["cron_expr"] = json!("0 2 * * *");
    bench.api.put("triggers atlas/wrong", trigger, json!({}));
    bench.becomes("triggers atlas/wrong", "True Synced").await;

    // A token that is replaced is read again.
    write_secret(&bench.folder.path().join("operator.token"), &TOKEN.replace("0011", "1100"));
    bench.becomes("triggers atlas/wrong", "Unknown Unauthorized").await;
    write_secret(&bench.folder.path().join("operator.token"), TOKEN);
    bench.becomes("triggers atlas/wrong", "True Synced").await;
    operator.kill();
    bench.api.checked();
    bench.controller.end();
}

#[tokio::test(flavor = "multi_thread")]
async fn one_operator_works_and_another_takes_over() {
    let bench = Bench::new().await;
    bench.api.put("chains atlas/one", greet("one"), json!({}));
    let mut first = bench.operator("a");
    first.says("it holds the lease", |text| text.contains("operator ready").then_some(()));
    bench.becomes("chains atlas/one", "True Synced").await;
    let mut second = bench.operator("b");
    second.says("it waits", |text| text.contains("another operator works").then_some(()));
    // The operator of another cluster does not wait here for ever.
    let mut other = bench.operator_of("x", "http://other.example:7400");
    let text = other.says("it ends", |text| text.contains("another namespace").then(|| text.to_owned()));
    assert!(
        text.contains(&format!("error: the operator of http://{} works in this namespace", bench.controller.http)),
        "{text}"
    );
    // The watches are cut, and what they had to tell is forgotten: the operator lists anew.
    bench.api.put("chains atlas/two", greet("two"), json!({}));
    bench.api.compact();
    bench.api.put("chains atlas/three", greet("three"), json!({}));
    bench.becomes("chains atlas/two", "True Synced").await;
    bench.becomes("chains atlas/three", "True Synced").await;
    first.kill();
    bench.api.put("chains atlas/four", greet("four"), json!({}));
    second.says("it takes over", |text| text.contains("operator ready").then_some(()));
    bench.becomes("chains atlas/four", "True Synced").await;
    assert_eq!(bench.api.holder(), "b");
    // Somebody takes the lease away: the operator ends, so that two never work.
    bench.api.take_lease("c");
    let text = second.says("it ends", |text| text.contains("the lease was lost").then(|| text.to_owned()));
    assert!(text.contains("error: the lease was lost"), "{text}");
    bench.api.checked();
    bench.controller.end();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_missing_definition_is_said_and_holds_up_no_other_kind() {
    let bench = Bench::new().await;
    bench.api.define("models", false);
    let model = json!({"provider": "openai", "name": "small-1", "key": "secret://key"});
    bench.api.put("models atlas/small", model, json!({}));
    bench.api.put("chains atlas/greet", greet("first"), json!({}));
    let mut operator = bench.operator("a");
    bench.becomes("chains atlas/greet", "True Synced").await;
    let text = operator.says("it says what is missing", |text| {
        text.contains("Kubernetes does not know models.atlas.dev: install the definitions").then(|| text.to_owned())
    });
    assert!(!text.contains("does not know chains"), "{text}");
    bench.api.define("models", true);
    bench.becomes("models atlas/small", "True Synced").await;
    operator.kill();
    bench.api.checked();
    bench.controller.end();
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_operator_sends_to_kubernetes_is_fixed() {
    let bench = Bench::new().await;
    bench.api.put("chains atlas/greet", greet("first"), json!({}));
    let operator = bench.operator("a");
    bench.becomes("chains atlas/greet", "True Synced").await;
    bench.api.delete("chains atlas/greet");
    eventually_async("the resource is gone", async || match bench.api.get("chains atlas/greet") {
        None => Ok(()),
        Some(found) => Err(found.to_string()),
    })
    .await;
    let mut sent = bench.api.changes("chains/greet").join("\n") + "\n";
    let (_, rest) = sent.split_once("\"lastTransitionTime\":\"").expect("a time");
    let time = rest.split_once('"').expect("its end").0.to_owned();
    assert!(time.len() == 20 && time.ends_with('Z'), "{time}");
    sent = sent.replace(&time, "TIME");
    expect![[r#"
        patch /apis/atlas.dev/v1alpha1/namespaces/atlas/chains/greet? [{"op":"test","path":"/metadata/finalizers","value":null},{"op":"add","path":"/metadata/finalizers","value":["atlas.dev/operator"]}]
        patch /apis/atlas.dev/v1alpha1/namespaces/atlas/chains/greet/status?&force=true&fieldManager=atlas-operator {"apiVersion":"atlas.dev/v1alpha1","kind":"Chain","metadata":{"name":"greet","namespace":"atlas"},"status":{"observedGeneration":1,"conditions":[{"type":"Ready","status":"True","reason":"Synced","message":"","observedGeneration":1,"lastTransitionTime":"TIME"}],"namespace":"default","object":"chain/greet","revision":1}}
        patch /apis/atlas.dev/v1alpha1/namespaces/atlas/chains/greet? [{"op":"test","path":"/metadata/finalizers/0","value":"atlas.dev/operator"},{"op":"remove","path":"/metadata/finalizers/0"}]
    "#]]
    .assert_eq(&sent);
    operator.kill();
    bench.api.checked();
    bench.controller.end();
}
