//! Queries of readers, planner and leader tasks.

use atlas_types::{ClusterTime, Demand, Digest, JobStatus, Namespace, NodeId, ObjectKind};
use expect_test::expect;

use super::script::{Run, agent};
use crate::{State, Timer, TimerKey, job_timer};

fn state(script: &str) -> State {
    let mut run = Run::new();
    run.prepare(script);
    run.state
}

fn names<'a>(nodes: impl Iterator<Item = &'a std::sync::Arc<crate::NodeState>>) -> Vec<String> {
    nodes.map(|node| node.node.id.to_string()).collect()
}

#[test]
fn the_queue_is_by_priority_then_age_and_a_lost_job_keeps_its_place() {
    let state = state(
        "agent a; agent b cores=1; node n1; job j1; job j2 priority=5; job j3 agent=b priority=5; job j4 agent=b; job j5;
        grant j1 n1; lose j1",
    );
    let heads: Vec<_> = state.class_heads().map(|(class, job)| (class.demand.cores, job.id.0)).collect();
    assert_eq!(heads, [(0, 2), (1, 3)]);
    let queues = state.class_heads().map(|(class, _)| state.waiting_in(class).map(|job| job.id.0).collect::<Vec<_>>());
    assert_eq!(queues.collect::<Vec<_>>(), [vec![2, 1, 5], vec![3, 4]]);
    let (class, _) = state.class_heads().next().expect("two classes wait");
    assert_eq!(state.waiting_count(class), 3);
}

#[test]
fn the_fullest_node_with_room_comes_first() {
    let state = state(
        "agent a; node n1 places=4 cores=8; node n2 places=2 cores=1; node n3 places=3 cores=8; node n4 places=1; cordon n4;
        job j1; grant j1 n3; node n5 places=9",
    );
    let cores = |cores| Demand { cores, ..Demand::default() };
    assert_eq!(names(state.nodes_with_room(&cores(0))), ["n2", "n3", "n1", "n5"]);
    assert_eq!(names(state.nodes_with_room(&cores(5))), ["n3", "n1", "n5"]);
    assert_eq!(names(state.nodes_with_room(&cores(9))), ["n5"]);
    let pinned = |name| Demand { node: NodeId::new(name).ok(), ..Demand::default() };
    assert_eq!(names(state.nodes_with_room(&pinned("n1"))), ["n1"]);
    assert_eq!(names(state.nodes_with_room(&pinned("n4"))), Vec::<String>::new());
}

#[test]
fn gpus_are_found_by_what_is_free_on_one_device() {
    let state = state(
        "agent a gpus=1 vram=30; node n1 places=2 gpus=80; node n2 places=3 gpus=24,24; node n3 places=4 gpus=80,80;
        node n4 places=5 gpus=0; job j1; job j2; grant j1 n1; grant j2 n3",
    );
    let vram = |gpus, vram_bytes| Demand { gpus, vram_bytes, ..Demand::default() };
    assert_eq!(names(state.nodes_with_room(&vram(1, 40))), ["n1", "n3", "n4"]);
    assert_eq!(names(state.nodes_with_room(&vram(1, 60))), ["n3", "n4"]);
    assert_eq!(names(state.nodes_with_room(&vram(1, 0))), ["n2", "n3", "n4"]);
    assert_eq!(names(state.nodes_with_room(&vram(2, 24))), ["n2", "n3"]);
    assert_eq!(names(state.nodes_with_room(&vram(2, 0))), ["n2"]);
}

#[test]
fn nodes_are_found_by_what_they_have_at_best() {
    let state = state(
        "agent a; node n1 cores=2; node n2 cores=64 gpus=80; node n3 cores=16; node n4 cores=8; lose-node n2; job j1; grant j1 n3;
        node n4 cores=32",
    );
    let cores = |cores| Demand { cores, ..Demand::default() };
    assert_eq!(names(state.capable_nodes(&cores(1))), ["n1", "n3", "n4", "n2"]);
    assert_eq!(names(state.capable_nodes(&cores(20))), ["n3", "n4", "n2"]);
    assert_eq!(names(state.capable_nodes(&cores(32))), ["n4", "n2"]);
    assert_eq!(names(state.capable_nodes(&Demand { gpus: 1, ..Demand::default() })), ["n2"]);
    assert_eq!(names(state.capable_nodes(&cores(200))), Vec::<String>::new());
}

#[test]
fn warm_nodes_are_those_that_could_use_it() {
    let state = state("node n1; node n2; node n3; warm n1 a; warm n2 a; warm n3 a digest=2; drain n2");
    assert_eq!(names(state.warm_nodes(&Digest([1; 32]))), ["n1"]);
    assert_eq!(names(state.warm_nodes(&Digest([2; 32]))), ["n3"]);
}

#[test]
fn what_is_due_comes_by_time() {
    let state = state(
        "agent a retries=1 backoff=5; agent q queue=3; agent r; node n1; job j1; grant j1 n1; fail j1;
        job j2 agent=q; job j3 agent=r timeout=7; grant j3 n1; clock +20",
    );
    let kind = |timer: &Timer| match timer.key {
        TimerKey::Job(job) => state.job(job).and_then(|job| job_timer(job)).map(|(_, kind)| kind),
        _ => None,
    };
    let all = state.due(ClusterTime(u64::MAX)).map(|timer| (timer.due.0 / 1_000_000, kind(timer)));
    expect!["[(4, Some(QueueTimeout)), (6, Some(Wake)), (648, Some(Execution))]"]
        .assert_eq(&format!("{:?}", all.collect::<Vec<_>>()));
    assert_eq!(state.due(state.clock()).count(), 2);
    assert_eq!(state.next_due(), Some(ClusterTime(4_000_000)));
}

#[test]
fn listings_show_the_newest_first_and_go_on_after_a_page() {
    let state = state("agent a; job j1; job j2; job j3; cancel j2; job j4");
    let namespace = Namespace::default_namespace();
    let ids = |status, before| state.jobs(&namespace, status, before).map(|job| job.id.0).collect::<Vec<_>>();
    assert_eq!(ids(None, None), [4, 3, 2, 1]);
    assert_eq!(ids(None, Some(3)), [2, 1]);
    assert_eq!(ids(Some(JobStatus::Pending), None), [4, 3, 1]);
    assert_eq!(ids(Some(JobStatus::Cancelled), None), [2]);
    let other = Namespace::new("other").expect("a name");
    assert_eq!(state.jobs(&other, None, None).count(), 0);
}

#[test]
fn a_job_is_found_by_the_beginning_of_its_id() {
    let state = state("agent a; job j1; job j2; job j255");
    let namespace = Namespace::default_namespace();
    let found = |prefix| state.jobs_by_prefix(&namespace, prefix).map(|job| job.id.0).collect::<Vec<_>>();
    assert_eq!(found("job-00000000000000ff"), [255]);
    assert_eq!(found("job-00000000000000f"), [255]);
    assert_eq!(found("000000000000000"), [1, 2]);
    assert_eq!(found("0"), [1, 2, 255]);
    for nothing in ["", "job-", "job-1", "x", "+1", "job-00000000000000ff0"] {
        assert_eq!(found(nothing), [0; 0], "{nothing:?}");
    }
}

#[test]
fn the_latest_version_is_the_highest_in_service() {
    let state = state(
        "agent a; agent a version=1.10.0; agent a version=1.9.0; agent b; agent a version=2.0.0; retire a version=2.0.0",
    );
    let namespace = Namespace::default_namespace();
    let latest = state.agent_latest(&namespace, &agent("a")).map(|agent| agent.version.to_string());
    assert_eq!(latest.as_deref(), Some("1.10.0"));
    assert_eq!(state.agents(&namespace).count(), 5);
    assert_eq!(state.agent_versions(&namespace, &agent("a")).count(), 4);
    assert!(state.agent_latest(&namespace, &agent("c")).is_none());
}

#[test]
fn counts_follow() {
    let state = state("agent a; node n1; job j1; job j2; job j3; grant j1 n1; cancel j3");
    assert_eq!((state.pending(), state.running(), state.active(), state.jobs_total()), (1, 1, 2, 3));
    let running = state.running_of(&Namespace::default_namespace(), &agent("a"));
    assert_eq!(running.map(atlas_allocation::ConcurrencyPermits::taken), Some(1));
    assert_eq!(state.leases_of(&NodeId::new("n1").expect("a name")).count(), 1);
    assert_eq!(state.inline_bytes(), 3 * 4 + 2);
}

#[test]
fn artifacts_are_known_as_long_as_something_refers_to_them() {
    let mut run = Run::new();
    let mut known = |script: &str| {
        run.play(script);
        run.state.artifacts().map(|digest| digest.0[0]).collect::<Vec<_>>()
    };
    assert_eq!(known("agent a digest=1; node n1; job j1 artifact=7; job j2 artifact=7"), [1, 7]);
    assert_eq!(known("cancel j2; ack m1; prune"), [1, 7], "the other job has it still");
    // A version that is replaced leaves its package to the jobs that are pinned to it.
    assert_eq!(known("agent a digest=2"), [1, 2, 7]);
    assert_eq!(known("grant j1 n1; complete j1"), [1, 2, 7], "an ended job shows its input");
    assert_eq!(known("ack m1; prune"), [2]);
    assert!(run.state.refers_to(&Digest([2; 32])));
    assert!(!run.state.refers_to(&Digest([7; 32])));
}

#[test]
fn the_package_of_a_skill_is_known_as_long_as_the_skill_names_it() {
    let mut run = Run::new();
    let mut known = |script: &str| {
        run.play(script);
        run.state.artifacts().map(|digest| digest.0[0]).collect::<Vec<_>>()
    };
    let put = |byte: u8| {
        let package = format!("{byte:02x}").repeat(32);
        format!(
            r#"put skill s {{"input_schema":"{{}}","output_schema":"{{}}","package":"{package}","version":"1.0.0"}}"#
        )
    };
    assert_eq!(known(&format!("level 6; {}", put(7))), [7]);
    assert_eq!(known(&put(8)), [8]);
    assert_eq!(known("delete-object skill s"), [0; 0]);
}

#[test]
fn how_far_history_is_needed_follows_the_oldest_ended_job() {
    let mut run = Run::new();
    let mut needed = |script: &str| {
        run.play(script);
        (run.state.pruned_through().0, run.state.event_seq().0)
    };
    assert_eq!(needed("agent a; job j1; job j2"), (0, 3), "no history has confirmed anything");
    assert_eq!(needed("cancel j1; cancel j2; ack m1 event=4"), (3, 5), "both are in the state");
    assert_eq!(needed("ack m1; prune limit=1"), (4, 5));
    assert_eq!(needed("prune"), (5, 5));
}

#[test]
fn objects_of_a_kind_are_found_in_all_namespaces_the_oldest_first() {
    let hook = |name: &str, namespace: &str| {
        format!("put webhook {name} {{\"events\":[\"job\"],\"url\":\"http://a\"}} ns={namespace};")
    };
    let state = state(&format!(
        "level 6; {} {} put namespace n; {} delete-object webhook b ns=team; {} put namespace n {{\"agents_max\":1}}",
        hook("b", "team"),
        hook("z", "default"),
        hook("a", "default"),
        hook("b", "team"),
    ));
    let names = |kind: &str| -> Vec<String> {
        let kind = ObjectKind::new(kind).expect("a word");
        state.objects_of_kind(&kind).map(|found| format!("{}/{}", found.key.namespace, found.key.name)).collect()
    };
    assert_eq!(names("webhook"), ["default/z", "default/a", "team/b"]);
    assert_eq!(names("namespace"), ["default/n"]);
    assert_eq!(names("gizmo"), Vec::<String>::new());
}
