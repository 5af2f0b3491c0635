//! Tests worker sessions at members with slow logs.

use atlas_types::{NodeEpoch, NodeHealth, RemoveNode};
use openraft::async_runtime::WatchReceiver as _;

use super::*;

const EPOCH: NodeEpoch = NodeEpoch(1);

fn health(handle: &Handle, node: &NodeId) -> Option<NodeHealth> {
    handle.applied().node(node).map(|found| found.node.health)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hello_while_the_loss_of_its_session_is_being_written_is_refused() {
    let (dir, disks) = (tempfile::tempdir().expect("temporary directory"), [(); 3].map(|()| SimDisk::default()));
    let thirds = three_on(dir.path(), &disks, |disk| Box::new(disk.slow_driver())).await;
    let handle = &thirds[leader_of(&thirds).await].handle;
    // The entry that raises the level of a new group must not be mistaken for the lost session.
    let mut applied = handle.forward.applied.clone();
    soon(applied.wait_for(|state| state.level() == Level::CURRENT)).await.expect("lives");
    let node = NodeId::new("n1").expect("a name");
    let inventory = Inventory { places: 1, ..Inventory::default() };
    let register = || {
        let register = RegisterNode { node: node.clone(), boot_id: BootId(1), inventory: inventory.clone() };
        handle.propose(vec![request(Command::RegisterNode(register))])
    };
    let answers = soon(register()).await.expect("applied");
    assert_eq!(answers, [Ok(Outcome::NodeRegistered { epoch: EPOCH })]);
    soon(handle.session_hello(node.clone(), EPOCH, 1)).await.expect("it is up");

    let slow = Duration::from_secs(2);
    disks.iter().for_each(|disk| disk.set_latency(slow, slow));
    let raft = &handle.door.raft;
    let before = raft.metrics().borrow_watched().last_log_index;
    soon(raft.wait(None).metrics(|metrics| metrics.last_log_index > before, "the loss")).await.expect("lives");
    let late = soon(handle.session_hello(node.clone(), EPOCH, 1)).await;
    assert_eq!(health(handle, &node), Some(NodeHealth::Ready), "the loss is not applied yet");
    assert_eq!(late, Err(ReadError::NoSession), "what it holds is lost already, and may be granted to others");

    disks.iter().for_each(|disk| disk.set_latency(Duration::ZERO, Duration::ZERO));
    soon(applied.wait_for(|state| state.node(&node).is_some_and(|found| found.node.health == NodeHealth::Down)))
        .await
        .expect("lives");
    soon(register()).await.expect("applied");
    soon(handle.session_hello(node.clone(), EPOCH, 1)).await.expect("it is up again");
    for third in thirds {
        third.stop().await;
    }
}

fn register(node: &NodeId, boot: u128) -> Request {
    let inventory = Inventory { places: 1, ..Inventory::default() };
    request(Command::RegisterNode(RegisterNode { node: node.clone(), boot_id: BootId(boot), inventory }))
}

#[tokio::test]
async fn a_node_whose_worker_never_came_back_for_its_session_is_lost() {
    let (dir, disk) = (tempfile::tempdir().expect("temporary directory"), SimDisk::default());
    let (handle, service) = member(dir.path(), &disk).await;
    let node = NodeId::new("n1").expect("a name");
    soon(handle.propose(vec![register(&node, 1)])).await.expect("applied");
    assert_eq!(health(&handle, &node), Some(NodeHealth::Ready));
    let mut applied = handle.forward.applied.clone();
    soon(applied.wait_for(|state| state.node(&node).is_some_and(|found| found.node.health == NodeHealth::Down)))
        .await
        .expect("lives");
    soon(service.shutdown()).await;
}

#[tokio::test]
async fn a_node_that_was_removed_begins_anew_with_a_session() {
    let (dir, disk) = (tempfile::tempdir().expect("temporary directory"), SimDisk::default());
    let (handle, service) = member(dir.path(), &disk).await;
    let node = NodeId::new("n1").expect("a name");
    let registered = async |boot| match soon(handle.propose(vec![register(&node, boot)])).await.as_deref() {
        Ok([Ok(Outcome::NodeRegistered { epoch })]) => *epoch,
        other => panic!("{other:?}"),
    };
    for boot in [1, 2] {
        let epoch = registered(boot).await;
        soon(handle.session_hello(node.clone(), epoch, 1)).await.expect("it is up");
    }
    let remove = request(Command::RemoveNode(RemoveNode { node: node.clone() }));
    assert_eq!(soon(handle.propose(vec![remove])).await, Ok(vec![Ok(Outcome::Done)]));
    assert_eq!(soon(handle.session_renew(node.clone(), NodeEpoch(2), 1)).await, Err(ReadError::NoSession));
    let epoch = registered(3).await;
    soon(handle.session_hello(node.clone(), epoch, 1)).await.expect("it is up");
    assert_eq!(soon(handle.session_renew(node.clone(), epoch, 1)).await, Ok(1));
    soon(service.shutdown()).await;
}
