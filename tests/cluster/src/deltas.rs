//! Followers of a model's answer at the leader and at other controllers, by server-sent events and by a WebSocket.

use std::fs;
use std::path::Path;

use atlas_package::pack;
use serde_json::{Value, json};

use crate::api::Api;
use crate::members::Member;
use crate::patience::eventually_async;
use crate::stream::{hear, open};
use crate::trio::{leader, trio, worker};

/// Passes on pieces of an answer until its gate exists.
const CONTRACT: &str = "agent:\n  name: writes\n  version: 1.0.0\n  description: Writes\n";
const PROGRAM: &str = r#"import os, time
from atlas.runtime.base import AgentBase

class Agent(AgentBase):
    async def execute(self, input_data):
        number = 0
        while not os.path.exists(input_data["gate"]):
            self.context.delta(f"{number} ", step=1)
            number += 1
            time.sleep(0.02)
        return {"pieces": number}
"#;
/// Number of pieces that each follower gets before the answer ends.
const SOME: usize = 10;

async fn register(member: &Member, folder: &Path) {
    let folder = folder.join("writes");
    fs::create_dir_all(&folder).expect("a folder");
    fs::write(folder.join("agent.yaml"), CONTRACT).expect("written");
    fs::write(folder.join("agent.py"), PROGRAM).expect("written");
    Api::new(&member.http.to_string()).register(pack(&folder).expect("a package").bytes).await;
}

/// Checks the pieces of one follower: after the gap at its beginning, each begins where the last one ended, and the whole is the
/// end of `0 1 2 …`.
fn check(pieces: &[Value]) {
    let mut at = None;
    let mut text = String::new();
    for piece in pieces {
        match piece["event"].as_str() {
            Some("delta") => {
                let offset = piece["offset"].as_u64().expect("a number");
                assert!(at.is_none_or(|at| at == offset), "{piece} does not begin at {at:?}");
                let more = piece["text"].as_str().expect("text");
                text += more;
                at = Some(offset + more.len() as u64);
            }
            Some("gap") => assert!(at.is_none(), "{piece} in the middle of an answer"),
            other => panic!("{other:?}: {piece}"),
        }
    }
    let numbers: Vec<u64> = text.split_whitespace().map(|number| number.parse().expect("a number")).collect();
    assert!(numbers.len() >= SOME && numbers.windows(2).all(|pair| pair[1] == pair[0] + 1), "{text}");
}

/// The pieces among the messages of a WebSocket; the others are changes of the job.
fn pieces(messages: &[Value]) -> Vec<Value> {
    messages.iter().filter(|message| message.get("event").is_some_and(Value::is_string)).cloned().collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn followers_at_every_controller_hear_the_same_answer() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    let members = trio(folder, &[]).await;
    register(&members[0], folder).await;
    let _worker = worker(folder, "w1", &members.each_ref());
    let leads = leader(&members).await;
    let api = Api::new(&members[leads].http.to_string());
    let gate = folder.join("gate");
    let id = api.submit("writes", json!({ "gate": gate })).await;
    eventually_async("it runs", async || {
        let job = api.job(&id).await;
        if job["status"] == "running" { Ok(()) } else { Err(job.to_string()) }
    })
    .await;

    let path = format!("/api/jobs/{id}/events?view=full&deltas=true");
    let listening =
        members.each_ref().map(|member| hear(open(member.http, &path), |messages| pieces(messages).len() > SOME));
    for socket in listening {
        check(&pieces(&socket.join().await.expect("no panic")));
    }
    // Without being asked for, no piece is sent, and the stream ends with the job.
    let plain = hear(open(members[(leads + 1) % 3].http, &format!("/api/jobs/{id}/events")), |_| false);
    let asked = hear(open(members[(leads + 2) % 3].http, &path), |_| false);
    eventually_async("a job that is asked for runs", async || fs::write(&gate, "").map_err(|error| error.to_string()))
        .await;
    assert_eq!(api.wait(&id).await["status"], "completed");
    assert_eq!(pieces(&plain.join().await.expect("no panic")), Vec::<Value>::new());
    let messages = asked.join().await.expect("no panic");
    assert_eq!(messages.last().map(|last| last["new_status"].clone()), Some(json!("completed")), "{messages:?}");
}
