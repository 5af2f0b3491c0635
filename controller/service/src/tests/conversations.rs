//! Conversations expire, by a clock that the test moves, and end a turn whose message is lost.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use atlas_access::{Access, Place, Right, Rights};
use atlas_env::{Clock, Env, SystemClock};
use atlas_objects::{ConversationSpec, TurnUnderWay};
use atlas_types::{Command, Digest, Door, Expect, Job, JobId, JobStatus, ObjectKind, Principal, PutObject, Timestamp};

use super::{Net, Node, caller, inline};
use crate::{Caller, Consistency, ConversationScope, Error, Mapping, Message};

const HOUR: i64 = 3_600;

/// The machine's clock, some seconds ahead.
pub(super) struct Ahead {
    pub(super) system: SystemClock,
    pub(super) seconds: AtomicI64,
}

impl Clock for Ahead {
    fn wall(&self) -> Timestamp {
        Timestamp(self.system.wall().0 + self.seconds.load(Ordering::Relaxed) * 1_000_000)
    }

    fn monotonic(&self) -> Duration {
        self.system.monotonic()
    }

    fn sleep(&self, duration: Duration) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        self.system.sleep(duration)
    }
}

fn put(name: &str, scope: &str, updated_at: u64) -> Command {
    let (agent, scope) = ("echo".to_owned(), scope.to_owned());
    put_spec(name, &ConversationSpec { agent, scope, updated_at, ..ConversationSpec::default() })
}

fn put_spec(name: &str, spec: &ConversationSpec) -> Command {
    let spec = atlas_objects::canonical(&serde_json::to_value(spec).expect("JSON")).expect("a document");
    Command::PutObject(PutObject {
        kind: ObjectKind::new("conversation").expect("a kind"),
        name: name.parse().expect("a name"),
        labels: Default::default(),
        spec: spec.into(),
        spec_version: 1,
        expect: Expect::Absent,
    })
}

#[tokio::test]
async fn conversations_end_after_their_time() {
    let clock = Arc::new(Ahead { system: SystemClock::new(), seconds: AtomicI64::new(0) });
    let net = Net::new(1);
    let node = Node::start_in(&net, 1, Env { clock: clock.clone(), ..Env::system() }).await;
    let began = u64::try_from(clock.wall().0 / 1_000_000).expect("after 1970");
    for (name, scope) in [("session", "connection"), ("team", "shared"), ("trip", "named")] {
        node.propose(put(name, scope, began)).await;
    }
    let left = async || {
        let all = node.service.conversations(&caller(), Consistency::Linearizable).await.expect("conversations");
        let names: Vec<String> = all.iter().map(|one| one["id"].as_str().expect("an id").to_owned()).collect();
        names.join(" ")
    };
    let after = async |hours: i64| {
        clock.seconds.store(hours * HOUR, Ordering::Relaxed);
        let removed = node.service.shared.conversations.expire_conversations().await.expect("removed");
        (removed, left().await)
    };
    assert_eq!(after(23).await, (0, "session team trip".to_owned()));
    assert_eq!(after(25).await, (1, "team trip".to_owned()));
    // A turn begins the time anew.
    let renewed = began + 20 * 24 * 3_600;
    let mut again = put("trip", "named", renewed);
    if let Command::PutObject(put) = &mut again {
        put.expect = Expect::Any;
    }
    node.propose(again).await;
    assert_eq!(after(31 * 24).await, (1, "trip".to_owned()));
    assert_eq!(after(49 * 24).await, (0, "trip".to_owned()));
    assert_eq!(after(51 * 24).await, (1, String::new()));
}

#[tokio::test]
async fn the_conversation_of_a_session_is_continued_by_whoever_began_it() {
    let net = Net::new(1);
    let node = Node::start(&net, 1).await;
    // An old one would be removed meanwhile.
    let updated_at = Env::system().clock.wall().0.unsigned_abs() / 1_000_000;
    let spec = |scope: &str| ConversationSpec {
        agent: "echo".to_owned(),
        scope: scope.to_owned(),
        owner: "ann".to_owned(),
        updated_at,
        ..Default::default()
    };
    node.propose(put_spec("session", &spec("connection"))).await;
    node.propose(put_spec("trip", &spec("named"))).await;
    let refused = async |who: &str, conversation: &str| {
        let place = Place::In(caller().namespace);
        let access = Access::new(Principal::new(who).expect("a name"), vec![(place, Rights::of(&[Right::JobsSubmit]))]);
        let caller = Caller::authenticated(Door::Mcp, Some(Arc::new(access)));
        let mapping = Mapping::of(&serde_json::json!({"provider": {"messages": "messages"}})).expect("a mapping");
        let (agent, message) = ("echo".parse().expect("a name"), Message::user("x".to_owned(), Vec::new()));
        let scope = ConversationScope::Named;
        let begun = node.service.begin_turn(&caller, conversation, scope, &agent, &mapping, message).await;
        matches!(begun, Err(Error::Forbidden { .. }))
    };
    assert!(refused("bob", "session").await);
    // Nobody has the agent here, so that a turn fails in another way.
    assert!(!refused("ann", "session").await);
    assert!(!refused("bob", "trip").await);
}

#[tokio::test]
async fn a_turn_whose_message_is_lost_ends_without_its_answer() {
    let net = Net::new(1);
    let node = Node::start(&net, 1).await;
    node.job(1, inline()).await;
    let state = node.service.handle().applied();
    let refused = state.job(JobId(1)).expect("it ended");
    let answer = Some(inline());
    let job = Job { id: JobId(2), status: JobStatus::Completed, failure: None, output: answer, ..Job::clone(refused) };
    node.remember(job).await;
    let turn = TurnUnderWay { job: JobId(2).to_string(), message: Digest([9; 32]).to_string(), since: 0 };
    let (agent, scope) = ("nobody".to_owned(), "named".to_owned());
    node.propose(put_spec("trip", &ConversationSpec { agent, scope, turn: Some(turn), ..Default::default() })).await;
    let shown = node.service.conversation(&caller(), "trip", Consistency::Linearizable).await.expect("shown");
    assert_eq!((&shown["running_job"], &shown["turns"]), (&serde_json::Value::Null, &serde_json::json!(0)));
}
