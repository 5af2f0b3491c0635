//! One question to any of three controllers has the records of all, and names a controller that is away.

use reqwest::StatusCode;
use serde_json::{Value, json};

use super::{Rig, WAITING};
use crate::members::Member;
use crate::patience::eventually_async;

/// The keys of records as `-o jsonl` prints them, each with the controller that has it.
fn keys(text: &str) -> Vec<(String, String)> {
    let records = text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let part = |record: &Value, name: &str| record[name].as_str().unwrap_or_default().to_owned();
    records.map(|record| (part(&record, "member"), part(&record, "request_id"))).collect()
}

fn expected(of: &[(&str, &str)]) -> Vec<(String, String)> {
    of.iter().map(|(member, key)| ((*member).to_owned(), (*key).to_owned())).collect()
}

impl Rig {
    /// Submits a job through a controller.
    async fn submit(&self, to: &Member, key: &str) {
        eventually_async("a job is submitted", async || {
            let request = self.client.post(format!("http://{}/api/jobs", to.http)).bearer_auth(&self.root);
            let request = request.header("Idempotency-Key", key).json(&json!({"agent": "waiting", "input": {}}));
            let answer = request.send().await.map_err(|error| error.to_string())?;
            let status = answer.status();
            if status.is_success() {
                Ok(())
            } else {
                Err(format!("{status} {}", answer.text().await.unwrap_or_default()))
            }
        })
        .await;
    }

    /// `GET /api/audit` of a controller, for submissions.
    async fn page(&self, of: &Member, query: &str) -> (StatusCode, Value) {
        let path = format!("http://{}/api/audit?verb=submitJob&{query}", of.http);
        let answer = self.client.get(path).bearer_auth(&self.root).send().await.expect("an answer");
        (answer.status(), answer.json().await.expect("JSON"))
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_query_has_the_records_of_all_controllers() {
    let rig = Rig::start(&WAITING).await;
    let [c2, mut c3] = [rig.joined("c2").await, rig.joined("c3").await];
    rig.three_vote().await;
    let all = [("c1", "one"), ("c2", "two"), ("c3", "three"), ("c2", "four")];
    for (name, key) in all {
        let to = [&rig.controller, &c2, &c3].into_iter().find(|member| member.name == name).expect("a member");
        rig.submit(to, key).await;
    }
    // Each gives the same answer: the records are on this machine, whose clock they share.
    let query = ["query", "--verb", "submitJob", "-o", "jsonl"];
    for member in [&rig.controller, &c2, &c3] {
        let (code, text) = rig.audit_of(member, &query);
        assert_eq!((code, keys(&text)), (0, expected(&all)), "{text}");
    }
    let (code, text) = rig.audit_of(&c2, &["query", "--verb", "submitJob", "--member", "c3"]);
    assert!(
        code == 0 && text.lines().count() == 1 && text.contains("  root  submitJob ") && text.ends_with("  at c3\n"),
        "{text}"
    );
    assert_eq!(rig.audit_of(&c2, &["query", "--member", "c9"]).0, 6);

    // The chains of all, from the cluster and in one file.
    let (code, text) = rig.audit_of(&c2, &["verify"]);
    let chains = ["controller 1 (c1), 1 to ", "controller 2 (c2), 1 to 2\n", "controller 3 (c3), 1 to 1\n"];
    assert!(code == 0 && chains.iter().all(|chain| text.contains(chain)), "{code} {text}");
    let (code, text) = rig.audit_of(&c3, &["export", "all.jsonl"]);
    assert!(code == 0 && text.contains(",2:2,3:1\n"), "{code} {text}");
    let (code, text) = rig.audit(&["verify", "all.jsonl"]);
    assert!(code == 0 && text.contains("verified 2 records of controller 2, 1 to 2\n"), "{code} {text}");
    super::change(&rig.folder.path().join("all.jsonl"), "\"four\"", "\"five\"");
    let (code, text) = rig.audit(&["verify", "all.jsonl"]);
    assert!(code == 4 && text.contains("E0129") && text.contains(", after record 1: "), "{code} {text}");

    // Pages of one record say the same, each asked of another controller.
    let (mut cursor, mut found) = (String::new(), Vec::new());
    for at in 0.. {
        let member = [&c2, &c3, &rig.controller][at % 3];
        let (status, page) = rig.page(member, &format!("limit=1&cursor={cursor}")).await;
        assert_eq!((status, page["missing"].as_array().map(Vec::len)), (StatusCode::OK, Some(0)), "{page}");
        let records = page["records"].as_array().expect("records").clone();
        assert!(records.len() <= 1, "{page}");
        found.extend(records.iter().filter_map(|record| record["member"].as_str().map(str::to_owned)));
        assert_ne!(page["cursor"], cursor, "{page}");
        cursor = page["cursor"].as_str().expect("a cursor").to_owned();
        if page["more"] != true {
            break;
        }
    }
    assert_eq!(found, ["c1", "c2", "c3", "c2"]);
    for query in ["cursor=1", "cursor=1:x", "cursor=1:1,1:2", "decision=maybe", "since=never", "limit=many"] {
        let (status, body) = rig.page(&c2, query).await;
        assert_eq!(status, StatusCode::BAD_REQUEST, "{query}: {body}");
    }

    // A controller that is away is named, and its records come once it answers.
    c3.kill();
    rig.submit(&rig.controller, "five").await;
    let (code, text) = rig.audit_of(&c2, &query);
    let rest = [("c1", "one"), ("c2", "two"), ("c2", "four"), ("c1", "five")];
    assert_eq!((code, keys(&text)), (1, expected(&rest)), "{text}");
    assert!(text.contains("warning: c3 does not answer, and its records are missing: "), "{text}");
    let (_, page) = rig.page(&c2, "").await;
    assert_eq!(
        (page["missing"].as_array().map(Vec::len), &page["missing"][0]["member"]),
        (Some(1), &json!("c3")),
        "{page}"
    );
    let (code, text) = rig.audit_of(&c2, &["verify"]);
    assert!(
        code == 1 && text.contains("controller 2 (c2), 1 to 2\n") && text.contains("warning: c3 "),
        "{code} {text}"
    );
    let cursor = page["cursor"].as_str().expect("a cursor").to_owned();
    c3.restart();
    eventually_async("the third controller answers", async || {
        let (_, page) = rig.page(&c2, &format!("cursor={cursor}")).await;
        let members: Vec<&Value> =
            page["records"].as_array().into_iter().flatten().map(|record| &record["member"]).collect();
        if members == [&json!("c3")] && page["missing"] == json!([]) { Ok(()) } else { Err(page.to_string()) }
    })
    .await;
}
