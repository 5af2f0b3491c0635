//! Gives one node the right to run one attempt. The placement was chosen by the planner and is checked again here.

use std::sync::Arc;

use atlas_allocation::suits;
use atlas_types::{GrantLease, Granted, Job, JobChange, JobStatus, Lease, Outcome, Reason, Rejection, RunSpec, level};

use crate::change::{Change, set_warm};
use crate::node::NodeState;

pub(super) fn apply(command: &GrantLease, change: &mut Change<'_>) -> Result<Outcome, Rejection> {
    let job = change.job(command.job)?;
    let spec = check_job(job)?;
    if change.state.needs_route(job) {
        return Err(Rejection::RouteOutdated);
    }
    let node = change.node(&command.node)?;
    check_node(node, spec, command, job.depth())?;
    let depth = job.depth();
    let limits = change.state.limits_for(job);
    limits.iter().try_for_each(|limit| change.state.permits_one_more(limit, depth))?;

    if change.state.circuit_of(job).is_some_and(|circuit| !circuit.admits()) {
        return Err(Rejection::NotDue);
    }

    let mut job = (**job).clone();
    change.state.grant_seq = change.state.grant_seq.next();
    let token = change.state.grant_seq;
    job.attempt = job.attempt.next();
    let lease = Arc::new(Lease {
        namespace: job.namespace.clone(),
        job: job.id,
        node: command.node.clone(),
        epoch: command.epoch,
        token,
        attempt: job.attempt,
        allocation: command.allocation.clone(),
        granted_at: change.clock,
        started: false,
    });
    change.state.take_tokens(&limits);
    change.state.count_start(&job.namespace);
    let digest = job.pin.as_ref().map(|pin| pin.digest);
    change.change_node(&command.node, digest, |node| {
        node.take(&lease, depth);
        // The worker uses an idle warm slot if it has one; its next report says how many are left.
        if let Some(digest) = digest {
            let idle = node.node.warm.get(&digest).copied().unwrap_or(0);
            set_warm(node, digest, idle.saturating_sub(1));
        }
    });
    change.probe_circuits(&job, &lease);
    job.node = Some(command.node.clone());
    job.lease = Some(lease);
    job.status = JobStatus::Running;
    job.reason = Reason::Running;
    job.started_at = change.at;
    if change.state.level >= level::EVIDENCE {
        let evidence = job.evidence.get_or_insert_default();
        let (attempt, node, at) = (job.attempt, command.node.clone(), change.at);
        Arc::make_mut(evidence).grant(Granted { attempt, node, at });
    }
    // It moved nothing in the queue.
    if let Some(priority) = job.route.as_ref().and_then(|route| route.priority) {
        job.priority = priority;
    }
    let (id, attempt) = (job.id, job.attempt);
    change.put(job, JobChange::Granted, JobStatus::Pending);
    // Children that it had when it parked.
    if change.state.children_awaited(id) > 0 {
        change.lend(id, true);
    }
    Ok(Outcome::Granted { token, attempt })
}

fn check_job(job: &Job) -> Result<&RunSpec, Rejection> {
    let wrong = Rejection::WrongStatus { status: job.status };
    match (job.status, job.reason) {
        (JobStatus::Pending, Reason::Queued | Reason::Lost) if job.is_for_a_run() => Err(Rejection::NeedsRun),
        (JobStatus::Pending, Reason::Queued | Reason::Lost) => job.spec.as_deref().ok_or(Rejection::UnknownAgent),
        (JobStatus::Pending, Reason::Backoff { .. } | Reason::Delayed { .. }) => Err(Rejection::NotDue),
        (JobStatus::Pending, Reason::Routing { .. }) => Err(Rejection::RouteOutdated),
        _ => Err(wrong),
    }
}

fn check_node(node: &NodeState, spec: &RunSpec, command: &GrantLease, depth: u32) -> Result<(), Rejection> {
    if node.node.epoch != command.epoch || !node.takes_leases() {
        return Err(Rejection::NodeUnavailable);
    }
    let fits = suits(&spec.demand, &node.node)
        && node.free.admits(&node.node.inventory, &spec.demand, &command.allocation, depth);
    if fits { Ok(()) } else { Err(Rejection::DoesNotFit) }
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use crate::tests::check;

    #[test]
    fn a_lease_takes_a_place_and_what_the_demand_asks() {
        check(
            "agent a cores=2 memory=8 gpus=1 vram=30; node n1 cores=8 memory=64 gpus=80,80; job j1 -- grant j1 n1; show n1",
            expect![[r#"
                j1 Granted pending→running on n1 token 1 attempt 1
                n1: places 3 cores 6 memory 56 gpus [50, 80] warm []
            "#]],
        );
    }

    #[test]
    fn only_a_waiting_job_is_granted() {
        check(
            "agent a retries=1; node n1; job j1; job j2; grant j2 n1; fail j2 -- grant j1 n1; grant j1 n1; grant j2'1 n1; grant j9 n1",
            expect![[r#"
                j1 Granted pending→running on n1 token 2 attempt 1
                ! the job is Running
                ! the job is not due yet
                ! no such job: ?
            "#]],
        );
    }

    #[test]
    fn a_node_must_be_known_and_of_that_epoch() {
        check(
            "agent a; node n1; job j1 -- grant j1 n2; grant j1 n1 epoch=2; grant j1 n1 epoch=1",
            expect![[r#"
            ! no such node: n2
            ! the node cannot accept this
            j1 Granted pending→running on n1 token 1 attempt 1
        "#]],
        );
    }

    #[test]
    fn places_are_not_given_out_twice() {
        check(
            "agent a; node n1 places=1; job j1; job j2 -- grant j1 n1; grant j2 n1; complete j1; grant j2 n1",
            expect![[r#"
                j1 Granted pending→running on n1 token 1 attempt 1
                ! the placement does not fit
                j1 Ended running→completed
                j2 Granted pending→running on n1 token 2 attempt 1
            "#]],
        );
    }

    #[test]
    fn a_namespace_bounds_its_running_jobs_over_all_its_agents() {
        check(
            r#"level 6; agent a ns=t; agent b ns=t; agent a; node n1; put namespace t {"jobs_running_max":1}; job j1 ns=t; job j2 agent=b ns=t; job j3 --
            grant j1 n1; grant j2 n1; grant j3 n1; complete j1; grant j2 n1; put namespace t {"jobs_running_max":0}; job j4 ns=t; grant j4 n1;
            put namespace t {}; grant j4 n1"#,
            expect![[r#"
                j1 Granted pending→running on n1 token 1 attempt 1
                ! the namespace's limit of 1 for running jobs is reached
                j3 Granted pending→running on n1 token 2 attempt 1
                j1 Ended running→completed
                j2 Granted pending→running on n1 token 3 attempt 1
                namespace t uid 5 revision 13 {"jobs_running_max":0}
                j4 Submitted pending→pending Queued
                ! the namespace's limit of 0 for running jobs is reached
                namespace t uid 5 revision 15 {}
                j4 Granted pending→running on n1 token 4 attempt 1
            "#]],
        );
    }

    #[test]
    fn a_parent_lends_its_permit_of_the_namespace() {
        check(
            r#"level 6; agent a spawns=true; node n1; put namespace default {"jobs_running_max":1}; job j1; grant j1 n1 --
            spawn j1 c1; grant c1 n1; spawn j1 c2; grant c2 n1; complete c1; grant c2 n1"#,
            expect![[r#"
                c1 Submitted pending→pending Queued
                c1 Granted pending→running on n1 token 2 attempt 1
                c2 Submitted pending→pending Queued
                ! the namespace's limit of 1 for running jobs is reached
                c1 Ended running→completed
                c2 Granted pending→running on n1 token 3 attempt 1
            "#]],
        );
    }

    #[test]
    fn a_rate_bounds_the_starts_of_an_agent() {
        check(
            "agent a rate=2/10/2; agent b; node n1 places=9; job j1; job j2; job j3; job j4 agent=b --
            grant j1 n1; grant j2 n1; grant j3 n1; grant j4 n1; complete j1; clock 4; grant j3 n1; clock 1; grant j3 n1",
            expect![[r#"
                j1 Granted pending→running on n1 token 1 attempt 1
                j2 Granted pending→running on n1 token 2 attempt 1
                ! the cluster's limit of 2 for starts of jobs of this agent is reached
                j4 Granted pending→running on n1 token 3 attempt 1
                j1 Ended running→completed
                ! the cluster's limit of 2 for starts of jobs of this agent is reached
                j3 Granted pending→running on n1 token 4 attempt 1
            "#]],
        );
    }

    #[test]
    fn a_rate_counts_each_attempt_and_full_buckets_are_forgotten() {
        check(
            "agent a rate=1/10; node n1; job j1; job j2; grant j1 n1; lose j1 -- grant j1 n1; clock 10; grant j1 n1; buckets; clock 30;
            grant j2 n1; buckets",
            expect![[r#"
                ! the cluster's limit of 1 for starts of jobs of this agent is reached
                j1 Granted pending→running on n1 token 2 attempt 2
                buckets full in [10] s
                j2 Granted pending→running on n1 token 3 attempt 1
                buckets full in [10] s
            "#]],
        );
    }

    #[test]
    fn each_value_of_a_key_has_limits_of_its_own() {
        check(
            r#"agent a per=/c key-limit=1 key-rate=1/10; node n1 places=9; job j1 input={"c":"x"}; job j2 input={"c":"x"}; job j3 input={"c":7};
            job j4 input={"c":7}; job j5; job j6 input={"c":1.5} -- grant j1 n1; grant j2 n1; grant j3 n1; grant j4 n1; grant j5 n1; grant j6 n1;
            complete j1; grant j2 n1; clock 10; grant j2 n1"#,
            expect![[r#"
                j1 Granted pending→running on n1 token 1 attempt 1
                ! the cluster's limit of 1 for running jobs of this key is reached
                j3 Granted pending→running on n1 token 2 attempt 1
                ! the cluster's limit of 1 for running jobs of this key is reached
                j5 Granted pending→running on n1 token 3 attempt 1
                j6 Granted pending→running on n1 token 4 attempt 1
                j1 Ended running→completed
                ! the cluster's limit of 1 for starts of jobs of this key is reached
                j2 Granted pending→running on n1 token 5 attempt 1
            "#]],
        );
        check(
            "agent a per=label:team key-limit=1; node n1 places=9; job j1 labels=team:x; job j2 labels=team:x; job j3 labels=team:y; job j4 --
            grant j1 n1; grant j2 n1; grant j3 n1; grant j4 n1; complete j1; grant j2 n1",
            expect![[r#"
                j1 Granted pending→running on n1 token 1 attempt 1
                ! the cluster's limit of 1 for running jobs of this key is reached
                j3 Granted pending→running on n1 token 2 attempt 1
                j4 Granted pending→running on n1 token 3 attempt 1
                j1 Ended running→completed
                j2 Granted pending→running on n1 token 4 attempt 1
            "#]],
        );
    }

    #[test]
    fn a_parent_lends_its_permit_of_a_key() {
        check(
            r#"agent a spawns=true per=/c key-limit=1; node n1 places=9; job j1 input={"c":"x"}; grant j1 n1 --
            spawn j1 c1 input={"c":"x"}; grant c1 n1; spawn j1 c2 input={"c":"x"}; grant c2 n1; complete c1; grant c2 n1"#,
            expect![[r#"
                c1 Submitted pending→pending Queued
                c1 Granted pending→running on n1 token 2 attempt 1
                c2 Submitted pending→pending Queued
                ! the cluster's limit of 1 for running jobs of this key is reached
                c1 Ended running→completed
                c2 Granted pending→running on n1 token 3 attempt 1
            "#]],
        );
    }

    #[test]
    fn a_namespace_bounds_the_starts_of_its_jobs() {
        check(
            r#"level 6; agent a; node n1 places=9; put namespace default {"jobs_rate":{"jobs":1,"seconds":10}}; job j1; job j2; job j3 --
            grant j1 n1; grant j2 n1; put namespace default {}; grant j2 n1; put namespace default {"jobs_rate":{"jobs":1,"seconds":10}};
            grant j3 n1; clock 10; grant j3 n1"#,
            expect![[r#"
                j1 Granted pending→running on n1 token 1 attempt 1
                ! the namespace's limit of 1 for starts of jobs is reached
                namespace default uid 3 revision 8 {}
                j2 Granted pending→running on n1 token 2 attempt 1
                namespace default uid 3 revision 10 {"jobs_rate":{"jobs":1,"seconds":10}}
                ! the namespace's limit of 1 for starts of jobs is reached
                j3 Granted pending→running on n1 token 3 attempt 1
            "#]],
        );
    }

    #[test]
    fn cores_memory_and_gpus_are_not_given_out_twice() {
        check(
            "agent a cores=3; node n1 cores=4; job j1; job j2 -- grant j1 n1; grant j2 n1",
            expect![[r#"
            j1 Granted pending→running on n1 token 1 attempt 1
            ! the placement does not fit
        "#]],
        );
        check(
            "agent a memory=3; node n1 memory=4; job j1; job j2 -- grant j1 n1; grant j2 n1",
            expect![[r#"
            j1 Granted pending→running on n1 token 1 attempt 1
            ! the placement does not fit
        "#]],
        );
        check(
            "agent a gpus=1; node n1 gpus=80; job j1; job j2 -- grant j1 n1; grant j2 n1",
            expect![[r#"
            j1 Granted pending→running on n1 token 1 attempt 1
            ! the placement does not fit
        "#]],
        );
        check(
            "agent a gpus=1 vram=30; node n1 gpus=80; job j1; job j2; job j3 -- grant j1 n1; grant j2 n1; grant j3 n1; show n1",
            expect![[r#"
                j1 Granted pending→running on n1 token 1 attempt 1
                j2 Granted pending→running on n1 token 2 attempt 1
                ! the placement does not fit
                n1: places 2 cores any memory any gpus [20] warm []
            "#]],
        );
    }

    #[test]
    fn an_allocation_is_what_the_demand_asks_no_more_no_less() {
        check(
            "agent a cores=2; node n1 cores=8; job j1 -- grant j1 n1 cores=1; grant j1 n1 cores=3; grant j1 n1",
            expect![[r#"
                ! the placement does not fit
                ! the placement does not fit
                j1 Granted pending→running on n1 token 1 attempt 1
            "#]],
        );
        check(
            "agent a gpus=1 vram=30; node n1 gpus=80; job j1 -- grant j1 n1 gpu=0:20; grant j1 n1 gpu=1:30; grant j1 n1 gpu=0:30",
            expect![[r#"
                ! the placement does not fit
                ! the placement does not fit
                j1 Granted pending→running on n1 token 1 attempt 1
            "#]],
        );
    }

    #[test]
    fn a_declared_inventory_counts_the_contracts_defaults() {
        check(
            "agent a; node n1 cores=1 memory=1073741824 declared=true; job j1; job j2 -- grant j1 n1; show n1; grant j2 n1",
            expect![[r#"
                j1 Granted pending→running on n1 token 1 attempt 1
                n1: places 3 cores 0 memory 0 gpus [] warm []
                ! the placement does not fit
            "#]],
        );
    }

    #[test]
    fn a_node_without_checks_gives_its_places_to_any_demand() {
        check(
            "agent a arch=arm64 devices=/dev/x cores=9 gpus=1; node n1 places=1 arch=x86_64 cores=1 unchecked=true; job j1; job j2 --
            grant j1 n1; show n1; grant j2 n1",
            expect![[r#"
                j1 Granted pending→running on n1 token 1 attempt 1
                n1: places 0 cores 1 memory any gpus [] warm []
                ! the placement does not fit
            "#]],
        );
    }

    #[test]
    fn jobs_that_call_a_model_have_places_of_their_own() {
        check(
            "agent a llm=true; agent b; node n1 places=1 llm=1; job j1; job j2; job j3 agent=b; job j4 agent=b --
            grant j1 n1; grant j2 n1; grant j2 n1 process=true; show n1; grant j3 n1; grant j4 n1; show n1; complete j1; grant j2 n1;
            node n1 places=1 llm=0; show n1; complete j2; show n1",
            expect![[r#"
                j1 Granted pending→running on n1 token 1 attempt 1
                ! the placement does not fit
                ! the placement does not fit
                n1: places 1 llm 0 cores any memory any gpus [] warm []
                j3 Granted pending→running on n1 token 2 attempt 1
                ! the placement does not fit
                n1: places 0 llm 0 cores any memory any gpus [] warm []
                j1 Ended running→completed
                j2 Granted pending→running on n1 token 3 attempt 1
                node n1 epoch 1 Ready
                = epoch 1
                n1: places 0 cores any memory any gpus [] warm []
                j2 Ended running→completed
                n1: places 0 cores any memory any gpus [] warm []
            "#]],
        );
    }

    #[test]
    fn a_node_must_be_of_the_right_sort() {
        check(
            "agent a arch=arm64; node n1 arch=x86_64; node n2; job j1 -- grant j1 n1; grant j1 n2",
            expect![[r#"
            ! the placement does not fit
            j1 Granted pending→running on n2 token 1 attempt 1
        "#]],
        );
        check(
            "agent a labels=zone:b; node n1 labels=zone:a; job j1 -- grant j1 n1; node n1 labels=zone:b,x:y; grant j1 n1",
            expect![[r#"
                ! the placement does not fit
                node n1 epoch 1 Ready x=y zone=b
                = epoch 1
                j1 Granted pending→running on n1 token 1 attempt 1
            "#]],
        );
        check(
            "level 6; agent a python=true; node n1 labels=python:none; node n2 labels=python:none; job j1 -- grant j1 n1; label n2 python=3; grant j1 n2",
            expect![[r#"
                ! the placement does not fit
                node n2 epoch 1 Ready python=3
                j1 Granted pending→running on n2 token 1 attempt 1
            "#]],
        );
        check(
            "level 6; agent a nodejs=true; node n1 labels=node:none; node n2 labels=node:none; job j1 -- grant j1 n1; label n2 node=22; grant j1 n2",
            expect![[r#"
                ! the placement does not fit
                node n2 epoch 1 Ready node=22
                j1 Granted pending→running on n2 token 1 attempt 1
            "#]],
        );
        check(
            "agent a devices=/dev/x; node n1; node n2 devices=/dev/x; job j1 -- grant j1 n1; grant j1 n2",
            expect![[r#"
                ! the placement does not fit
                j1 Granted pending→running on n2 token 1 attempt 1
            "#]],
        );
        check(
            "agent a on=n2; node n1; node n2; job j1 -- grant j1 n1; grant j1 n2",
            expect![[r#"
            ! the placement does not fit
            j1 Granted pending→running on n2 token 1 attempt 1
        "#]],
        );
    }

    #[test]
    fn an_agents_limit_holds_over_all_its_versions() {
        check(
            "agent a limit=1; agent a version=2.0.0 limit=1; node n1; node n2; job j1; job j2 version=2.0.0 --
            grant j1 n1; grant j2 n2; complete j1; grant j2 n2",
            expect![[r#"
                j1 Granted pending→running on n1 token 1 attempt 1
                ! the cluster's limit of 1 for running jobs of this agent is reached
                j1 Ended running→completed
                j2 Granted pending→running on n2 token 2 attempt 1
            "#]],
        );
    }

    #[test]
    fn a_warm_slot_is_used_up_and_comes_back_with_the_report() {
        check(
            "agent a; node n1; warm n1 a idle=1; job j1 -- grant j1 n1; show n1; complete j1 idle=2; show n1",
            expect![[r#"
                j1 Granted pending→running on n1 token 1 attempt 1
                n1: places 3 cores any memory any gpus [] warm []
                j1 Ended running→completed
                n1: places 4 cores any memory any gpus [] warm [2]
            "#]],
        );
    }
}
