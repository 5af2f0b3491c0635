//! Events for receivers outside the cluster: leaders are killed while events happen, and the receiver gets each of them, signed
//! and in order.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use atlas_env::{Connection, Env};
use hmac::{Hmac, KeyInit, Mac};
use reqwest::Method;
use serde_json::{Value, json};
use sha2::Sha256;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::members::{Member, WEBHOOK_SECRET, ask, get};
use crate::patience::eventually_async;
use crate::trio::{leader, trio};

/// Number of killed leaders.
const ROUNDS: usize = 2;
/// Number of events before and after each kill.
const EVENTS: usize = 15;

/// What a receiver accepted: the delivery id and the event, in order.
type Accepted = Arc<Mutex<Vec<(String, Value)>>>;

/// Starts a receiver that refuses every seventh request.
async fn receiver() -> (SocketAddr, Accepted) {
    let env = Env::system();
    let listener = env.net.listen(([127, 0, 0, 1], 0).into()).await.expect("a free port");
    let address = listener.local_addr().expect("an address");
    let accepted = Accepted::default();
    let (sink, spawner) = (Arc::clone(&accepted), env.clone());
    let _accepting = env.spawn("receiver", async move {
        let count = Arc::<Mutex<u64>>::default();
        while let Ok(connection) = listener.accept().await {
            let (sink, count) = (Arc::clone(&sink), Arc::clone(&count));
            let _serving = spawner.spawn("connection", serve(connection, sink, count));
        }
    });
    (address, accepted)
}

async fn serve(mut connection: Connection, accepted: Accepted, count: Arc<Mutex<u64>>) {
    while let Some((head, body)) = read(&mut connection).await {
        let header = |name: &str| head.lines().find_map(|line| line.strip_prefix(name)).unwrap_or_default().to_owned();
        let id = header("atlas-delivery: ");
        assert!(is_signed(&header("atlas-signature: "), &id, &body), "{head}");
        let refused = {
            let mut count = count.lock().expect("not poisoned");
            *count += 1;
            count.is_multiple_of(7)
        };
        if !refused {
            let body: Value = serde_json::from_slice(&body).expect("JSON");
            assert_eq!(body["gap"], Value::Null, "nothing is lost: {body}");
            accepted.lock().expect("not poisoned").push((id, body["event"].clone()));
        }
        let status = if refused { "503 Service Unavailable" } else { "204 No Content" };
        if connection.write_all(format!("HTTP/1.1 {status}\r\ncontent-length: 0\r\n\r\n").as_bytes()).await.is_err() {
            return;
        }
    }
}

async fn read(connection: &mut Connection) -> Option<(String, Vec<u8>)> {
    let mut bytes = Vec::new();
    loop {
        if let Some(end) = bytes.windows(4).position(|window| window == b"\r\n\r\n") {
            let head = String::from_utf8(bytes[..end].to_vec()).expect("text");
            let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")).expect("a length");
            let mut body = bytes.split_off(end + 4);
            let have = body.len();
            body.resize(length.parse().expect("a number"), 0);
            connection.read_exact(&mut body[have..]).await.ok()?;
            return Some((head, body));
        }
        if connection.read_buf(&mut bytes).await.ok()? == 0 {
            return None;
        }
    }
}

/// Verifies a signature as a receiver does.
fn is_signed(header: &str, id: &str, body: &[u8]) -> bool {
    let Some((time, signature)) = header.strip_prefix("t=").and_then(|rest| rest.split_once(",v1=")) else {
        return false;
    };
    let mut mac = Hmac::<Sha256>::new_from_slice(WEBHOOK_SECRET.as_bytes()).expect("a key");
    mac.update(format!("{time}.{id}.").as_bytes());
    mac.update(body);
    let digits: String = mac.finalize().into_bytes().iter().map(|byte| format!("{byte:02x}")).collect();
    digits == signature
}

/// Makes an object, and so an event, at whichever controller answers.
async fn make(members: &[Member; 3], name: &str) {
    eventually_async("a controller accepts it", async || {
        let mut last = String::new();
        for member in members.iter().filter(|member| member.runs()) {
            let path = format!("/api/objects/namespace/{name}");
            match ask(member, Method::PUT, &path, json!({ "spec": {} })).await {
                Ok(_) => return Ok(()),
                Err(error) => last = error,
            }
        }
        Err(last)
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_receiver_gets_every_event_in_order_while_leaders_are_killed() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut members = trio(folder.path(), &[]).await;
    let (address, accepted) = receiver().await;
    let spec = json!({
        "url": format!("http://{address}/events"), "events": ["object.created"], "secret_env": "ATLAS_WEBHOOK_TEST"
    });
    ask(&members[0], Method::PUT, "/api/objects/webhook/ci", json!({ "spec": spec })).await.expect("made");

    let mut wanted = Vec::new();
    for round in 0..ROUNDS {
        let leads = leader(&members).await;
        for number in 0..2 * EVENTS {
            if number == EVENTS {
                members[leads].kill();
            }
            let name = format!("n{round}-{number}");
            make(&members, &name).await;
            wanted.push(name);
        }
        members[leads].restart();
    }
    eventually_async("the last event arrives", async || {
        let accepted = accepted.lock().expect("not poisoned");
        let arrived =
            accepted.last().is_some_and(|(_, event)| event["name"].as_str() == wanted.last().map(String::as_str));
        if arrived { Ok(()) } else { Err(format!("{:?}", accepted.last())) }
    })
    .await;

    // A new leader repeats what the last one delivered and had no time to note. The first time, each comes in its turn.
    let (mut names, mut ids) = (Vec::new(), BTreeMap::new());
    for (id, event) in accepted.lock().expect("not poisoned").iter() {
        let known = ids.insert(event["event"].as_u64().expect("a number"), id.clone());
        match known {
            Some(known) => assert_eq!(known, *id, "a repetition has the id of the first delivery"),
            None => names.push(event["name"].as_str().expect("a name").to_owned()),
        }
    }
    assert_eq!(names, wanted);
    eventually_async("the status says so on every controller", async || {
        for member in &members {
            let status = get(member, "/api/objects/webhook/ci").await?["status"].take();
            if status["state"] != "ready"
                || status["dropped"] != 0
                || status["cursor"].as_u64() < ids.keys().max().copied()
            {
                return Err(status.to_string());
            }
        }
        Ok(())
    })
    .await;
}
