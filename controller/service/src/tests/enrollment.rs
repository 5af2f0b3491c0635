//! Enrollments of members of a group, which nobody removes by hand, by a clock that the test moves.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use atlas_env::{Env, SystemClock};
use atlas_types::ObjectKind;

use super::conversations::Ahead;
use super::{Node, caller};
use crate::testing::Net;
use crate::{Consistency, Error, GroupMember};

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
