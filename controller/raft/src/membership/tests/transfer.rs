//! Tests transfers of leadership that are unnecessary, impossible or not accepted. None may leave a group without a
//! leader.

use super::*;

fn leader(members: &[Running]) -> Option<Handle> {
    members.iter().map(|member| &member.handle).find(|handle| leads(handle)).cloned()
}

/// Writes a number through the current leader until it is acknowledged and all members have it.
async fn goes_on(members: &[Running], number: u64) {
    soon(async {
        loop {
            if let Some(leader) = leader(members)
                && leader.propose(vec![set(number)]).await.is_ok()
            {
                return;
            }
            tokio::task::yield_now().await;
        }
    })
    .await;
    all_have(members, number).await;
}

async fn stop(members: Vec<Running>) {
    for member in members {
        member.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_transfer_to_the_leader_has_nothing_to_do() {
    for more in 0..3 {
        let dir = tempfile::tempdir().expect("temporary directory");
        let members = group(&dir, more).await;
        until(|| leads(&members[0].handle)).await;
        let first = members[0].handle.clone();
        let term = first.members().term;
        for number in 1..4 {
            let answer = soon(first.transfer_leader(Some(MemberId(1)))).await;
            assert_eq!(answer, Ok((MemberId(1), term)), "of {} members", more + 1);
            soon(first.propose(vec![set(number)])).await.expect("it leads on");
        }
        assert_eq!(first.members().term, term, "nobody was elected");
        all_have(&members, 3).await;
        stop(members).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_transfer_that_cannot_be_is_refused_and_the_leader_leads_on() {
    let dir = tempfile::tempdir().expect("temporary directory");
    let mut members = group(&dir, 2).await;
    let leader = members[0].handle.clone();
    let joining = Running::start(&dir, 4, SimDisk::default()).await;
    soon(leader.add_learner(MemberId(4), joining.known())).await.expect("a learner");
    until(|| leader.keeps_up(MemberId(4))).await;
    let term = leader.members().term;
    let refused = soon(leader.transfer_leader(Some(MemberId(4)))).await;
    assert_eq!(refused, Err(ChangeError::NotVoter { member: MemberId(4) }));
    let refused = soon(leader.transfer_leader(Some(MemberId(9)))).await;
    assert_eq!(refused, Err(ChangeError::UnknownMember { member: MemberId(9) }));
    // Member 3 has the whole log, but does not answer any more.
    members.pop().expect("three members").stop().await;
    until(|| leader.members().reachable(&[MemberId(3)]) == 0).await;
    let refused = soon(leader.transfer_leader(Some(MemberId(3)))).await;
    assert_eq!(refused, Err(ChangeError::Behind { member: MemberId(3) }));
    soon(leader.propose(vec![set(1)])).await.expect("it leads on");
    assert_eq!(leader.members().term, term, "nobody was elected");
    joining.stop().await;
    stop(members).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_two_transfers_at_once_one_comes_to_pass() {
    let dir = tempfile::tempdir().expect("temporary directory");
    let members = group(&dir, 2).await;
    for round in 1..6 {
        goes_on(&members, round).await;
        let Some(from) = leader(&members) else { continue };
        let others = [1, 2, 3].map(MemberId).into_iter().filter(|member| *member != from.member());
        let all = others.chain([from.member()]).map(|to| from.transfer_leader(Some(to)));
        let answers = soon(futures::future::join_all(all)).await;
        assert!(answers.iter().any(Result::is_ok), "{answers:?}");
        goes_on(&members, 10 + round).await;
    }
    stop(members).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_transfer_that_nobody_takes_up_ends() {
    for more in 0..3 {
        let dir = tempfile::tempdir().expect("temporary directory");
        let members = group(&dir, more).await;
        goes_on(&members, 1).await;
        // Member 9 is not in the group, as if it had just been removed, so no member is asked to lead.
        let raft = members[0].handle.peer_door().raft;
        raft.trigger().transfer_leader(9).await.expect("lives");
        goes_on(&members, 2).await;
        stop(members).await;
    }
}
