//! A document base that the cluster fills from a website, whose worker and whose leader are killed while they read it.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use atlas_env::{Env, Task};
use reqwest::Method;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

use crate::members::{Member, ask, get};
use crate::patience::eventually_async;
use crate::process::Process;
use crate::program::program;
use crate::trio::{leader, trio, worker_command};

const PAGES: usize = 60;
/// How long a page takes, so that something can happen meanwhile.
const SLOW: Duration = Duration::from_millis(60);

type Pages = Arc<Mutex<BTreeMap<String, String>>>;

/// A website on this machine. It ends with the second value.
async fn website(pages: Pages) -> (String, Task<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let address = listener.local_addr().expect("bound").to_string();
    let env = Env::system();
    let spawner = env.clone();
    let serving = env.spawn("website", async move {
        while let Ok((stream, _)) = listener.accept().await {
            // A client that goes away is no failure.
            drop(spawner.spawn("page", serve(stream, Arc::clone(&pages), spawner.clone())));
        }
    });
    (address, serving)
}

async fn serve(mut stream: TcpStream, pages: Pages, env: Env) {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let Ok(byte) = stream.read_u8().await else { return };
        head.push(byte);
    }
    let path = String::from_utf8_lossy(&head).split(' ').nth(1).unwrap_or_default().to_owned();
    let page = pages.lock().expect("not poisoned").get(&path).cloned();
    env.clock.sleep(SLOW).await;
    let (status, body) = page.map_or((404, String::new()), |page| (200, page));
    let answer = format!(
        "HTTP/1.1 {status} X\r\ncontent-type: text/html\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}",
        body.len()
    );
    let _ = stream.write_all(answer.as_bytes()).await;
}

/// The links to all pages, and their texts.
fn fill(pages: &Pages, texts: impl Fn(usize) -> Option<String>) {
    let mut pages = pages.lock().expect("not poisoned");
    pages.clear();
    let numbers = (0..PAGES).filter_map(|number| Some((number, texts(number)?)));
    let mut root = "<title>Sea</title><p>All about the sea.</p>".to_owned();
    for (number, text) in numbers {
        root += &format!("<a href='p{number}'>page</a> ");
        pages.insert(format!("/sea/p{number}"), format!("<h1>Page</h1><p>{text}</p>"));
    }
    pages.insert("/sea/".to_owned(), root);
}

fn start(folder: &std::path::Path, members: &[&Member], allowed: &str) -> Process {
    let mut command = worker_command(program("atlas-worker"), folder, "w1", members);
    Process::start(command.args(["--collect-allow", allowed]))
}

async fn base(member: &Member) -> Value {
    eventually_async("the base", async || get(member, "/api/bases/sea").await).await
}

/// Waits until a job has read the sources that is another one than the one before.
async fn collected(member: &Member, before: &str) -> Value {
    eventually_async("the sources are read", async || {
        let base = get(member, "/api/bases/sea").await?;
        let job = base["collected"]["job"].as_str().unwrap_or(before);
        if job == before { Err(base.to_string()) } else { Ok(base) }
    })
    .await
}

async fn found(member: &Member, query: &str) -> Vec<String> {
    let body = json!({"query": query, "top_k": 100});
    let found =
        eventually_async("an answer", async || ask(member, Method::POST, "/api/bases/sea/search", body.clone()).await)
            .await;
    let sources = found["hits"].as_array().expect("hits").iter().filter_map(|hit| hit["source"].as_str());
    let mut sources: Vec<String> = sources.map(str::to_owned).collect();
    sources.sort();
    sources
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_website_is_in_the_base_once_although_worker_and_leader_die() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut members = trio(folder.path(), &[]).await;
    let pages = Pages::default();
    fill(&pages, |number| Some(format!("A lighthouse of number{number}x.")));
    let (address, _website) = website(Arc::clone(&pages)).await;
    let start = |members: &[Member; 3]| start(folder.path(), &[&members[0], &members[1], &members[2]], &address);
    let mut worker = start(&members);
    let first = leader(&members).await;
    let one = (first + 1) % 3;
    let source = format!("http://{address}/sea/**");
    let bad = json!({"name": "bad", "sources": ["ftp://example.org/x"]});
    let refused = ask(&members[one], Method::POST, "/api/bases", bad).await.expect_err("no source");
    assert!(refused.contains("is no source"), "{refused}");

    // The worker dies while it reads the pages, and the leader while another one does.
    let draft = json!({"name": "sea", "sources": [source]});
    ask(&members[one], Method::POST, "/api/bases", draft).await.expect("made");
    let hand = json!({"documents": [{"source": "by/hand.md", "text": "A lighthouse of my own."}]});
    eventually_async("a document by hand", async || {
        ask(&members[one], Method::POST, "/api/bases/sea/documents", hand.clone()).await
    })
    .await;
    let reads = async |many: usize| {
        eventually_async("the website is read", async || {
            let jobs = get(&members[one], "/api/jobs?agent=document-collector&status=running").await?;
            let running = jobs.as_array().map_or(0, Vec::len);
            if running >= many { Ok(()) } else { Err(jobs.to_string()) }
        })
        .await;
    };
    reads(1).await;
    worker.kill();
    worker = start(&members);
    reads(1).await;
    members[first].kill();
    members[first].restart();
    let read = collected(&members[one], "").await;
    assert_eq!((&read["documents"], &read["collected"]["documents"]), (&json!(PAGES + 2), &json!(PAGES + 1)), "{read}");
    assert_eq!(read["collected"]["errors"], json!([]), "{read}");
    assert_eq!(found(&members[one], "number7x").await, [format!("http://{address}/sea/p7")]);
    assert_eq!(found(&members[one], "lighthouse").await.len(), PAGES + 1);

    // A page changes, and half of them are gone.
    fill(&pages, |number| {
        (number < PAGES / 2).then(|| match number {
            3 => "Now about whales.".to_owned(),
            number => format!("A lighthouse of number{number}x."),
        })
    });
    let before = read["collected"]["job"].as_str().expect("a job").to_owned();
    let asked =
        eventually_async("a job", async || ask(&members[one], Method::POST, "/api/bases/sea/collect", json!({})).await)
            .await;
    let job = asked["job"].as_str().expect("a job");
    assert_ne!(job, before);
    let ended = eventually_async("the job ends", async || {
        let job = get(&members[one], &format!("/api/jobs/{job}?view=full")).await?;
        if job["status"] == "completed" { Ok(job) } else { Err(job.to_string()) }
    })
    .await;
    let output = &ended["output_data"];
    // The root has other links now.
    let sums = ["documents", "added", "replaced", "unchanged", "removed"].map(|name| output[name].as_u64());
    assert_eq!(sums, [31, 0, 2, 29, 30].map(Some), "{output}");
    assert_eq!(found(&members[one], "whales").await, [format!("http://{address}/sea/p3")]);
    let left = found(&members[one], "lighthouse").await;
    assert_eq!((left.len(), left[0].as_str()), (30, "by/hand.md"), "{left:?}");

    // Without its source, only what was added by hand stays.
    let change = json!({"sources": []});
    eventually_async("a change", async || ask(&members[one], Method::PUT, "/api/bases/sea", change.clone()).await)
        .await;
    eventually_async("the pages are gone", async || {
        let base = base(&members[one]).await;
        if base["documents"] == json!(1) { Ok(()) } else { Err(base.to_string()) }
    })
    .await;
    drop(worker);
}
