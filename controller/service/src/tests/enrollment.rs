//! Enrollments of members of a group: which names are free, and how old ones make room, by a clock that the test moves.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use atlas_desk::requests;
use atlas_env::{Env, SystemClock};
use atlas_types::{
    BootId, Command, Expect, Inventory, NodeId, ObjectKind, ObjectName, PutObject, RegisterNode, RemoveNode,
};
use serde_json::json;

use super::conversations::Ahead;
use super::{Node, caller};
use crate::testing::Net;
use crate::{Consistency, Error, GroupMember, is_denial};

const LIFE: Duration = Duration::from_secs(3_600);

fn member(node: &str) -> GroupMember<'_> {
    // What is hashed does not matter here.
    const HASH: &str = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
    GroupMember { node, token: HASH, key: HASH, life: LIFE }
}

impl Node {
    async fn enrolled(&self) -> Vec<String> {
        let state = self.service.state(Consistency::Linearizable).await.expect("a state");
        let kind = ObjectKind::new("enrollment").expect("a kind");
        state.objects_of_kind(&kind).map(|object| object.key.name.to_string()).collect()
    }
}

#[tokio::test]
async fn old_members_of_a_group_make_room_for_new_ones() {
    let clock = Arc::new(Ahead { system: SystemClock::new(), seconds: AtomicI64::new(0) });
    let node = Node::start_in(&Net::new(1), 1, Env { clock: clock.clone(), ..Env::system() }).await;
    let join = async |name: &str| node.service.enroll_member(&caller(), member(name)).await;
    node.service.create_node_token(&caller(), "own", member("own").token, LIFE).await.expect("made");
    for name in ["a", "b", "c", "d", "e"] {
        join(name).await.expect("joined");
    }
    clock.seconds.store(3_500, Ordering::Relaxed);
    join("f").await.expect("joined");
    assert_eq!(node.enrolled().await, ["own", "a", "b", "c", "d", "e", "f"], "certificates are valid");
    clock.seconds.store(3_700, Ordering::Relaxed);
    join("f").await.expect("the same key");
    assert_eq!(node.enrolled().await.len(), 7, "a repeat writes nothing");
    join("g").await.expect("joined");
    assert_eq!(node.enrolled().await, ["own", "e", "f", "g"], "at most four at once, and none of another kind");
    join("h").await.expect("joined");
    // The leader's time does not jump with the clock, so all were written at the beginning.
    assert_eq!(node.enrolled().await, ["own", "h"]);
    assert!(matches!(join("own").await, Err(Error::NodeTokenRefused)));
}

/// What an enrollment of the group looks like.
fn enrollment(name: &str) -> Command {
    let hash = member(name).key;
    let spec = json!({ "key_sha256": hash, "token_sha256": hash });
    Command::PutObject(PutObject {
        kind: ObjectKind::new("enrollment").expect("a kind"),
        name: ObjectName::new(name).expect("a name"),
        labels: [("joined-by".to_owned(), "group-token".to_owned())].into(),
        spec: spec.to_string().into_bytes().into(),
        spec_version: 1,
        expect: Expect::Absent,
    })
}

fn registered(name: &str) -> Command {
    let inventory = Inventory { places: 1, ..Inventory::default() };
    Command::RegisterNode(RegisterNode { node: NodeId::new(name).expect("a name"), boot_id: BootId(1), inventory })
}

#[tokio::test]
async fn the_name_of_a_node_that_was_revoked_is_not_free() {
    let node = Node::start(&Net::new(1), 1).await;
    let join = async |name: &str| node.service.enroll_member(&caller(), member(name)).await;
    node.propose(registered("gpu-1")).await;
    let refused = join("gpu-1").await.expect_err("it has no enrollment, and labels of its operator");
    assert!(matches!(&refused, Error::NodeNameTaken(name) if name == "gpu-1"), "{refused:?}");
    assert!(is_denial(&refused) && refused.hint().ends_with("atlasctl node remove gpu-1"), "{}", refused.hint());
    node.propose(Command::RemoveNode(RemoveNode { node: NodeId::new("gpu-1").expect("a name") })).await;
    join("gpu-1").await.expect("the cluster does not know it any more");
    node.propose(registered("gpu-1")).await;
    join("gpu-1").await.expect("under its own enrollment");
}

#[tokio::test]
async fn a_group_has_a_limit_and_old_members_that_live_hide_no_others() {
    let clock = Arc::new(Ahead { system: SystemClock::new(), seconds: AtomicI64::new(0) });
    let node = Node::start_in(&Net::new(1), 1, Env { clock: clock.clone(), ..Env::system() }).await;
    let join = async |name: &str| node.service.enroll_member(&caller(), member(name)).await;
    let names: Vec<String> = (0..4_096).map(|number| format!("pod-{number}")).collect();
    for names in names.chunks(512) {
        let batch = names.iter().map(|name| requests::of(&caller(), enrollment(name))).collect();
        let outcomes = node.service.handle().propose(batch).await.expect("applied");
        assert!(outcomes.iter().all(Result::is_ok), "{:?}", outcomes.first());
    }
    let refused = join("next").await.expect_err("too many");
    assert_eq!(refused.to_string(), "the group has 4096 nodes that joined by its token, which is the limit");
    join("pod-7").await.expect("one that is there");
    // The first 300 are connected, and nobody knows the others any more.
    for names in names[..300].chunks(100) {
        let batch = names.iter().map(|name| requests::of(&caller(), registered(name))).collect();
        node.service.handle().propose(batch).await.expect("applied");
    }
    clock.seconds.store(3_700, Ordering::Relaxed);
    join("next").await.expect("there is room");
    let left = node.enrolled().await;
    assert_eq!((left.len(), left[299].as_str(), left[300].as_str()), (4_093, "pod-299", "pod-304"));
}
