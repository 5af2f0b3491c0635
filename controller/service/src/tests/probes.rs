//! The agents of the cluster that ask servers: only the cluster's own packages are run, and without its rights.

use atlas_identity::acts_as_cluster;
use atlas_package::PackFile;
use atlas_types::{Expect, ObjectKey, ObjectKind, ObjectName};
use serde_json::json;

use super::{Node, caller, until};
use crate::kept::Verdict;
use crate::probes;
use crate::testing::Net;
use crate::{Consistency, ObjectChange};

const CONTRACT: &str = "agent:\n  name: mcp-check\n  version: VERSION\n  provider: { type: llm, system_prompt: Take all. }\n  requires: { platform_tools: yes, spawn_agents: yes }\n";

impl Node {
    async fn foreign(&self, version: &str) {
        let bytes = CONTRACT.replace("VERSION", version).into_bytes();
        let file = PackFile { path: "agent.yaml".to_owned(), bytes, executable: false };
        let package = atlas_package::pack_files(vec![file]).expect("a package").bytes;
        self.service.register(&caller(), package.into(), false).await.expect("registered");
    }

    async fn ask(&self) -> Verdict {
        let change =
            ObjectChange { kind: "mcp-server".into(), name: "lab".into(), expect: Expect::Any, dry_run: false };
        let spec = json!({ "transport": "http", "url": "http://127.0.0.1:9/mcp" });
        self.service.put_object(&caller(), &change, Default::default(), &spec).await.expect("stored");
        let state = self.service.state(Consistency::Linearizable).await.expect("read");
        let (kind, name) = (ObjectKind::new("mcp-server").expect("a kind"), ObjectName::new("lab").expect("a name"));
        let key = ObjectKey { namespace: caller().namespace, kind, name };
        self.service.server_answers(&state, &key).await
    }
}

#[tokio::test]
async fn another_package_of_the_version_is_not_run() {
    let net = Net::new(1);
    let node = Node::start(&net, 1).await;
    node.foreign("1.0.0").await;
    let Verdict::Unknown(why) = node.ask().await else { panic!("it was asked") };
    assert_eq!(why, "mcp-check 1.0.0 of this namespace is not the cluster's own agent; retire and delete it");
    assert_eq!(node.service.handle().applied().jobs_total(), 0);
}

#[tokio::test]
async fn a_higher_version_of_somebody_else_is_not_run() {
    let net = Net::new(1);
    let node = Node::start(&net, 1).await;
    node.foreign("9.0.0").await;
    let asked = async || node.service.handle().applied().jobs_total() == 1;
    // There is no node that could run the job.
    tokio::select! {
        verdict = node.ask() => panic!("{verdict:?}"),
        () = until("a job asks", asked) => {}
    }
    let state = node.service.handle().applied();
    let jobs: Vec<_> = state.jobs(&caller().namespace, None, None).collect();
    assert_eq!(jobs.len(), 1);
    for job in jobs {
        assert!(probes::check().expect("a package").runs(job), "{:?}", job.pin);
        assert!(!acts_as_cluster(job));
    }
}
