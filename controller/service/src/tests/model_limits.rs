//! Limits of models at a new leader, which learns from the workers what they use.

use atlas_limiter::{Ask, Limiter, ModelKey, Session};
use atlas_types::{
    BootId, Command, Expect, Inventory, JobId, Namespace, NodeEpoch, NodeId, ObjectKind, ObjectName, PutObject,
    RegisterNode, RemoveNode,
};

use super::Node;
use crate::testing::Net;

fn registered(node: &NodeId) -> Command {
    let inventory = Inventory { places: 1, ..Inventory::default() };
    Command::RegisterNode(RegisterNode { node: node.clone(), boot_id: BootId(1), inventory })
}

fn limited() -> Command {
    Command::PutObject(PutObject {
        kind: ObjectKind::new("model").expect("a kind"),
        name: ObjectName::new("small").expect("a name"),
        labels: Default::default(),
        spec: br#"{"limits":{"requests_per_minute":3},"name":"m","provider":"openai"}"#.as_slice().into(),
        spec_version: 1,
        expect: Expect::Any,
    })
}

#[tokio::test]
async fn a_node_that_is_lost_before_anybody_asks_takes_along_what_it_used() {
    let node = Node::start(&Net::new(1), 1).await;
    let [kept, lost] = ["n1", "n2"].map(|name| NodeId::new(name).expect("a name"));
    node.propose(limited()).await;
    for node_id in [&kept, &lost] {
        node.propose(registered(node_id)).await;
    }
    let service = &node.service;
    let now = service.shared.env.clock.monotonic();
    let change = |change: &mut dyn FnMut(&mut Limiter)| service.model_limits().change(|limiter| change(limiter));
    let begun = || service.grant_models(&mut |_| true).0.len();
    change(&mut |limiter| limiter.restart(now));
    assert_eq!(begun(), 0);
    node.propose(Command::RemoveNode(RemoveNode { node: lost.clone() })).await;
    let session = Session { node: kept, epoch: NodeEpoch(1), stream: 1 };
    let model = ModelKey { namespace: Namespace::default_namespace(), model: "small".to_owned() };
    change(&mut |limiter| {
        limiter.lost(&lost, NodeEpoch(1));
        limiter.connected(session.clone(), true);
        limiter.announce(&session, Vec::new(), Vec::new(), now);
        limiter.ask(&session, Ask { number: 1, job: JobId(1), model: model.clone(), tokens: 0 });
    });
    assert_eq!(begun(), 0, "what the lost node used is unknown for a minute");
    let waits = service.model_wait_here(JobId(1)).expect("it leads").expect("it waits");
    assert!(waits.contains("a lost worker knew what was used in this minute"), "{waits}");
    // A leader that never knew of it knows all.
    change(&mut |limiter| {
        limiter.restart(now);
        limiter.connected(session.clone(), true);
        limiter.announce(&session, Vec::new(), Vec::new(), now);
        limiter.ask(&session, Ask { number: 1, job: JobId(1), model: model.clone(), tokens: 0 });
    });
    assert_eq!(begun(), 1);
}
