//! Tests members whose disk is full or slow, and members that compare their states.

use atlas_types::{EventSeq, SinkImage, StateImage};

use super::*;
use crate::consensus::ELECTION_MAX;
use crate::consensus::snapshot::{Snapshots, Source};
use crate::error::ProposeError;
use crate::monitor::space::Room;

/// Less than the reserve of a member, but enough for its log.
const SHORT_BYTES: u64 = 20 << 20;

async fn has_room(handle: &Handle, wanted: Room) {
    let mut disk = handle.disk();
    soon(disk.wait_for(|disk| disk.room == wanted)).await.expect("lives");
}

#[tokio::test]
async fn a_member_short_of_room_refuses_new_work_and_goes_on_by_itself() {
    let (dir, disk) = (tempfile::tempdir().expect("temporary directory"), SimDisk::default());
    let (handle, service) = member(dir.path(), &disk).await;
    soon(handle.propose(vec![agent()])).await.expect("applied");

    disk.set_capacity(Some(SHORT_BYTES));
    has_room(&handle, Room::Short).await;
    assert_eq!(soon(handle.propose(vec![submit(JobId(1))])).await, Err(ProposeError::NoSpace));
    soon(handle.propose(vec![set(1)])).await.expect("what takes no room is taken");

    disk.set_capacity(Some(0));
    has_room(&handle, Room::None).await;
    assert_eq!(soon(handle.propose(vec![set(2)])).await, Err(ProposeError::NoSpace));
    assert_eq!(soon(handle.read()).await.expect("reads go on").config().agents_max, 1);
    assert!(matches!(*handle.leadership().borrow(), Leadership::Leader { .. }));

    disk.set_capacity(None);
    has_room(&handle, Room::Ample).await;
    let answers = soon(handle.propose(vec![submit(JobId(1)), set(3)])).await.expect("applied");
    assert_eq!(answers[1], Ok(Outcome::Done));
    soon(service.shutdown()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_leader_short_of_room_leaves_the_lead_to_one_that_has_some() {
    let (dir, disks) = (tempfile::tempdir().expect("temporary directory"), [(); 3].map(|()| SimDisk::default()));
    let thirds = three(dir.path(), &disks).await;
    propose_somewhere(&thirds, 1).await;
    let leader = leader_of(&thirds).await;
    disks[leader].set_capacity(Some(SHORT_BYTES));
    let follows = |leadership: &Leadership| matches!(leadership, Leadership::Follower { .. });
    soon(thirds[leader].handle.leadership().wait_for(follows)).await.expect("lives");
    propose_somewhere(&thirds, 2).await;
    all_have(&thirds, 2).await;
    for third in thirds {
        third.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn three_full_disks_stop_writes_and_nothing_else() {
    let (dir, disks) = (tempfile::tempdir().expect("temporary directory"), [(); 3].map(|()| SimDisk::default()));
    let thirds = three(dir.path(), &disks).await;
    propose_somewhere(&thirds, 1).await;
    all_have(&thirds, 1).await;
    disks.iter().for_each(|disk| disk.set_capacity(Some(0)));
    for third in &thirds {
        has_room(&third.handle, Room::None).await;
    }
    for third in &thirds {
        let state = soon(third.handle.read()).await.expect("reads go on");
        assert_eq!(state.config().agents_max, 1);
        let refused = soon(third.handle.propose(vec![set(2)])).await;
        assert!(matches!(refused, Err(ProposeError::NoSpace)), "{refused:?}");
    }
    disks.iter().for_each(|disk| disk.set_capacity(None));
    propose_somewhere(&thirds, 3).await;
    all_have(&thirds, 3).await;
    for third in thirds {
        third.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn members_with_full_disks_succeed_no_leader() {
    let (dir, disks) = (tempfile::tempdir().expect("temporary directory"), [(); 3].map(|()| SimDisk::default()));
    let mut thirds = three(dir.path(), &disks).await;
    propose_somewhere(&thirds, 1).await;
    all_have(&thirds, 1).await;
    let leader = leader_of(&thirds).await;
    let full = |index: usize| (index != leader).then_some(&disks[index]);
    (0..3).filter_map(full).for_each(|disk| disk.set_capacity(Some(0)));
    for (_, third) in thirds.iter().enumerate().filter(|(index, _)| *index != leader) {
        has_room(&third.handle, Room::None).await;
    }
    // One that was elected meanwhile has left the lead to it again.
    leads(&thirds[leader].handle).await;
    thirds.remove(leader).stop().await;
    let terms = || thirds.iter().map(|third| third.handle.members().term).max();
    let before = terms();
    // Both would have begun by now.
    Env::system().clock.sleep(3 * ELECTION_MAX).await;
    assert_eq!(terms(), before, "nobody asked for a vote");
    (0..3).filter_map(full).for_each(|disk| disk.set_capacity(None));
    propose_somewhere(&thirds, 2).await;
    for third in thirds {
        third.stop().await;
    }
}

#[tokio::test]
async fn a_full_queue_pushes_back_and_loses_nothing() {
    let (dir, disk) = (tempfile::tempdir().expect("temporary directory"), SimDisk::default());
    let options = Options { queue_max: 8, ..options(dir.path()) };
    let (handle, service) = soon(start_on(Box::new(disk.driver()), options, Env::system())).await.expect("starts");
    leads(&handle).await;
    let all = (0..200).map(|number| handle.propose(vec![set(number)]));
    let answers = soon(futures::future::join_all(all)).await;
    let overloaded = answers.iter().filter(|answer| **answer == Err(ProposeError::Overloaded)).count();
    let applied = answers.iter().filter(|answer| answer.is_ok()).count();
    assert_eq!(overloaded + applied, 200, "{answers:?}");
    assert!(overloaded > 0 && applied > 0, "{overloaded} refused, {applied} applied");
    assert!(matches!(*handle.leadership().borrow(), Leadership::Leader { .. }));
    soon(handle.propose(vec![set(7)])).await.expect("applied");
    soon(service.shutdown()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn three_slow_disks_are_slow_and_nothing_else() {
    let (dir, disks) = (tempfile::tempdir().expect("temporary directory"), [(); 3].map(|()| SimDisk::default()));
    let thirds = three_on(dir.path(), &disks, |disk| Box::new(disk.slow_driver())).await;
    propose_somewhere(&thirds, 1).await;
    let leader = leader_of(&thirds).await;
    let term = thirds[leader].handle.members().term;
    let slow = Duration::from_millis(300);
    disks.iter().for_each(|disk| disk.set_latency(slow, slow));
    for number in 2..=6 {
        soon(thirds[leader].handle.propose(vec![set(number)])).await.expect("applied");
    }
    assert_eq!(thirds[leader].handle.members().term, term, "nobody else was elected");
    disks.iter().for_each(|disk| disk.set_latency(Duration::ZERO, Duration::ZERO));
    all_have(&thirds, 6).await;
    for third in thirds {
        third.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn members_that_share_their_state_find_so() {
    let (dir, disks) = (tempfile::tempdir().expect("temporary directory"), [(); 3].map(|()| SimDisk::default()));
    let thirds = three(dir.path(), &disks).await;
    let proposing = async {
        for number in 1.. {
            propose_somewhere(&thirds, number).await;
        }
    };
    let agreeing = async {
        for third in &thirds {
            let mut agreement = third.handle.agreement();
            soon(agreement.wait_for(|agreement| agreement.seq.0 > 8)).await.expect("lives");
        }
    };
    tokio::select! {
        () = agreeing => {}
        () = proposing => unreachable!("it goes on and on"),
    }
    for third in thirds {
        third.stop().await;
    }
}

/// Changes the snapshot of a stopped member, like a memory error.
fn corrupt(dir: &Path, change: impl FnOnce(&mut StateImage)) {
    let env = Env::system();
    let snapshots = Snapshots::open(Arc::clone(&env.files), dir.join("raft").join("snapshots")).expect("readable");
    let (meta, file) = snapshots.current().expect("there is one");
    let decode = |body: &mut dyn std::io::Read| atlas_format::decode_snapshot(body).map_err(std::io::Error::other);
    let (_, mut image) = file.read(decode).expect("whole");
    change(&mut image);
    let write: Source =
        Box::new(move |mut out| atlas_format::encode_snapshot(&image, &mut out).map_err(std::io::Error::other));
    snapshots.write(&meta, &write, |_| Ok(())).expect("written");
}

#[tokio::test]
async fn a_snapshot_that_breaks_an_invariant_is_refused_by_its_name() {
    let (dir, disk) = (tempfile::tempdir().expect("temporary directory"), SimDisk::default());
    let (handle, service) = member(dir.path(), &disk).await;
    soon(handle.propose(vec![set(1)])).await.expect("applied");
    snapshot_and_purge(&handle).await;
    drop(handle);
    soon(service.shutdown()).await;
    corrupt(dir.path(), |image| image.sinks.push(SinkImage { member: MemberId(1), event: EventSeq(99) }));
    let started = soon(start_on(Box::new(disk.driver()), options(dir.path()), Env::system())).await;
    let error = started.expect_err("it does not load");
    assert!(error.is_damage());
    expect_test::expect!["the snapshot breaks the invariant EVENT-1; let this controller join again with an empty directory, or if no controller starts, restore the last backup: atlasctl operator snapshot restore: the image is not a state that commands lead to: EVENT-1 is broken: Some((1, 99)) was acknowledged, the last event is 1"].assert_eq(&atlas_env::chain(&error));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_member_whose_state_differs_stops_and_names_itself() {
    let (dir, disks) = (tempfile::tempdir().expect("temporary directory"), [(); 3].map(|()| SimDisk::default()));
    let thirds = three(dir.path(), &disks).await;
    propose_somewhere(&thirds, 1).await;
    all_have(&thirds, 1).await;
    let wrong = (leader_of(&thirds).await + 1) % 3;
    snapshot_and_purge(&thirds[wrong].handle).await;
    let (member, members) = (thirds[wrong].handle.member(), thirds[wrong].members.clone());
    for third in thirds {
        third.stop().await;
    }
    // Changes a field that no answer depends on.
    corrupt(&dir.path().join(member.to_string()), |image| image.queue_seq += 1);

    let mut thirds = Vec::new();
    for (disk, (id, known)) in disks.iter().zip(&members) {
        let listener = TcpListener::bind(&known.peer).await.expect("its old address");
        thirds.push(third(dir.path(), Box::new(disk.driver()), *id, &members, listener).await);
    }
    let mut back = thirds.remove(wrong);
    // The answers and thus the chains are equal. Only the digests differ, once the feature level that has them is
    // active.
    let proposing = async {
        for number in 2.. {
            // The leader may be the member with the wrong state. A failed proposal does not matter, because the next
            // one follows.
            let _ = soon(thirds[0].handle.propose(vec![set(number)])).await;
        }
    };
    let found = async {
        let reason = soon(back.service.failed()).await;
        assert!(reason.contains(&format!("the state of member {member} after entry")), "{reason}");
        for third in &thirds {
            let mut agreement = third.handle.agreement();
            soon(agreement.wait_for(|agreement| agreement.seq.0 > 8)).await.expect("lives");
            assert!(!matches!(*third.handle.leadership().borrow(), Leadership::Stopped { .. }));
        }
    };
    tokio::select! {
        () = found => {}
        () = proposing => unreachable!("it goes on and on"),
    }
    for third in thirds {
        third.stop().await;
    }
    back.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_follower_that_restarts_right_after_its_snapshot_and_purge_goes_on() {
    let (dir, disks) = (tempfile::tempdir().expect("temporary directory"), [(); 3].map(|()| SimDisk::default()));
    let mut thirds = three(dir.path(), &disks).await;
    for round in 1..=4 {
        propose_somewhere(&thirds, 10 * round).await;
        all_have(&thirds, 10 * round).await;
        let which = (leader_of(&thirds).await + 1) % 3;
        let follower = thirds.remove(which);
        let (member, members) = (follower.handle.member(), follower.members.clone());
        snapshot_and_purge(&follower.handle).await;
        // When the member is back, it has either no entry after the purge, or one.
        if round % 2 == 0 {
            propose_somewhere(&thirds, 10 * round + 1).await;
        }
        let disk = &disks[usize::try_from(member.0).expect("small") - 1];
        if round > 2 {
            disk.crash(round);
        }
        follower.stop().await;
        let listener = TcpListener::bind(&members[&member].peer).await.expect("its old address");
        thirds.insert(which, third(dir.path(), Box::new(disk.driver()), member, &members, listener).await);
        propose_somewhere(&thirds, 10 * round + 2).await;
        all_have(&thirds, 10 * round + 2).await;
    }
    soon(agree(&thirds)).await;
    for third in thirds {
        third.stop().await;
    }
}
