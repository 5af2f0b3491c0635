//! Jobs that limits, rates and circuits hold back.

use expect_test::expect;

use super::check;

#[test]
fn a_rate_holds_its_agent_back_and_no_other() {
    check(
        "node n1 places=9; job j1 agent=slow rate=1/10/2; job j2 agent=slow rate=1/10/2; job j3 agent=slow rate=1/10/2; job j4; plan; why j3;
        starts j3; clock 5; plan; clock 5; plan; why j3",
        expect![[r#"
            j1 on n1: cores=0 mem=0
            j2 on n1: cores=0 mem=0
            j4 on n1: cores=0 mem=0
            j3 waiting until 1970-01-01T00:00:10Z for the rate of its agent: 1 in 10 s
            j3 starts if it is 1970-01-01T00:00:10Z
            nothing
            j3 on n1: cores=0 mem=0
            j3 not waiting: it is running
        "#]],
    );
}

#[test]
fn a_job_behind_others_of_its_rate_needs_time_and_priority() {
    check(
        "node n1 places=9; run j9 n1 agent=slow rate=1/10/1; job j1 agent=slow rate=1/10/1; job j2 agent=slow rate=1/10/1; plan; why j2; starts j2",
        expect![[r#"
            nothing
            j2 waiting until 1970-01-01T00:00:10Z for the rate of its agent: 1 in 10 s; 1 job is ahead of it
            j2 starts if it is 1970-01-01T00:00:10Z and its priority is at least 1
        "#]],
    );
}

#[test]
fn each_value_of_a_key_waits_by_itself() {
    check(
        "node n1 places=9; job j1 agent=a k=x k-limit=1; job j2 agent=a k=x k-limit=1; job j3 agent=a k=y k-limit=1; plan; why j2; starts j2",
        expect![[r#"
            j1 on n1: cores=0 mem=0
            j3 on n1: cores=0 mem=0
            j2 waiting for another job for "x" to end: 1 of at most 1 are running
            j2 starts if job-0000000000000001 ends
            j2 starts if its agent may run 2 jobs for its key at once
        "#]],
    );
}

#[test]
fn an_agents_limit_holds_across_its_classes_and_within_a_plan() {
    check(
        "node n1 places=9 cores=9; run j9 n1 agent=solo limit=2; job j1 agent=solo limit=2; job j2 agent=solo limit=2 \
         cores=1; job j3; plan; why j2",
        expect![[r#"
            j1 on n1: cores=0 mem=0
            j3 on n1: cores=0 mem=0
            j2 waiting for another job of its agent to end: 2 of at most 2 are running
        "#]],
    );
}

#[test]
fn an_agents_limit_is_lent_as_well() {
    check(
        "node a places=9; run j1 a limit=1; job j2 depth=1 limit=1; job j3 depth=1 limit=1; plan; lend j1; plan; why j3",
        expect![[r#"
            nothing
            j2 on a: cores=0 mem=0
            j3 waiting for another job of its agent to end: 1 of at most 1 are running
        "#]],
    );
}

#[test]
fn a_namespaces_limit_holds_across_its_agents_and_within_a_plan() {
    check(
        "node n1 places=9; namespace 2; run j9 n1; job j1 agent=a; job j2 agent=b; job j3 agent=c; plan; why j2; starts j2; starts j3",
        expect![[r#"
            j1 on n1: cores=0 mem=0
            j2 waiting for another job of its namespace to end: 2 of at most 2 are running
            j2 starts if job-0000000000000001 ends
            j2 starts if its namespace may run 3 jobs at once
            j3 starts if job-0000000000000001 and job-0000000000000009 end
            j3 starts if its namespace may run 3 jobs at once and its priority is at least 1
        "#]],
    );
}

#[test]
fn an_open_circuit_holds_the_jobs_of_its_version_back_except_one_that_probes_it() {
    check(
        "node n1 places=9; circuit a open; circuit b ready; circuit c runs; job j1 agent=a failures=3; job j2 agent=b failures=3;
        job j3 agent=b failures=3 cores=1; job j4 agent=c failures=3; job j5; plan; why j1; why j3; why j4; starts j1; starts j4",
        expect![[r#"
            j2 on n1: cores=0 mem=0
            j5 on n1: cores=0 mem=0
            j1 waiting because the last 3 attempts of a 1.0.0 failed: one job tries again at 1970-01-01T00:01:00Z
            j3 waiting because the last 3 attempts of b 1.0.0 failed: one job is trying again
            j4 waiting because the last 3 attempts of c 1.0.0 failed: one job is trying again
            j1 starts if it is 1970-01-01T00:01:00Z
            j1 starts if an operator resumes a 1.0.0
            j4 starts if an operator resumes c 1.0.0
        "#]],
    );
}

#[test]
fn a_node_on_which_jobs_keep_failing_takes_one_that_probes_it() {
    check(
        "node n1 places=2; failing n1 open; node n2 places=0; job j1; why j1; starts j1; failing n1 ready; job j2; plan; why j2; plan",
        expect![[r#"
            j1 waiting for capacity on 2 nodes: 1 not accepting new leases, 1 no free concurrency permit; closest is "n1": needs a node that accepts leases, has one on which jobs keep failing
            j1 starts if an operator resumes node "n1"
            j1 starts if node "n2" has 1 more concurrency permit free
            j1 starts if any other worker joins
            j1 on n1: cores=0 mem=0
            j2 waiting for capacity on 2 nodes: 1 not accepting new leases, 1 no free concurrency permit; closest is "n1": needs a node that accepts leases, has one on which jobs keep failing
            nothing
        "#]],
    );
}
