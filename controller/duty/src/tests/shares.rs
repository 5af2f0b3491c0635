//! B.13: no waiting job starves. Namespaces take turns by their weight, and in a namespace with aging a job of low priority gets its turn.

use std::collections::BTreeMap;

use atlas_types::{Expect, ObjectKind, ObjectName, PutObject, SubmitJob};

use super::*;

/// A cluster with one concurrency permit.
struct Cluster {
    script: Script,
    jobs: u64,
}

impl Cluster {
    fn new() -> Self {
        let mut script =
            Script { state: State::new(1), clock: ClusterTime(0), sessions: Sessions::new(TTL), out: String::new() };
        script.state.raise(Level::CURRENT);
        script.must(atlas_kit::node("n1").with_places(1).registered());
        Self { script, jobs: 0 }
    }

    fn of(&mut self, namespace: &str, command: Command) {
        let namespace = Namespace::new(namespace).expect("a name");
        let request = Request { origin: Origin::duty(namespace), command };
        self.script.apply(&request).unwrap_or_else(|rejection| panic!("{rejection}: {request:?}"));
    }

    fn configure(&mut self, namespace: &str, spec: &str) {
        let kind = ObjectKind::new("namespace").expect("a kind");
        let name = ObjectName::new(namespace).expect("a name");
        let (labels, spec) = (BTreeMap::new(), spec.as_bytes().into());
        let put = PutObject { kind, name, labels, spec, spec_version: 1, expect: Expect::Any };
        self.script.must(Command::PutObject(put));
    }

    fn submit(&mut self, namespace: &str, priority: i64) -> JobId {
        self.jobs += 1;
        let Command::SubmitJob(command) = submit(&format!("j{}", self.jobs), "a") else { unreachable!("it submits") };
        self.of(namespace, Command::SubmitJob(SubmitJob { priority, ..command }));
        JobId(self.jobs)
    }

    fn submit_many(&mut self, namespace: &str, priority: i64, count: usize) {
        for _ in 0..count {
            self.submit(namespace, priority);
        }
    }

    /// Starts the next job and ends it.
    fn next(&mut self) -> (String, JobId) {
        self.script.run("schedule");
        let node = self.script.state.nodes().next().expect("a node");
        let id = node.leases().map(|(_, job)| job).next().expect("one runs");
        let namespace = self.script.state.job(id).expect("a job").namespace.to_string();
        let completion = self.script.completion(&format!("j{}", id.0));
        self.of(&namespace, completion);
        (namespace, id)
    }
}

#[test]
fn namespaces_take_turns_by_their_weight() {
    let mut cluster = Cluster::new();
    let weights = [("x", 1_u64), ("y", 2), ("z", 4)];
    for (namespace, weight) in weights {
        cluster.configure(namespace, &format!("{{\"weight\":{weight}}}"));
        cluster.of(namespace, agent("a", &[]));
    }
    // The first namespace fills its queue before the others submit anything, with the highest priority.
    for (namespace, _) in weights {
        let priority = if namespace == "x" { 9 } else { 0 };
        cluster.submit_many(namespace, priority, 90);
    }
    let turns: Vec<String> = (0..140).map(|_| cluster.next().0).collect();
    for (namespace, weight) in weights {
        let of: Vec<usize> = (0..turns.len()).filter(|turn| turns[*turn] == namespace).collect();
        assert!(of.len().abs_diff(20 * weight as usize) <= 3, "{namespace} had {} turns of 140", of.len());
        for pair in of.windows(2) {
            for (other, theirs) in weights.iter().filter(|(other, _)| *other != namespace) {
                let between = turns[pair[0]..pair[1]].iter().filter(|turn| turn == other).count() as u64;
                assert!(
                    between <= theirs.div_ceil(weight) + 1,
                    "{between} turns of {other} between two of {namespace}"
                );
            }
        }
    }
    cluster.script.state.check_invariants().expect("the invariants hold");
}

#[test]
fn a_namespace_is_not_owed_the_turns_that_it_did_not_want() {
    let mut cluster = Cluster::new();
    ["x", "y"].iter().for_each(|namespace| cluster.of(namespace, agent("a", &[])));
    cluster.submit_many("x", 0, 60);
    (0..30).for_each(|_| drop(cluster.next()));
    cluster.submit_many("y", 0, 60);
    let turns: Vec<String> = (0..10).map(|_| cluster.next().0).collect();
    assert!(turns.iter().filter(|turn| *turn == "y").count() <= 6, "{turns:?}");
}

#[test]
fn a_job_of_low_priority_gets_its_turn_where_jobs_age() {
    for (spec, most) in [(r#"{"aging_seconds":30}"#, 60), ("{}", usize::MAX)] {
        let mut cluster = Cluster::new();
        cluster.configure("default", spec);
        cluster.of("default", agent("a", &[]));
        let low = cluster.submit("default", 0);
        // Each second one job of a higher priority arrives, and one job runs.
        let mut turn = None;
        for second in 0..200 {
            cluster.submit("default", 2);
            if cluster.next().1 == low {
                turn = Some(second);
                break;
            }
            cluster.script.clock = cluster.script.clock.plus(Micros::from_secs(1));
        }
        // Two priorities are worth 60 s.
        assert_eq!(turn.is_some(), most < usize::MAX, "{spec}");
        assert!(turn.is_none_or(|turn| turn <= most + 1), "{spec}: after {turn:?} jobs");
    }
}
