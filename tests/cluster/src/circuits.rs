//! Circuits with real programs: a version that keeps failing starts nothing but its probe, also after the death of the leader.

use reqwest::Method;
use serde_json::json;

use crate::Agent;
use crate::members::{ask, becomes, get, submit_to};
use crate::patience::eventually_async;
use crate::trio::{leader, trio, worker};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_version_that_keeps_failing_starts_only_its_probe_until_an_operator_resumes_it() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    let (mode, hangs) = (folder.join("mode"), folder.join("hangs"));
    let set = |text: &str| std::fs::write(&mode, text).expect("a file");
    set("fail");
    let script = format!(
        "case \"$(cat {})\" in fail) exit 1;; hang) touch {}; exec sleep 2000;; esac; echo '{{}}'",
        mode.display(),
        hangs.display()
    );
    let contract = "  execution_timeout: 3000\n  max_failures: 2\n";
    let agent = Agent { name: "shaky", version: "1.0.0", contract, script: &script };
    let mut members = trio(folder, &[&agent]).await;
    let _worker = worker(folder, "w1", &members.each_ref());
    for _ in 0..2 {
        let job = submit_to(&members[0], "shaky", json!({})).await;
        becomes(&members[0], &job, "failed", "").await;
    }
    set("hang");
    let probes = submit_to(&members[0], "shaky", json!({})).await;
    becomes(&members[0], &probes, "running", "").await;
    eventually_async("it hangs", async || hangs.exists().then_some(()).ok_or_else(|| hangs.display().to_string()))
        .await;
    set("well");
    let waits = submit_to(&members[0], "shaky", json!({})).await;
    becomes(&members[0], &waits, "pending", "circuit").await;

    let leads = leader(&members).await;
    members[leads].kill();
    let member = &members[(leads + 1) % 3];
    becomes(member, &waits, "pending", "circuit").await;
    let found = get(member, "/api/agents/shaky").await.expect("an agent");
    assert_eq!(found["circuit"]["state"], "half_open", "{found}");
    let explained = get(member, &format!("/api/jobs/{waits}/explain")).await.expect("an answer");
    assert_eq!(explained["starts_if"][0]["changes"][0]["kind"], "resume", "{explained}");
    let resume = |version: &str| format!("/api/agents/shaky/versions/{version}/resume");
    let refused = ask(member, Method::POST, &resume("9.9.9"), json!({})).await.expect_err("no such version");
    assert!(refused.starts_with("404"), "{refused}");
    eventually_async("it is resumed", async || ask(member, Method::POST, &resume("1.0.0"), json!({})).await).await;
    becomes(member, &waits, "completed", "").await;
    let found = get(member, "/api/agents/shaky").await.expect("an agent");
    assert_eq!(found["circuit"]["state"], "closed", "{found}");
}
