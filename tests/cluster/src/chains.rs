//! Chains with real programs: through `kill -9` of everything, retries of a step, a cancel.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use crate::api::Api;
use crate::patience::eventually_async;
use crate::{Agent, Dev, write_agent};

/// Waits until the file that its input names appears, and passes the name on.
const GATED: Agent<'static> = Agent {
    name: "gated",
    version: "1.0.0",
    contract: "  input: { schema: { type: object, required: [gate], properties: { gate: { type: string } } } }\n  output: { schema: { type: object, properties: { gate: { type: string } } } }",
    script: r#"input=$(cat)
gate=$(printf '%s' "$input" | sed -n 's/.*"gate": *"\([^"]*\)".*/\1/p')
while [ ! -e "$gate" ]; do sleep 0.05; done
printf '{"gate": "%s"}' "$gate""#,
};

/// Returns the document that it reads.
const TOLD: Agent<'static> =
    Agent { name: "told", version: "1.0.0", contract: "", script: r#"printf '{"told": %s}' "$(cat)""# };

/// Fails until a file exists, which its second attempt finds.
const ONCE_BROKEN: Agent<'static> = Agent {
    name: "once-broken",
    version: "1.0.0",
    contract: "  retry: { max_retries: 1, backoff_base: 0.1 }\n  output: { schema: { type: object, properties: { gate: { type: string } } } }",
    script: r#"input=$(cat)
gate=$(printf '%s' "$input" | sed -n 's/.*"gate": *"\([^"]*\)".*/\1/p')
if [ -e "$gate.tried" ]; then printf '{"gate": "%s"}' "$gate"; else touch "$gate.tried"; exit 1; fi"#,
};

fn start(folder: &Path) -> Dev {
    Dev::start(folder, ["--agents", "./agents"])
}

async fn run(api: &Api, steps: Value, gate: &Path) -> String {
    let started =
        api.post("/api/chains", json!({"chain": {"name": "c", "steps": steps}, "input": {"gate": gate}})).await;
    started["id"].as_str().unwrap_or_else(|| panic!("{started}")).to_owned()
}

async fn until_step(api: &Api, id: &str, step: i64) {
    eventually_async(&format!("step {step} of {id} runs"), async || {
        let run = api.get(&format!("/api/chains/{id}?view=full")).await;
        let job = run["step_jobs"][usize::try_from(step).unwrap_or_default()]["job_id"].as_str().map(str::to_owned);
        let Some(job) = job else { return Err(run.to_string()) };
        let job = api.job(&job).await;
        if job["status"] == "running" && run["current_step"] == step { Ok(()) } else { Err(format!("{run} {job}")) }
    })
    .await;
}

#[tokio::test]
async fn a_chain_survives_the_death_of_everything() {
    let folder = tempfile::tempdir().expect("a folder");
    [GATED, TOLD].iter().for_each(|agent| write_agent(&folder.path().join("agents"), agent));
    let (first, second) = (folder.path().join("first"), folder.path().join("second"));
    let dev = start(folder.path());
    let steps = json!([
        {"agent": "gated", "name": "one"},
        {"agent": "gated", "input_map": {"gate": second}},
        {"agent": "told@^1.0.0"},
    ]);
    let id = run(&Api::new(dev.server()), steps, &first).await;
    until_step(&Api::new(dev.server()), &id, 0).await;
    dev.kill();
    let dev = start(folder.path());
    until_step(&Api::new(dev.server()), &id, 0).await;
    fs::write(&first, "").expect("opened");
    // The first step has ended, and what it returned is known.
    eventually_async("the second step", async || {
        let run = Api::new(dev.server()).get(&format!("/api/chains/{id}")).await;
        if run["current_step"] == 1 { Ok(()) } else { Err(run.to_string()) }
    })
    .await;
    dev.kill();
    let dev = start(folder.path());
    let api = Api::new(dev.server());
    fs::write(&second, "").expect("opened");
    let run = api.get(&format!("/api/chains/{id}?wait=60&view=full")).await;
    assert_eq!(
        (&run["status"], &run["current_step"], &run["result"]["error"]),
        (&json!("completed"), &json!(2), &json!("")),
        "{run}"
    );
    let told = &run["result"]["output"]["told"];
    assert_eq!((&told["context"]["chain_name"], &told["context"]["step_index"]), (&json!("c"), &json!(2)), "{run}");
    let job = api.job(run["step_jobs"][2]["job_id"].as_str().expect("a job")).await;
    assert_eq!(job["metadata"], json!({"_chain_name": "c", "_step_index": 2, "_parent_trace_id": id}), "{job}");
    // One trace and one tree for all of it.
    let trace = api.get(&format!("/api/traces/{id}")).await;
    let steps = trace["steps"].as_array().map_or(0, Vec::len);
    assert_eq!((&trace["trace_id"], &trace["status"], steps), (&json!(id), &json!("completed"), 3), "{trace}");
    assert_eq!(trace["steps"][2]["parent_trace_id"], json!(id), "{trace}");
    let tree = api.get(&format!("/api/chains/{id}/tree")).await;
    assert_eq!(tree["children"].as_array().map(Vec::len), Some(3), "{tree}");
    let listed = api.get("/api/chains?status=completed").await;
    assert_eq!(listed[0]["id"], json!(id), "{listed}");
}

async fn put_chain(api: &Api, name: &str, agents: &[&str]) -> (u16, String, Value) {
    let steps: Vec<Value> = agents.iter().map(|agent| json!({ "agent": agent })).collect();
    api.try_put(&format!("/api/objects/chain/{name}"), json!({"spec": {"steps": steps}})).await
}

#[tokio::test]
async fn a_chain_is_called_like_an_agent() {
    let folder = tempfile::tempdir().expect("a folder");
    [GATED, ONCE_BROKEN].iter().for_each(|agent| write_agent(&folder.path().join("agents"), agent));
    let dev = start(folder.path());
    let api = Api::new(dev.server());
    let gate = folder.path().join("gate");
    assert_eq!(put_chain(&api, "inner", &["once-broken", "gated"]).await.0, 200);
    assert_eq!(put_chain(&api, "outer", &["inner", "gated"]).await.0, 200);

    // As a job, with a chain inside.
    let job = api.submit("outer", json!({"gate": gate})).await;
    let running = eventually_async("the step of the inner chain", async || {
        let jobs = api.get("/api/jobs?agent=gated&status=running&view=full").await;
        match jobs.as_array().and_then(|jobs| jobs.first()) {
            Some(job) => Ok(job["id"].as_str().unwrap_or_default().to_owned()),
            None => Err(jobs.to_string()),
        }
    })
    .await;
    let (outer, inner) = (api.job(&job).await, api.job(&running).await);
    assert_eq!((&outer["status"], &inner["metadata"]["_chain_name"]), (&json!("running"), &json!("inner")), "{outer}");
    assert!(outer["run"].as_str().is_some_and(|run| run.starts_with("run-")), "{outer}");
    assert_eq!(outer["node"], "", "no worker holds it: {outer}");

    // A cancel reaches the step of the inner chain.
    api.post(&format!("/api/jobs/{job}/cancel"), json!({})).await;
    assert_eq!(api.wait(&running).await["status"], json!("cancelled"));
    assert_eq!(api.wait(&job).await["status"], json!("cancelled"));

    fs::write(&gate, "").expect("opened");
    let job = api.submit("outer", json!({"gate": gate})).await;
    let ended = api.wait(&job).await;
    assert_eq!((&ended["status"], &ended["output_data"]["gate"]), (&json!("completed"), &json!(gate)), "{ended}");
    // Its input is that of its first agent.
    assert_eq!(put_chain(&api, "typed", &["gated"]).await.0, 200);
    let ended = api.submit("typed", json!({"gate": 1})).await;
    let ended = api.wait(&ended).await;
    assert_eq!(ended["status"], json!("failed"), "{ended}");

    // By a trigger, for which it is an agent.
    let trigger = json!({"trigger_type": "webhook", "agent_name": "inner", "input_data": {"gate": gate}});
    let id = api.post("/api/triggers", trigger).await["id"].as_str().expect("an id").to_owned();
    let fired = api.post(&format!("/api/triggers/{id}/fire"), json!({})).await;
    let ended = api.wait(fired["job_id"].as_str().unwrap_or_else(|| panic!("{fired}"))).await;
    assert_eq!(ended["status"], json!("completed"), "{ended}");
}

#[tokio::test]
async fn a_chain_that_calls_itself_is_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    write_agent(&folder.path().join("agents"), &GATED);
    let dev = start(folder.path());
    let api = Api::new(dev.server());
    assert_eq!(put_chain(&api, "a", &["b"]).await.0, 200);
    assert_eq!(put_chain(&api, "b", &["gated", "c"]).await.0, 200);
    let (status, code, body) = put_chain(&api, "c", &["gated", "a"]).await;
    assert_eq!((status, code.as_str()), (400, "E1143"), "{body}");
    assert!(body.to_string().contains("the chain calls itself: c → a → b → c"), "{body}");
    let (_, code, body) = put_chain(&api, "a", &["a"]).await;
    assert!(code == "E1143" && body.to_string().contains("a → a"), "{body}");
    // An agent of the name comes first, so this one calls the agent.
    assert_eq!(put_chain(&api, "gated", &["gated"]).await.0, 200);
    let (_, code, body) =
        api.try_post("/api/chains/check", json!({"chain": {"name": "c", "steps": [{"agent": "a"}]}})).await;
    assert_eq!(code, "E1143", "{body}");
}

#[tokio::test]
async fn a_step_is_retried_and_a_chain_is_cancelled() {
    let folder = tempfile::tempdir().expect("a folder");
    [GATED, ONCE_BROKEN].iter().for_each(|agent| write_agent(&folder.path().join("agents"), agent));
    let dev = start(folder.path());
    let api = Api::new(dev.server());
    let gate = folder.path().join("gate");
    let id = run(&api, json!([{"agent": "once-broken"}, {"agent": "gated"}]), &gate).await;
    until_step(&api, &id, 1).await;
    let run = api.get(&format!("/api/chains/{id}?view=full")).await;
    let job = run["step_jobs"][1]["job_id"].as_str().expect("a job").to_owned();
    assert_eq!(api.post(&format!("/api/chains/{id}/cancel"), json!({})).await, json!({"cancelled": true}));
    assert_eq!(api.wait(&job).await["status"], json!("cancelled"));
    let run = api.get(&format!("/api/chains/{id}")).await;
    assert_eq!((&run["status"], &run["result"]["failed_at"]), (&json!("cancelled"), &json!(1)), "{run}");
    assert_eq!(api.post(&format!("/api/chains/{id}/cancel"), json!({})).await, json!({"cancelled": false}));
}

#[tokio::test]
async fn the_orchestrator_of_a_chain_decides_on_its_steps() {
    let folder = tempfile::tempdir().expect("a folder");
    let other = Agent { name: "other", script: r#"cat >/dev/null; echo '{"by": "other"}'"#, ..TOLD };
    [TOLD, other].iter().for_each(|agent| write_agent(&folder.path().join("agents"), agent));
    let dev = start(folder.path());
    let api = Api::new(dev.server());
    let rules = json!({"rules": [
        {"if": "metadata._step_index == 1 && metadata._chain_name == 'c' && agent.name == 'told'", "redirect": "other"},
        {"if": "job.input_data == {}", "reject": "Empty input data"},
    ]});
    for (name, spec) in [("boss", rules), ("calm", json!({"rules": [{"allow": true}]}))] {
        let put = api.try_put(&format!("/api/objects/orchestrator/{name}"), json!({ "spec": spec })).await;
        assert_eq!(put.0, 200, "{put:?}");
    }
    let run = async |orchestrator: &str, input: Value| {
        let steps = json!([{"agent": "told"}, {"agent": "told"}]);
        let chain = json!({"name": "c", "orchestrator": orchestrator, "steps": steps});
        let started = api.post("/api/chains", json!({"chain": chain, "input": input})).await;
        let id = started["id"].as_str().unwrap_or_else(|| panic!("{started}")).to_owned();
        api.get(&format!("/api/chains/{id}?wait=30")).await["result"].clone()
    };
    // What the first step was told, as the second one tells it.
    let own = |result: &Value| result["output"]["told"]["input"]["told"]["input"] == json!({"x": 1});

    let redirected = run("boss", json!({"x": 1})).await;
    assert_eq!(redirected["output"], json!({"by": "other"}), "{redirected}");
    assert_eq!(redirected["steps"][1]["agent_name"], "told", "a step keeps its name: {redirected}");
    let rejected = run("boss", json!({})).await;
    assert_eq!(rejected["error"], "Orchestrator rejected step 0 (told): Empty input data", "{rejected}");
    assert_eq!((&rejected["success"], &rejected["failed_at"]), (&json!(false), &json!(0)), "{rejected}");
    let steps = json!([{"agent": "told"}, {"agent": "told"}]);
    let stored = json!({"spec": {"orchestrator": "boss", "steps": steps}});
    assert_eq!(api.try_put("/api/objects/chain/c", stored).await.0, 200);
    let ended = api.wait(&api.submit("c", json!({"x": 1})).await).await;
    assert_eq!(
        ended["output_data"],
        json!({"by": "other"}),
        "a chain that is called like an agent has it as well: {ended}"
    );
    let ended = api.wait(&api.submit("c", json!({})).await).await;
    assert_eq!(ended["error"], "Orchestrator rejected step 0 (told): Empty input data", "{ended}");
    let outer = json!({"chain": {"name": "outer", "steps": [{"agent": "c"}]}, "input": {}});
    let id = api.post("/api/chains", outer).await["id"].clone();
    let outer = api.get(&format!("/api/chains/{}?wait=30", id.as_str().expect("an id"))).await["result"].clone();
    let error = "Agent failed at step 0 (c): Orchestrator rejected step 0 (told): Empty input data";
    assert_eq!(outer["error"], error, "{outer}");
    let alone = run("absent", json!({"x": 1})).await;
    assert!(own(&alone), "one that is not there decides nothing: {alone}");

    api.post("/api/orchestrator", json!({"name": "calm"})).await;
    let calm = run("boss", json!({"x": 1})).await;
    assert!(own(&calm), "the namespace has selected another one: {calm}");
    api.post("/api/orchestrator", json!({"name": "boss"})).await;
    let rejected = run("", json!({})).await;
    assert_eq!(rejected["error"], "Orchestrator rejected step 0 (told): Empty input data", "{rejected}");
}
