//! Whether a controller is ready, for those who start members one after the other: the first alone must not be waited for.

use std::time::Duration;

use nix::sys::signal::{Signal, kill};

use crate::members::Member;
use crate::patience::eventually_async;
use crate::trio::trio;

/// The time that a probe of Kubernetes waits for.
const PROBE_MAX: Duration = Duration::from_secs(1);

/// The answer to a probe: its status, and whether the controller can serve requests.
async fn probe(member: &Member, query: &str) -> Result<(u16, Option<bool>), String> {
    let client = reqwest::Client::builder().no_proxy().timeout(PROBE_MAX).build().expect("a client");
    let answer = client.get(format!("http://{}/api/ready{query}", member.http)).send().await;
    let answer = answer.map_err(|error| error.to_string())?;
    let status = answer.status().as_u16();
    let value: serde_json::Value = answer.json().await.unwrap_or_default();
    Ok((status, value["ready"].as_bool()))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_controller_counts_as_ready_while_no_other_runs() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut members = trio(folder.path(), &[]).await;
    let [first, second, third] = &mut members;
    assert_eq!(probe(first, "?alone=true").await, Ok((200, Some(true))));
    second.kill();
    kill(third.pid(), Signal::SIGSTOP).expect("it runs");
    // The third may run behind a fault of the network.
    let stuck = eventually_async("it lost its majority", async || match probe(first, "?alone=true").await {
        Ok(ready) => Err(format!("{ready:?}")),
        Err(late) => Ok(late),
    });
    stuck.await;
    kill(third.pid(), Signal::SIGCONT).expect("it is stopped");
    third.kill();
    let alone = eventually_async("it is alone", async || match probe(first, "?alone=true").await {
        Ok((200, Some(false))) => Ok(()),
        other => Err(format!("{other:?}")),
    });
    alone.await;
    assert!(probe(first, "").await.is_err(), "a load balancer is not told so");
}
