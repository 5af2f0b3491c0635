//! Orchestrators outside of the cluster: a program that decides over gRPC, also one that is wrong, slow or away.

use std::net::SocketAddr;
use std::time::Duration;

use atlas_env::Env;
use atlas_wire::proto::orchestrator::v1::orchestrator_service_server::{
    OrchestratorService, OrchestratorServiceServer,
};
use atlas_wire::proto::orchestrator::v1::{Action, DecideRequest, DecideResponse, Decision, Job};
use serde_json::{Value, json};
use tonic::{Request, Response, Status};

use crate::client::{PATIENCE, Server};

/// Decides by the member `say` of the input.
struct Program;

fn decision(job: &Job) -> Result<Option<Decision>, Status> {
    let input: Value = serde_json::from_slice(&job.input_json).unwrap_or_default();
    let agent: Value = serde_json::from_slice(&job.agent_json).unwrap_or_default();
    let action = |action: Action| Decision { action: action.into(), rule: "by hand".to_owned(), ..Decision::default() };
    Ok(match input["say"].as_str().unwrap_or_default() {
        "no" => {
            let reason = format!("{} {} said no to {}", agent["version"], job.labels.len(), job.agent_name);
            Some(Decision { reason, ..action(Action::Reject) })
        }
        "other" => Some(Decision { agent_name: "other".to_owned(), priority: Some(-3), ..action(Action::Redirect) }),
        "strange" => Some(Decision { action: 77, ..Decision::default() }),
        "less" => None,
        "broken" => return Err(Status::internal("out of paper")),
        _ => Some(action(Action::Allow)),
    })
}

#[tonic::async_trait]
impl OrchestratorService for Program {
    async fn decide(&self, request: Request<DecideRequest>) -> Result<Response<DecideResponse>, Status> {
        let mut decisions = Vec::new();
        for job in &request.get_ref().jobs {
            if job.input_json.as_ref().windows(4).any(|text| text == b"slow") {
                Env::system().clock.sleep(PATIENCE).await;
            }
            decisions.extend(decision(job)?);
        }
        Ok(Response::new(DecideResponse { decisions }))
    }
}

/// Starts the program; returns its address.
async fn program() -> SocketAddr {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address");
    let service = OrchestratorServiceServer::new(Program);
    let incoming = futures::stream::unfold(listener, |listener| async {
        let connection = listener.accept().await.map(|(connection, _)| connection);
        Some((connection, listener))
    });
    #[expect(clippy::disallowed_methods, reason = "it ends with the runtime of the test")]
    tokio::spawn(tonic::transport::Server::builder().add_service(service).serve_with_incoming(incoming));
    address
}

/// The job of an input, once the orchestrator has decided on it.
async fn decided(server: &Server, say: &str) -> Value {
    let body = json!({"agent": "worker", "input": {"say": say}}).to_string();
    let id = server.post("/api/jobs", &body).await.json()["id"].as_str().expect("an id").to_owned();
    let look = async {
        loop {
            let job = server.get(&format!("/api/jobs/{id}?view=full")).await.json();
            if job["reason"] != "routing" {
                return job;
            }
            Env::system().clock.sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(PATIENCE, look).await.expect("it is decided on")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_program_decides_and_the_fall_back_decides_for_it() {
    let server = Server::start().await;
    server.register("agent:\n  name: worker\n  version: 1.0.0\n").await;
    server.register("agent:\n  name: other\n  version: 1.0.0\n").await;
    let address = program().await;
    let put = async |name: &str, address: &str| {
        let body = json!({"spec": {"grpc": {"address": address}}}).to_string();
        server.send("PUT", &format!("/api/objects/orchestrator/{name}"), "", body.as_bytes()).await.status
    };
    assert_eq!(put("far", "192.0.2.1:9000").await, 400, "calls are not encrypted");
    assert_eq!(put("program", &address.to_string()).await, 200);
    let settings = json!({"spec": {"orchestrator": "program", "deadline_ms": 300, "fallback": "reject"}}).to_string();
    let selected = server.send("PUT", "/api/objects/routing/default", "", settings.as_bytes()).await;
    assert_eq!(selected.status, 200, "{selected:?}");

    let job = decided(&server, "yes").await;
    assert_eq!((&job["status"], &job["route"]["rule"]), (&json!("pending"), &json!("by hand")), "{job}");
    let job = decided(&server, "no").await;
    assert_eq!((&job["status"], &job["error"]), (&json!("failed"), &json!("\"1.0.0\" 0 said no to worker")), "{job}");
    let job = decided(&server, "other").await;
    assert_eq!((&job["agent_name"], &job["route"]["action"]), (&json!("other"), &json!("redirect")), "{job}");
    assert_eq!(decided(&server, "strange").await["route"]["action"], "execute");
    for (say, why) in [("less", "made 0 decisions on 1 jobs"), ("broken", "out of paper")] {
        let job = decided(&server, say).await;
        assert!(job["error"].as_str().is_some_and(|error| error.contains(why)), "{say}: {job}");
    }
    // A call that has no answer in time is given up, here or by the deadline of the job.
    let job = decided(&server, "slow").await;
    assert!(job["error"].as_str().is_some_and(|error| error.starts_with("Rejected by orchestrator: ")), "{job}");

    // Nobody listens there any more.
    let gone = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = gone.local_addr().expect("an address").to_string();
    drop(gone);
    assert_eq!(put("program", &address).await, 200);
    let job = decided(&server, "yes").await;
    assert!(job["error"].as_str().is_some_and(|error| error.starts_with("Rejected by orchestrator: ")), "{job}");
}
