//! Credentials of callers through the service.

use atlas_jobs::IntendedJob;
use atlas_package::PackFile;
use atlas_types::{Expect, JobId, RequestId, SecretText};
use bytes::Bytes;
use serde_json::json;

use super::{Node, caller, until};
use crate::testing::Net;
use crate::{Caller, Error, ObjectChange, Service, Submission};

const CONTRACT: &str = "agent:\n  name: talker\n  version: 1.0.0\n  model: { name: fast }\n  provider: { type: llm, system_prompt: Talk. }\n  requires: { mcp_servers: [lab] }\n";

/// Registers an agent whose server gets credentials of callers.
async fn prepare(service: &Service) {
    let change = ObjectChange { kind: "mcp-server".into(), name: "lab".into(), expect: Expect::Any, dry_run: false };
    let spec = json!({ "transport": "http", "url": "http://127.0.0.1:9/mcp", "forward_inbound_auth": true });
    service.put_object(&caller(), &change, Default::default(), &spec).await.expect("stored");
    let file = PackFile { path: "agent.yaml".to_owned(), bytes: CONTRACT.into(), executable: false };
    let package = atlas_package::pack_files(vec![file]).expect("a package").bytes;
    service.register(&caller(), package.into(), false).await.expect("registered");
}

fn carrying() -> Caller {
    caller().with_inbound(Some(SecretText::new("Bearer x")))
}

fn submission() -> Submission {
    Submission::new("talker".parse().expect("a name"), Bytes::from_static(b"{}"))
}

#[tokio::test]
async fn a_credential_whose_job_is_refused_stays_at_no_controller() {
    let net = Net::new(2);
    let (near, far) = (Node::start(&net, 1).await, Node::start(&net, 2).await);
    prepare(&near.service).await;
    let intended = IntendedJob { id: JobId(7), stays: true };
    let held = near.service.shared.jobs.hold_inbound(&carrying(), &submission(), intended).await.expect("held");
    assert!(held.is_some(), "it goes on");
    until("the other controller holds it", async || far.service.bearers().of(JobId(7)).is_some()).await;
    // It is tried again.
    near.service.shared.jobs.forget_unsubmitted(intended, &Error::Overloaded);
    assert!(near.service.bearers().of(JobId(7)).is_some());
    near.service.shared.jobs.forget_unsubmitted(intended, &Error::UnknownJob);
    assert!(near.service.bearers().of(JobId(7)).is_none());
    until("the other controller does not", async || far.service.bearers().of(JobId(7)).is_none()).await;
}

#[tokio::test]
async fn a_repeat_with_a_credential_gets_the_first_answer() {
    let net = Net::new(1);
    let node = Node::start(&net, 1).await;
    let service = &node.service;
    prepare(service).await;
    let carrying = carrying();
    let submission =
        Submission { request_id: Some(RequestId::new("once").expect("a name")), refuse: true, ..submission() };
    let first = service.submit(&carrying, submission.clone()).await.expect("taken");
    assert!(service.handle().applied().job(first).expect("there").bearer);
    service.retire(&caller(), "talker", "1.0.0").await.expect("retired");
    assert_eq!(service.submit(&carrying, submission.clone()).await.expect("a repeat"), first);
    // Another one is refused as without a credential.
    let other = Submission { request_id: None, ..submission };
    let refused = service.submit(&carrying, other.clone()).await.expect_err("refused").to_string();
    assert_eq!(refused, service.submit(&caller(), other).await.expect_err("refused").to_string());
}
