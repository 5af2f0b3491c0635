//! Whether a job may spawn another (compatibility §10, ADR 11).

use std::collections::BTreeMap;

use atlas_allocation::{Free, suits};
use atlas_types::{Allocation, Demand, Job, JobId, NodeId, Reason, Rejection, Spawned, SpawnedBy, Spawner, level};

use crate::change::{Change, carried_job, live_lease};
use crate::node::NodeState;
use crate::state::State;

/// The child's place in its family, if what asks carries the parent and may spawn.
pub(super) fn permitted(change: &Change<'_>, spawner: SpawnedBy) -> Result<Spawned, Rejection> {
    let parent = change.state.jobs.get(spawner.parent());
    let parent = match spawner {
        SpawnedBy::Attempt(Spawner { token, .. }) => live_lease(parent, |lease| lease.token == token)?.0,
        SpawnedBy::Run { run, .. } => carried_job(parent, run)?,
    };
    if parent.reason == Reason::Cancelling {
        return Err(Rejection::Fenced);
    }
    if is_skill(change, parent) {
        return Ok(Spawned { by: spawner.parent(), depth: parent.depth() + 1, awaited: true });
    }
    if parent.namespace != change.origin.namespace {
        return Err(Rejection::Fenced);
    }
    if !parent.spec.as_ref().is_some_and(|spec| spec.spawns) {
        return Err(Rejection::SpawnForbidden);
    }
    let (depth, max) = (parent.depth(), change.state.config.spawn_depth_max);
    if depth >= max {
        return Err(Rejection::SpawnTooDeep { depth, max });
    }
    Ok(Spawned { by: spawner.parent(), depth: depth + 1, awaited: true })
}

/// Whether the child runs a skill: a call of a skill needs no permission to spawn and may be at any depth, because skills spawn nothing.
/// The door has checked that the parent's contract requires it.
fn is_skill(change: &Change<'_>, parent: &Job) -> bool {
    change.state.level >= level::SKILLS && change.origin.namespace.is_of_skills() && !parent.namespace.is_of_skills()
}

/// Refuses a child that could only run on hardware which its ancestors hold: they wait for it, so it would wait for ever. What no
/// node could ever run is another matter, which the planner tells.
pub(super) fn check_hardware(change: &Change<'_>, parent: JobId, demand: &Demand) -> Result<(), Rejection> {
    let state = &*change.state;
    let held = held_by(state, parent);
    let mut able = capable(state, demand).filter(|node| fits(node, demand, &[])).peekable();
    let shut_out = able.peek().is_some()
        && able.all(|node| {
            let held = held.get(&node.node.id).map(Vec::as_slice).unwrap_or_default();
            !fits(node, demand, held)
        });
    if shut_out { Err(Rejection::HardwareHeld) } else { Ok(()) }
}

/// What a job and those above it hold, by node.
fn held_by(state: &State, job: JobId) -> BTreeMap<&NodeId, Vec<&Allocation>> {
    let mut held: BTreeMap<_, Vec<_>> = BTreeMap::new();
    let above = |job: &&std::sync::Arc<Job>| state.jobs.get(job.spawned?.by);
    for lease in std::iter::successors(state.jobs.get(job), above).filter_map(|job| job.lease.as_ref()) {
        held.entry(&lease.node).or_default().push(&lease.allocation);
    }
    held
}

fn capable<'a>(state: &'a State, demand: &'a Demand) -> Box<dyn Iterator<Item = &'a NodeState> + 'a> {
    match &demand.node {
        Some(pinned) => Box::new(state.nodes.get(pinned).into_iter().map(|node| &**node)),
        None => Box::new(state.capable_nodes(demand).map(|node| &**node)),
    }
}

/// Whether `demand` would fit a node that holds nothing but `held`. Places do not count: ancestors lend theirs.
fn fits(node: &NodeState, demand: &Demand, held: &[&Allocation]) -> bool {
    let inventory = &node.node.inventory;
    let mut free = Free::at_best(inventory);
    for allocation in held {
        free.hold(allocation);
    }
    suits(demand, &node.node) && free.hardware_for(inventory, demand).is_some()
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use crate::tests::check;

    #[test]
    fn a_parent_lends_its_place_to_its_child() {
        check(
            "agent a spawns=true; node n1 places=1; job j1; job j2; grant j1 n1 --
            grant j2 n1; spawn j1 c1; show n1; grant j2 n1; grant c1 n1; show n1; complete c1; show n1; grant j2 n1; complete j1; grant j2 n1",
            expect![[r#"
                ! the placement does not fit
                c1 Submitted pending→pending Queued
                n1: places 0 cores any memory any gpus [] warm []
                ! the placement does not fit
                c1 Granted pending→running on n1 token 2 attempt 1
                n1: places 0 cores any memory any gpus [] warm []
                c1 Ended running→completed
                n1: places 0 cores any memory any gpus [] warm []
                ! the placement does not fit
                j1 Ended running→completed
                j2 Granted pending→running on n1 token 3 attempt 1
            "#]],
        );
    }

    #[test]
    fn a_chain_as_deep_as_allowed_runs_in_one_place() {
        check(
            "agent a spawns=true; node n1 places=1; job j1; grant j1 n1; spawn j1 c1; grant c1 n1; spawn c1 c2; grant c2 n1 --
            spawn c2 c3; grant c3 n1; spawn c3 c4; show n1; complete c3; complete c2; complete c1; complete j1; show n1",
            expect![[r#"
                c3 Submitted pending→pending Queued
                c3 Granted pending→running on n1 token 4 attempt 1
                ! Max spawn depth (3) exceeded at depth 3
                n1: places 0 cores any memory any gpus [] warm []
                c3 Ended running→completed
                c2 Ended running→completed
                c1 Ended running→completed
                j1 Ended running→completed
                n1: places 1 cores any memory any gpus [] warm []
            "#]],
        );
    }

    #[test]
    fn several_children_share_the_place_and_whatever_else_is_free() {
        check(
            "agent a spawns=true; node n1 places=2; job j1; grant j1 n1; spawn j1 c1; spawn j1 c2; spawn j1 c3 --
            grant c1 n1; grant c2 n1; grant c3 n1; complete c1; grant c3 n1; complete c2; complete c3; show n1; complete j1; show n1",
            expect![[r#"
                c1 Granted pending→running on n1 token 2 attempt 1
                c2 Granted pending→running on n1 token 3 attempt 1
                ! the placement does not fit
                c1 Ended running→completed
                c3 Granted pending→running on n1 token 4 attempt 1
                c2 Ended running→completed
                c3 Ended running→completed
                n1: places 1 cores any memory any gpus [] warm []
                j1 Ended running→completed
                n1: places 2 cores any memory any gpus [] warm []
            "#]],
        );
    }

    #[test]
    fn a_place_is_lent_to_jobs_of_its_kind() {
        check(
            "agent a spawns=true; agent b llm=true spawns=true; node n1 places=1 llm=1; job j1; grant j1 n1; spawn j1 c1 agent=b --
            grant c1 n1; show n1; spawn j1 c2 agent=b; grant c2 n1; spawn c1 c3 agent=a; grant c3 n1; show n1; grant c2 n1;
            spawn c3 c4 agent=b; grant c4 n1; show n1; complete c4; complete c3; complete c1; show n1; complete j1; show n1",
            expect![[r#"
                c1 Granted pending→running on n1 token 2 attempt 1
                n1: places 0 llm 0 cores any memory any gpus [] warm []
                c2 Submitted pending→pending Queued
                ! the placement does not fit
                c3 Submitted pending→pending Queued
                c3 Granted pending→running on n1 token 3 attempt 1
                n1: places 0 llm 0 cores any memory any gpus [] warm []
                ! the placement does not fit
                c4 Submitted pending→pending Queued
                c4 Granted pending→running on n1 token 4 attempt 1
                n1: places 0 llm 0 cores any memory any gpus [] warm []
                c4 Ended running→completed
                c3 Ended running→completed
                c1 Ended running→completed
                n1: places 0 llm 1 cores any memory any gpus [] warm []
                j1 Ended running→completed
                n1: places 1 llm 1 cores any memory any gpus [] warm []
            "#]],
        );
    }

    #[test]
    fn an_agents_limit_is_lent_as_well() {
        check(
            "agent a spawns=true limit=1; node n1; job j1; job j2; grant j1 n1; spawn j1 c1 --
            grant j2 n1; grant c1 n1; complete c1; grant j2 n1; complete j1; grant j2 n1",
            expect![[r#"
                ! the cluster's limit of 1 for running jobs of this agent is reached
                c1 Granted pending→running on n1 token 2 attempt 1
                c1 Ended running→completed
                ! the cluster's limit of 1 for running jobs of this agent is reached
                j1 Ended running→completed
                j2 Granted pending→running on n1 token 3 attempt 1
            "#]],
        );
    }

    #[test]
    fn a_parent_waits_for_the_retry_of_its_child() {
        check(
            "agent a spawns=true retries=1 backoff=1; node n1 places=1; job j1; grant j1 n1; spawn j1 c1; grant c1 n1 --
            fail c1; show n1; clock +1; wake c1'1; grant c1'1 n1; complete c1'1; show n1; complete j1",
            expect![[r#"
                c1 Ended running→failed Agent: boom
                c1'1 Submitted pending→pending Backoff { until: ClusterTime(2000000) }
                n1: places 0 cores any memory any gpus [] warm []
                c1'1 Woken pending→pending Queued
                c1'1 Granted pending→running on n1 token 3 attempt 1
                c1'1 Ended running→completed
                n1: places 0 cores any memory any gpus [] warm []
                j1 Ended running→completed
            "#]],
        );
    }

    #[test]
    fn who_may_spawn() {
        check(
            "agent a; agent b spawns=true; node n1; job j1; job j2 agent=b; grant j1 n1; grant j2 n1 --
            spawn j1 c1; spawn j2 c1 token=9; spawn j9 c1; spawn j2 c1 ns=other; cancel j2; spawn j2 c1",
            expect![[r#"
                ! Agent does not have spawn_agents permission
                ! the lease is outdated
                ! the lease is outdated
                ! the lease is outdated
                j2 Cancelling running→running Cancelling
                ! the lease is outdated
            "#]],
        );
    }

    #[test]
    fn a_skill_is_a_child_in_a_namespace_of_its_own_and_needs_no_permission() {
        check(
            "level 6; agent a; agent s ns=atlas-skills; config depth=0; node n1 places=1; job j1; grant j1 n1 --
            spawn j1 c1 agent=s ns=atlas-skills; grant c1 n1; spawn c1 c2 agent=s ns=atlas-skills; show n1; complete c1;
            spawn j1 c3 agent=s ns=atlas-skills; cancel j1",
            expect![[r#"
                c1 Submitted pending→pending Queued
                c1 Granted pending→running on n1 token 2 attempt 1
                ! Agent does not have spawn_agents permission
                n1: places 0 cores any memory any gpus [] warm []
                c1 Ended running→completed
                c3 Submitted pending→pending Queued
                j1 Cancelling running→running Cancelling
                c3 Ended pending→cancelled
            "#]],
        );
        check(
            "level 5; agent a; agent s ns=atlas-skills; node n1; job j1; grant j1 n1 -- spawn j1 c1 agent=s ns=atlas-skills",
            expect![[r#"
                ! the lease is outdated
            "#]],
        );
    }

    #[test]
    fn a_child_that_only_its_waiting_parents_hardware_could_run_is_refused() {
        check(
            "agent a spawns=true gpus=1; agent b cores=8; node n1 gpus=80; node n2 cores=8; job j1; grant j1 n1 --
            spawn j1 c1 agent=a; spawn j1 c2 agent=b; node n3 gpus=80; spawn j1 c3 agent=a",
            expect![[r#"
                ! the child needs hardware that its waiting parents hold
                c2 Submitted pending→pending Queued
                node n3 epoch 1 Ready
                = epoch 1
                c3 Submitted pending→pending Queued
            "#]],
        );
    }

    #[test]
    fn a_cancel_reaches_the_whole_family() {
        check(
            "agent a spawns=true; node n1; job j1; grant j1 n1; spawn j1 c1; grant c1 n1; spawn c1 c2; grant c2 n1; spawn c1 c3 --
            cancel j1; fail c2; fail c1; fail j1; show n1",
            expect![[r#"
                j1 Cancelling running→running Cancelling
                c1 Cancelling running→running Cancelling
                c2 Cancelling running→running Cancelling
                c3 Ended pending→cancelled
                c2 Ended running→cancelled
                c1 Ended running→cancelled
                j1 Ended running→cancelled
                n1: places 4 cores any memory any gpus [] warm []
            "#]],
        );
    }

    #[test]
    fn children_end_with_a_parent_that_fails_or_is_lost_and_outlive_one_that_completes() {
        check(
            "agent a spawns=true; node n1; node n2; job j1; grant j1 n1; spawn j1 c1; grant c1 n2; spawn j1 c2 --
            lose j1; show n1; fail c1; grant j1 n1; spawn j1 c3; fail j1; show n1",
            expect![[r#"
                j1 Lost running→pending Lost
                c1 Cancelling running→running Cancelling
                c2 Ended pending→cancelled
                n1: places 4 cores any memory any gpus [] warm []
                c1 Ended running→cancelled
                j1 Granted pending→running on n1 token 3 attempt 2
                c3 Submitted pending→pending Queued
                j1 Ended running→failed Agent: boom
                c3 Ended pending→cancelled
                n1: places 4 cores any memory any gpus [] warm []
            "#]],
        );
        check(
            "agent a spawns=true; node n1 places=1; job j1; grant j1 n1; spawn j1 c1; grant c1 n1 --
            complete j1; show n1; complete c1; show n1",
            expect![[r#"
                j1 Ended running→completed
                n1: places 0 cores any memory any gpus [] warm []
                c1 Ended running→completed
                n1: places 1 cores any memory any gpus [] warm []
            "#]],
        );
    }

    #[test]
    fn a_lost_node_takes_the_family_with_it() {
        check(
            "agent a spawns=true; node n1; job j1; grant j1 n1; spawn j1 c1; grant c1 n1; spawn c1 c2 -- lose-node n1; show j1",
            expect![[r#"
                node n1 epoch 1 Down
                j1 Lost running→pending Lost
                c1 Cancelling running→running Cancelling
                c2 Ended pending→cancelled
                c1 Ended running→cancelled
                j1: pending Lost attempt 1
            "#]],
        );
    }
}
