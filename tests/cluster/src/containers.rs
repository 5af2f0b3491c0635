//! Agents that ask for a container, in a cluster without an engine: they do not run as anything else, unless the operator of a node says so.

use atlas_package::pack;
use nix::sys::signal::Signal;
use serde_json::json;

use crate::Agent;
use crate::api::Api;
use crate::pair::{Controller, worker_with};
use crate::patience::eventually_async;

const BOXED: Agent<'static> = Agent {
    name: "boxed",
    version: "1.0.0",
    contract: "  permissions: {isolation: container, container_image: img, filesystem: [read]}\n",
    script: "echo '{\"ran\": true}'",
};

/// An agent that runs on any node: its jobs show that the node is there.
const OPEN: Agent<'static> = Agent { name: "open", version: "1.0.0", contract: "", script: "echo '{}'" };

#[tokio::test]
async fn an_agent_that_asks_for_a_container_runs_in_none_other() {
    let folder = tempfile::tempdir().expect("a folder");
    let controller = Controller::start(folder.path());
    let api = Api::new(&controller.http.to_string());
    for agent in [&BOXED, &OPEN] {
        crate::agents::write(folder.path(), agent);
        api.register(pack(&folder.path().join(agent.name)).expect("a package").bytes).await;
    }
    // A client that is not there: the machine of the test may have an engine.
    let engine = folder.path().join("no-engine").display().to_string();
    let options = ["--container-engine", engine.as_str()];
    let worker = worker_with(folder.path(), &controller, &options);
    assert_eq!(api.wait(&api.submit("open", json!({})).await).await["status"], "completed");
    let job = api.submit("boxed", json!({})).await;
    let why = eventually_async("it says why it does not run", async || {
        let explained = api.get(&format!("/api/jobs/{job}/explain")).await.to_string();
        if explained.contains("container=available") { Ok(explained) } else { Err(explained) }
    });
    why.await;
    let status = api.job(&job).await["status"].clone();
    assert!(status == "pending" || status == "failed", "{status}");
    assert_eq!(worker.end(Signal::SIGTERM), Some(0));

    let worker = worker_with(folder.path(), &controller, &[&options[..], &["--containers", "prefer"]].concat());
    assert_eq!(api.wait(&api.submit("open", json!({})).await).await["status"], "completed");
    let job = api.wait(&api.submit("boxed", json!({})).await).await;
    assert_eq!((&job["status"], &job["output_data"]), (&json!("completed"), &json!({"ran": true})), "{job}");
    assert!(job.to_string().contains("not enforced: container"), "{job}");
    assert_eq!(worker.end(Signal::SIGTERM), Some(0));
    assert_eq!(controller.end(), Some(0));
}
