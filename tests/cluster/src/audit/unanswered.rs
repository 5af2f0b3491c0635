//! An approval that nobody gives is in the audit, although no door ends it, and also if the leader dies meanwhile.

use reqwest::Method;
use serde_json::{Value, json};

use super::{Rig, WAITING};
use crate::members::Member;
use crate::patience::eventually_async;

impl Rig {
    /// A job that waits for an approval for some seconds.
    async fn asks(&self, seconds: u64) -> String {
        let ask = json!({"role": "approver", "timeout_seconds": seconds});
        let rule = json!({"name": "by two", "on": ["submit"], "when": "true", "effect": "ask", "ask": ask});
        self.must(Method::PUT, "/api/objects/policy/prod", &json!({"spec": {"rules": [rule]}}), None).await;
        let job = self.must(Method::POST, "/api/jobs", &json!({"agent": "waiting", "input": {}}), None).await;
        job["id"].as_str().expect("an id").to_owned()
    }

    /// Waits for the records of approvals that nobody gave, of all controllers that `member` reaches.
    async fn unanswered(&self, member: &Member, job: &str) -> Vec<Value> {
        eventually_async("the record is there", async || {
            let path = format!("http://{}/api/audit?verb=expireQuestion", member.http);
            let answer =
                self.client.get(path).bearer_auth(&self.root).send().await.map_err(|error| error.to_string())?;
            let page: Value = answer.json().await.map_err(|error| error.to_string())?;
            let line = |record: &Value| {
                let mut line: Value = serde_json::from_str(record["line"].as_str()?).ok()?;
                line["member"] = record["member"].clone();
                Some(line)
            };
            let records: Vec<Value> = page["records"].as_array().into_iter().flatten().filter_map(line).collect();
            let of_job = |record: &Value| record["object"].as_str().is_some_and(|object| object.contains(job));
            let found: Vec<Value> = records.into_iter().filter(of_job).collect();
            if found.is_empty() { Err(page.to_string()) } else { Ok(found) }
        })
        .await
    }
}

fn check(record: &Value, job: &str) {
    let part = |name: &str| record[name].as_str().unwrap_or_default().to_owned();
    let told = ["decision", "principal", "namespace", "door", "code"].map(part);
    assert_eq!(told, ["deny", "cluster", "default", "duty", "E2113"], "{record}");
    let object = format!(" job/{job} submitter/root policy/prod rule/by two");
    assert!(part("object").starts_with("question/") && part("object").ends_with(&object), "{record}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_approval_that_nobody_gives_is_recorded_whoever_leads() {
    let mut rig = Rig::start(&WAITING).await;
    let job = rig.asks(1).await;
    let found = rig.unanswered(&rig.controller, &job).await;
    assert_eq!(found.len(), 1, "{found:?}");
    check(&found[0], &job);
    assert_eq!(rig.audit(&["verify"]).0, 0);

    // A controller that is started again records those from right before once more, at most.
    rig.controller.kill();
    rig.controller.restart();
    let again = rig.unanswered(&rig.controller, &job).await;
    again.iter().for_each(|record| check(record, &job));
    assert!(again.len() <= 2, "{again:?}");

    // The leader dies before the time has passed.
    let [c2, _c3] = [rig.joined("c2").await, rig.joined("c3").await];
    rig.three_vote().await;
    let job = rig.asks(3).await;
    rig.controller.kill();
    let found = rig.unanswered(&c2, &job).await;
    // Once more, if the lead changed again.
    assert!(found.len() <= 2, "{found:?}");
    for record in &found {
        check(record, &job);
        assert_ne!(record["member"], "c1");
    }
}
