//! The bundled agents that look things up: deep-research with a local search server, and sql with a file of SQLite.

use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::process::Command;

use nix::sys::signal::Signal;
use serde_json::json;

use crate::api::Api;
use crate::coder::{answer, package};
use crate::pair::{Controller, worker};

/// A server with a search and one page.
#[expect(clippy::disallowed_methods, reason = "the server of a test has a thread of its own")]
fn sources() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = format!("http://{}", listener.local_addr().expect("an address"));
    let page = format!("{address}/lease");
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let mut bytes = vec![0; 8 << 10];
            let count = stream.read(&mut bytes).unwrap_or(0);
            let request = String::from_utf8_lossy(&bytes[..count]).into_owned();
            let path = request.split([' ', '?']).nth(1).unwrap_or_default();
            let found = json!({"results": [{"title": "Leases", "url": page, "content": "about leases"}]}).to_string();
            let (status, body) = match path {
                "/search" => ("200 OK", found),
                "/lease" => ("200 OK", "<p>A lease ends by itself.</p>".to_owned()),
                _ => ("404 Not Found", String::new()),
            };
            let length = body.len();
            let head = format!(
                "HTTP/1.1 {status}\r\nContent-Type: text/html\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n"
            );
            let body = if request.starts_with("HEAD") { "" } else { &body };
            let _ = stream.write_all(format!("{head}{body}").as_bytes());
        }
    });
    address
}

const RESEARCH: &str = r#"
- match: { text: "Plan the research of this topic: leases" }
  text: '{"research_plan": "Both sides.", "questions": ["What is a lease?", "What speaks against leases?"]}'
- match: { regex: "Research this question: What is(?s:.)*", round: 1 }
  tool_calls:
    - { name: web_search_loki, arguments: { query: lease } }
    - { name: fetch_url_via_curl, arguments: { url: "SERVER/lease" } }
- match: { text: A person has read the report }
  text: "Round three (SERVER/lease)."
- match: { text: An earlier round of research }
  text: "Round two (SERVER/lease)."
- match: { text: Research this question }
  text: "Round one (SERVER/lease)."
- match: { text: Weigh the sources, round: 1 }
  tool_calls:
    - { name: classify_source, arguments: { url: "https://x.example.edu/y" } }
- match: { text: Weigh the sources }
  text: "All good."
- match: { regex: "Judge these findings(?s:.)*Round (two|three)" }
  text: "VERDICT: PASS\nFEEDBACK: none"
- match: { text: Judge these findings }
  text: "VERDICT: REVISE\nFEEDBACK: the other side is missing"
"#;

const WRITER: &str = r#"
- match: { text: Round three }
  text: "Report three: SERVER/lease and SERVER/missing."
- match: { text: Round two }
  text: "Report two: SERVER/lease."
"#;

#[tokio::test]
async fn deep_research_loops_until_critic_and_reader_are_content() {
    let folder = tempfile::tempdir().expect("a folder");
    let server = sources();
    let controller = Controller::start(folder.path());
    let api = Api::new(&controller.http.to_string());
    for (name, mock) in [("deep-research", RESEARCH), ("report-writer", WRITER)] {
        api.register(package(name, &mock.replace("SERVER", &server))).await;
    }
    let worker = worker(folder.path(), &controller);
    let variables = json!({"search_url": format!("{server}/search"), "allow_private_addresses": "true"});
    let submit = |message: &str| json!({"agent": "deep-research", "input": {"message": message, "variables": variables}, "questions": "wait"});
    let job = api.post("/api/jobs", submit(" ")).await["id"].as_str().expect("an id").to_owned();
    let asked = answer(&api, &job, "leases and their sources").await;
    assert!(asked.contains("What should be researched?"), "{asked}");
    let asked = answer(&api, &job, "more about clocks").await;
    assert!(asked.contains("Report two") && asked.contains("1 addresses checked, 0 not found."), "{asked}");
    let asked = answer(&api, &job, "accept").await;
    let missing = format!("NOT FOUND {server}/missing (404)");
    assert!(asked.contains(&format!("OK {server}/lease")) && asked.contains(&missing), "{asked}");
    let done = api.wait(&job).await;
    let (text, state) = (&done["output_data"]["text"], &done["output_data"]["state"]);
    assert_eq!(text, &json!(format!("Report three: {server}/lease and {server}/missing.")), "{done}");
    assert_eq!(state["research_attempts"], 0, "{done}");
    assert_eq!(state["question_findings"].as_array().map(Vec::len), Some(2), "{done}");
    assert!(state["local_context"].as_str().is_some_and(|found| found.contains("sources")), "{done}");

    let job = api.post("/api/jobs", submit("leases")).await["id"].as_str().expect("an id").to_owned();
    answer(&api, &job, "reject").await;
    let done = api.wait(&job).await;
    assert_eq!(done["output_data"]["text"], "The report on leases was rejected and discarded.", "{done}");
    assert_eq!(worker.end(Signal::SIGTERM), Some(0));
    assert_eq!(controller.end(), Some(0));
}

const SQL: &str = r#"
- match: { round: 1 }
  tool_calls:
    - { name: list_tables, arguments: {} }
    - { name: describe_table, arguments: { table: "pets" } }
- match: { round: 2 }
  tool_calls:
    - { name: read_query, arguments: { query: "select count(*) as n from pets" } }
    - { name: read_query, arguments: { query: "delete from pets" } }
    - { name: read_query, arguments: { query: "with x as (select 1) delete from pets" } }
- match: { round: 3 }
  tool_calls:
    - { name: write_query, arguments: { query: "delete from pets where name = 'Rex'" } }
- match: "*"
  text: Done.
"#;

#[tokio::test]
async fn sql_reads_and_asks_before_it_writes() {
    let folder = tempfile::tempdir().expect("a folder");
    let database = folder.path().join("pets.db");
    let python = |code: &str| {
        let ran = Command::new("python3").args(["-c", code]).arg(&database).output().expect("python runs");
        String::from_utf8_lossy(&ran.stdout).trim().to_owned()
    };
    python(
        "import sqlite3, sys\nd = sqlite3.connect(sys.argv[1])\nd.execute('create table pets (name text)')\nd.execute(\"insert into pets values ('Rex'), ('Tom')\")\nd.commit()",
    );
    let count = || {
        python(
            "import sqlite3, sys\nprint(sqlite3.connect(sys.argv[1]).execute('select count(*) from pets').fetchone()[0])",
        )
    };
    let controller = Controller::start(folder.path());
    let api = Api::new(&controller.http.to_string());
    api.register(package("sql", SQL)).await;
    let worker = worker(folder.path(), &controller);
    let input = json!({"message": "go", "variables": {"dsn": format!("sqlite:{}", database.display())}});
    for (said, left) in [("deny", "2"), ("allow", "1")] {
        let body = json!({"agent": "sql", "input": input, "questions": "wait"});
        let job = api.post("/api/jobs", body).await["id"].as_str().expect("an id").to_owned();
        let asked = answer(&api, &job, said).await;
        assert!(asked.contains("write_query") && asked.contains("delete from pets where"), "{asked}");
        let done = api.wait(&job).await;
        assert_eq!(done["output_data"], json!({"text": "Done."}), "{done}");
        assert_eq!(count(), left);
    }
    assert_eq!(worker.end(Signal::SIGTERM), Some(0));
    assert_eq!(controller.end(), Some(0));
}
