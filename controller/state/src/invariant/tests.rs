//! Each invariant can be violated, so that its check is known to work.

use std::sync::Arc;

use atlas_types::{
    Carried, ClusterTime, EventSeq, FencingToken, Job, JobId, JobStatus, LimitKey, Namespace, NodeHealth, Place,
    Reason, RouteAction, RunId, Seq, Timestamp,
};

use crate::State;
use crate::node::NodeState;
use crate::tests::script::Run;

/// Breaks a small busy state and names the invariant that says so.
fn broken(break_it: impl FnOnce(&mut State)) -> &'static str {
    let mut run = Run::new();
    run.prepare(
        "agent a retries=1; node n1 places=3 cores=4; job j1; job j2; job j3; grant j1 n1; grant j2 n1; fail j2",
    );
    let mut state = run.state;
    break_it(&mut state);
    state.check_invariants().expect_err("it is broken").name
}

fn job(state: &mut State, id: u64, change: impl FnOnce(&mut Job)) {
    let mut job = state.jobs.remove(JobId(id)).expect("it is there");
    change(Arc::make_mut(&mut job));
    state.jobs.insert(job);
    state.index = state.rebuilt_index();
}

fn node(state: &mut State, change: impl FnOnce(&mut NodeState)) {
    let id = state.nodes.get_min().expect("there is one").0.clone();
    change(Arc::make_mut(state.nodes.get_mut(&id).expect("there is one")));
    state.index = state.rebuilt_index();
}

#[test]
fn each_is_found() {
    assert_eq!(broken(|state| state.index.pending += 1), "INDEX-1");
    assert_eq!(broken(|state| node(state, |node| node.free.processes.free = 9)), "INDEX-1");
    assert_eq!(broken(|state| job(state, 3, |job| job.status = JobStatus::Running)), "LEASE-1");
    assert_eq!(broken(|state| node(state, |node| Arc::make_mut(&mut node.node).epoch.0 = 9)), "LEASE-1");
    assert_eq!(broken(|state| state.grant_seq = FencingToken(0)), "LEASE-2");
    assert_eq!(broken(|state| state.queue_seq = 1), "COUNT-1");
    assert_eq!(broken(|state| state.seq = Seq(1)), "COUNT-1");
    assert_eq!(broken(|state| job(state, 3, |job| job.queue_seq = 1)), "INDEX-1");
    assert_eq!(broken(|state| job(state, 3, |job| job.completed_at = Timestamp(1))), "JOB-1");
    assert_eq!(broken(|state| job(state, 2, |job| job.failure = None)), "JOB-1");
    assert_eq!(broken(|state| job(state, 3, |job| job.retry_count = 1)), "JOB-2");
    assert_eq!(broken(|state| job(state, 2, |job| job.successor = Some(JobId(3)))), "JOB-2");
    assert_eq!(broken(|state| job(state, 3, |job| job.reason = Reason::InDoubt)), "JOB-3");
    assert_eq!(broken(|state| job(state, 3, |job| job.attempt.0 = 9)), "JOB-3");
    assert_eq!(broken(|state| job(state, 3, |job| job.spec = None)), "JOB-3");
    let warm_nothing = |node: &mut NodeState| Arc::make_mut(&mut node.node).warm.extend([(DIGEST, 0)]);
    assert_eq!(broken(|state| node(state, warm_nothing)), "NODE-1");
    assert_eq!(broken(|state| state.event_seq = EventSeq(1)), "EVENT-1");
    let key = LimitKey { namespace: Namespace::default_namespace(), agent: None, value: Some("x".into()) };
    let of_no_agent = |state: &mut State| {
        state.index.bucket(&key, None, Some(ClusterTime(1)));
        state.buckets.extend([(key.clone(), ClusterTime(1))]);
    };
    assert_eq!(broken(of_no_agent), "BUCKET-1");
    assert_eq!(broken(|state| state.sinks.extend([(atlas_types::MemberId(1), EventSeq(99))])), "EVENT-1");
}

const DIGEST: atlas_types::Digest = atlas_types::Digest([1; 32]);

#[test]
fn a_node_that_gave_out_more_than_it_has_is_found() {
    let found = broken(|state| {
        node(state, |node| {
            Arc::make_mut(&mut Arc::make_mut(&mut node.node).inventory).places = 0;
            (node.free.processes.free, node.free.processes.total) = (0, 0);
        });
    });
    assert_eq!(found, "CAP-1");
}

#[test]
fn a_node_that_is_down_and_holds_something_is_found() {
    let mut run = Run::new();
    run.prepare("node n1");
    let mut state = run.state;
    node(&mut state, |node| {
        let node = Arc::make_mut(&mut node.node);
        node.health = NodeHealth::Down;
        node.warm.insert(DIGEST, 1);
    });
    assert_eq!(state.check_invariants().map_err(|violation| violation.name), Err("NODE-1"));
}

/// Breaks a state with a job that is parked until a time and another that waits for its child.
fn broken_sleep(break_it: impl FnOnce(&mut State)) -> &'static str {
    let mut run = Run::new();
    run.prepare(
        "level 6; agent a spawns=true; node n1; job j1; job j2; grant j1 n1; grant j2 n1; record j1 from=0 steps=s;
        record j2 from=0 steps=s; spawn j2 c1; park j1 at=9; park j2 child=c1",
    );
    let mut state = run.state;
    break_it(&mut state);
    state.check_invariants().expect_err("it is broken").name
}

fn parked(job: &mut Job) -> &mut atlas_types::Parked {
    Arc::make_mut(job.parked.as_mut().expect("it is parked"))
}

#[test]
fn a_job_that_sleeps_for_nothing_is_found() {
    assert_eq!(broken_sleep(|state| job(state, 1, |job| job.parked = None)), "PARK-1");
    assert_eq!(broken_sleep(|state| job(state, 1, |job| parked(job).waits.clear())), "PARK-1");
    assert_eq!(broken_sleep(|state| job(state, 1, |job| parked(job).due = None)), "PARK-1");
    assert_eq!(broken_sleep(|state| job(state, 1, |job| job.parks = 0)), "PARK-1");
    assert_eq!(broken_sleep(|state| drop(state.journals.remove(&JobId(1)))), "INDEX-1");
    let forsaken = |child: &mut Job| child.spawned.as_mut().expect("it has a parent").awaited = false;
    assert_eq!(broken_sleep(|state| job(state, 1_001, forsaken)), "PARK-2");
    assert_eq!(broken_sleep(|state| job(state, 2, |job| job.reason = Reason::Lost)), "PARK-1");
}

#[test]
fn a_job_with_two_carriers_or_a_run_with_two_jobs_is_found() {
    let broken = |break_it: &dyn Fn(&mut State)| {
        let mut run = Run::new();
        run.prepare(
            "level 6; agent a carried=true; agent b; node n1; job j1; job j2; job j3 agent=b; carry j1 run=7; carry j2 run=8; grant j3 n1",
        );
        let mut state = run.state;
        break_it(&mut state);
        state.check_invariants().expect_err("it is broken").name
    };
    let carried = Some(Carried { run: RunId(7), since: ClusterTime(1) });
    assert_eq!(broken(&|state| job(state, 1, |job| job.carried = None)), "LEASE-1");
    assert_eq!(broken(&|state| job(state, 3, |job| job.carried = carried)), "LEASE-1");
    let pending = |job: &mut Job| (job.status, job.reason) = (JobStatus::Pending, Reason::Queued);
    assert_eq!(broken(&|state| job(state, 1, pending)), "LEASE-1");
    let leased = |job: &mut Job| job.spec.as_mut().map(Arc::make_mut).expect("it has one").carried = false;
    assert_eq!(broken(&|state| job(state, 1, leased)), "LEASE-1");
    assert_eq!(broken(&|state| job(state, 2, |job| job.carried = carried)), "LEASE-1");
    assert_eq!(broken(&|state| state.index.runs = Default::default()), "INDEX-1");
}

#[test]
fn an_inbox_out_of_bounds_is_found() {
    let inbox = |state: &mut State, change: fn(&mut atlas_types::Inbox)| {
        change(Arc::make_mut(state.inboxes.get_mut(&JobId(1)).expect("it has one")));
        state.index = state.rebuilt_index();
    };
    let broken = |break_it: &dyn Fn(&mut State)| {
        let mut run = Run::new();
        run.prepare("level 6; agent a; job j1; send j1 a");
        let mut state = run.state;
        break_it(&mut state);
        state.check_invariants().expect_err("it is broken").name
    };
    let again = |inbox: &mut atlas_types::Inbox| inbox.messages.extend(inbox.messages.first().cloned());
    assert_eq!(broken(&|state| inbox(state, again)), "INBOX-1");
    let remember =
        |inbox: &mut atlas_types::Inbox| inbox.read_ids.push(atlas_types::MessageId::new("b").expect("a name"));
    assert_eq!(broken(&|state| inbox(state, remember)), "INBOX-1");
    assert_eq!(broken(&|state| state.index.inbox_bytes += 1), "INDEX-1");
    let move_it = |state: &mut State| {
        let inbox = state.inboxes.remove(&JobId(1)).expect("it has one");
        state.inboxes.insert(JobId(9), inbox);
    };
    assert_eq!(broken(&move_it), "INBOX-1");
}

#[test]
fn too_many_remembered_requests_are_found() {
    let mut run = Run::new();
    run.prepare("agent a; job j1 key=k; job j2 key=l");
    Arc::make_mut(&mut run.state.config).dedupe_max = 1;
    assert_eq!(run.state.check_invariants().map_err(|violation| violation.name), Err("DEDUPE-1"));
}

#[test]
fn a_child_whose_parent_does_not_run_is_found() {
    let mut run = Run::new();
    run.prepare("agent a spawns=true; node n1; job j1; job j2; grant j1 n1; spawn j1 c1");
    let mut state = run.state;
    job(&mut state, 1_001, |child| child.spawned.as_mut().expect("it has a parent").by = JobId(2));
    assert_eq!(state.check_invariants().map_err(|violation| violation.name), Err("INDEX-1"));
    node(&mut state, |node| node.lend(Place::Process, 0, false));
    assert_eq!(state.check_invariants().map_err(|violation| violation.name), Err("SPAWN-1"));
}

#[test]
fn a_job_that_runs_undecided_is_found() {
    let broken = |break_it: &dyn Fn(&mut State)| {
        let mut run = Run::new();
        run.prepare(r#"level 6; agent a; node n1; put routing default {"orchestrator":"r"}; job j1; job j2; route j1 execute; grant j1 n1"#);
        let mut state = run.state;
        break_it(&mut state);
        state.check_invariants().expect_err("it is broken").name
    };
    let decided = |job: &mut Job, action| Arc::make_mut(job.route.as_mut().expect("it was decided")).action = action;
    assert_eq!(broken(&|state| job(state, 1, |job| decided(job, RouteAction::Reject))), "ROUTE-1");
    assert_eq!(broken(&|state| job(state, 1, |job| decided(job, RouteAction::Undecided))), "ROUTE-1");
    assert_eq!(broken(&|state| job(state, 2, |job| decided(job, RouteAction::Execute))), "ROUTE-1");
    assert_eq!(broken(&|state| job(state, 2, |job| job.route = None)), "ROUTE-1");
    assert_eq!(broken(&|state| state.index.undecided = Default::default()), "INDEX-1");
}

#[test]
fn a_job_that_runs_unapproved_or_waits_for_nobody_is_found() {
    let broken = |break_it: &dyn Fn(&mut State)| {
        let mut run = Run::new();
        run.prepare("level 6; agent a; node n1; job j1 by=ann asked=1; job j2");
        let mut state = run.state;
        break_it(&mut state);
        state.check_invariants().expect_err("it is broken").name
    };
    assert_eq!(broken(&|state| job(state, 1, |job| job.reason = Reason::Queued)), "APPROVAL-1");
    assert_eq!(broken(&|state| job(state, 2, |job| job.reason = Reason::Approval)), "APPROVAL-1");
    assert_eq!(broken(&|state| job(state, 1, |job| job.approvals = None)), "APPROVAL-1");
    assert_eq!(broken(&|state| job(state, 1, |job| job.attempt.0 = 1)), "APPROVAL-1");
    let none = |job: &mut Job| Arc::make_mut(job.approvals.as_mut().expect("it waits for one")).all.clear();
    assert_eq!(broken(&|state| job(state, 1, none)), "APPROVAL-1");
    let forget = |state: &mut State| {
        state.questions.clear();
        state.index = state.rebuilt_index();
    };
    assert_eq!(broken(&forget), "APPROVAL-1");
}
