//! Tests the scheduler on a cluster that is described in one line.

mod fake;
mod limits;
mod property;
mod sorts;

use expect_test::{Expect, expect};

use crate::{Plan, Strategy, counterfactuals, explain, plan};
use fake::Fake;

/// Builds a cluster from sentences (see [`Fake::parse`]), then runs the queries `plan [BUDGET]`, `spread`, `why` and `starts`.
#[expect(clippy::needless_pass_by_value, reason = "`expect!` makes values; a hundred tests read better without `&`")]
fn check(script: &str, expected: Expect) {
    let mut fake = Fake::default();
    let mut out = String::new();
    let mut asked = false;
    for sentence in script.split(';').map(str::trim).filter(|sentence| !sentence.is_empty()) {
        let words: Vec<&str> = sentence.split_whitespace().collect();
        match words[..] {
            ["plan"] => out += &run(&mut fake, Strategy::BinPack, 100),
            ["plan", budget] => out += &run(&mut fake, Strategy::BinPack, budget.parse().expect("a number")),
            ["spread"] => out += &run(&mut fake, Strategy::Spread, 100),
            ["starts", job] => {
                for found in counterfactuals(&fake, fake.job(job), &|job| job.id.0) {
                    out += &format!("{job} starts if {found}\n");
                }
            }
            ["why", job] => out += &format!("{job} {}\n", explain(&fake, fake.job(job))),
            _ => {
                fake.parse(sentence);
                continue;
            }
        }
        asked = true;
    }
    assert!(asked, "the script asks for nothing: {script}");
    expected.assert_eq(&out);
}

/// Plans, prints and applies the plan, so that a second `plan` in a script shows the remaining jobs.
fn run(fake: &mut Fake, strategy: Strategy, budget: usize) -> String {
    let plan = plan(fake, strategy, budget);
    let mut out = String::new();
    for placement in &plan.placements {
        let allocation = &placement.grant.allocation;
        let mut taken = format!("cores={} mem={}", allocation.cores, fake::gb(allocation.memory_bytes));
        for share in &allocation.gpus {
            taken += &format!(" gpu{}={}", share.index, fake::gb(share.vram_bytes));
        }
        out += &format!("j{} on {}: {taken}\n", placement.grant.job.0, placement.grant.node);
        fake.place(&placement.grant);
    }
    for never in &plan.never {
        out += &format!("j{} never: {}\n", never.job.0, crate::describe_fully(&never.demand));
        fake.remove(never.job);
    }
    if plan.more {
        out += "and more\n";
    }
    if out.is_empty() { "nothing\n".to_owned() } else { out }
}

#[test]
fn priority_goes_before_age() {
    check(
        "node n1 places=2; job j1; job j2 prio=5; job j3 prio=5; plan; why j1",
        expect![[r#"
            j2 on n1: cores=0 mem=0
            j3 on n1: cores=0 mem=0
            j1 waiting for capacity on 1 node: 1 no free concurrency permit; closest is "n1": needs 1 concurrency permit, has 0 of 2
        "#]],
    );
}

#[test]
fn classes_are_merged_by_priority_and_age() {
    check(
        "node n1 places=9 cores=9; job j1 cores=1; job j2 cores=2; job j3 cores=1 prio=1; job j4 cores=2; plan",
        expect![[r#"
            j3 on n1: cores=1 mem=0
            j1 on n1: cores=1 mem=0
            j2 on n1: cores=2 mem=0
            j4 on n1: cores=2 mem=0
        "#]],
    );
}

#[test]
fn a_class_without_room_does_not_hold_the_others() {
    check(
        "node n1 places=4 cores=4; run j9 n1 cores=2; job j1 cores=4 prio=9; job j2 cores=1; plan; why j1",
        expect![[r#"
            j2 on n1: cores=1 mem=0
            j1 waiting for capacity on 1 node: 1 too few cores; closest is "n1": needs 4 cores, has 1 of 4
        "#]],
    );
}

#[test]
fn a_plan_without_room_does_not_walk_through_all_namespaces() {
    let mut fake = Fake::default();
    fake.parse("node n1 places=4 cores=4 mem=4");
    for number in 0..240 {
        fake.parse(&format!("job j{number} cores={} mem=1 ns=team-{}", 1 + number % 3, number / 3));
    }
    let plan = plan(&fake, Strategy::BinPack, 512);
    assert!(!plan.placements.is_empty() && !plan.more);
    // One of each namespace, to learn whose turn it is.
    assert!(fake.opened.get() < 80 + 30, "{} of 240 classes", fake.opened.get());
    plan.placements.iter().for_each(|placement| fake.place(&placement.grant));
    assert_eq!(crate::plan(&fake, Strategy::BinPack, 512), Plan::default());
}

#[test]
fn jobs_that_call_a_model_do_not_wait_for_places_of_processes() {
    check(
        "node n1 places=1 llm=2; node n2 places=1; run j9 n1; run j8 n2; job j1; job j2 llm; job j3 llm; job j4 llm; plan; why j1; why j4",
        expect![[r#"
            j2 on n1: cores=0 mem=0
            j3 on n1: cores=0 mem=0
            j1 waiting for capacity on 2 nodes: 2 no free concurrency permit; closest is "n1": needs 1 concurrency permit, has 0 of 1
            j4 waiting for capacity on 2 nodes: 2 no free concurrency permit; closest is "n1": needs 1 concurrency permit for an llm agent, has 0 of 2
        "#]],
    );
    check(
        "node n1 places=4; job j1 llm; plan",
        expect![[r#"
        j1 never: llm agent
    "#]],
    );
    let nodes = "node n1 places=9 llm=2; node n2 places=1 llm=4;";
    check(
        &format!("{nodes} job j1 llm; job j2 llm; job j3 llm; spread"),
        expect![[r#"
        j1 on n2: cores=0 mem=0
        j2 on n2: cores=0 mem=0
        j3 on n1: cores=0 mem=0
    "#]],
    );
}

#[test]
fn a_plan_stops_at_its_budget_and_the_next_goes_on() {
    check(
        "node n1 places=4; job j1; job j2; job j3; plan 2; plan 2; plan 2",
        expect![[r#"
            j1 on n1: cores=0 mem=0
            j2 on n1: cores=0 mem=0
            and more
            j3 on n1: cores=0 mem=0
            nothing
        "#]],
    );
}

#[test]
fn packing_fills_the_fullest_node_and_spreading_the_emptiest() {
    let nodes = "node n1 places=4; node n2 places=4; run j8 n2; run j9 n2; job j1; job j2; job j3; job j4; job j5;";
    check(
        &format!("{nodes} plan"),
        expect![[r#"
            j1 on n2: cores=0 mem=0
            j2 on n2: cores=0 mem=0
            j3 on n1: cores=0 mem=0
            j4 on n1: cores=0 mem=0
            j5 on n1: cores=0 mem=0
        "#]],
    );
    check(
        &format!("{nodes} spread"),
        expect![[r#"
            j1 on n1: cores=0 mem=0
            j2 on n1: cores=0 mem=0
            j3 on n2: cores=0 mem=0
            j4 on n1: cores=0 mem=0
            j5 on n1: cores=0 mem=0
        "#]],
    );
}

#[test]
fn spreading_sees_what_other_classes_took_in_the_same_plan() {
    check(
        "node n1 places=3 cores=9; node n2 places=2 cores=9; job j1; job j2 cores=1; job j3; job j4 cores=1; spread",
        expect![[r#"
            j1 on n1: cores=0 mem=0
            j2 on n2: cores=1 mem=0
            j3 on n1: cores=0 mem=0
            j4 on n1: cores=1 mem=0
        "#]],
    );
}

#[test]
fn an_idle_warm_slot_is_preferred_as_often_as_there_is_one() {
    check(
        "node n1 places=4; node n2 places=4 warm=d7*1; run j9 n1; job j1 digest=d7; job j2 digest=d7; plan",
        expect![[r#"
            j1 on n2: cores=0 mem=0
            j2 on n1: cores=0 mem=0
        "#]],
    );
}

#[test]
fn a_warm_slot_on_a_node_without_room_is_no_use() {
    check(
        "node n1 places=4; node n2 places=1 warm=d7*1; run j9 n2; job j1 digest=d7; plan",
        expect![[r#"
            j1 on n1: cores=0 mem=0
        "#]],
    );
}

#[test]
fn small_jobs_share_a_gpu_by_bytes_and_the_lowest_index_goes_first() {
    check(
        "node n1 places=9 gpu=24,24; job j1 gpus=1 vram=16; job j2 gpus=1 vram=16; job j3 gpus=1 vram=8; job j4 gpus=1 \
         vram=16; plan; why j4",
        expect![[r#"
            j1 on n1: cores=0 mem=0 gpu0=16
            j2 on n1: cores=0 mem=0 gpu1=16
            j3 on n1: cores=0 mem=0 gpu0=8
            j4 waiting for capacity on 1 node: 1 no GPU with free capacity; closest is "n1": needs GPU (16GB VRAM), has 0 of 2
        "#]],
    );
}

#[test]
fn without_an_amount_a_whole_free_gpu_is_taken() {
    check(
        "node n1 places=9 gpu=24,24; job j1 gpus=1 vram=1; job j2 gpus=1; job j3 gpus=1; plan",
        expect![[r#"
            j1 on n1: cores=0 mem=0 gpu0=1
            j2 on n1: cores=0 mem=0 gpu1=24
        "#]],
    );
}

#[test]
fn a_gpu_of_unknown_memory_takes_any_amount_and_is_not_shared() {
    check(
        "node n1 places=9 gpu=0; job j1 gpus=1 vram=16; job j2 gpus=1 vram=1; plan",
        expect![[r#"
            j1 on n1: cores=0 mem=0 gpu0=0
        "#]],
    );
}

#[test]
fn several_gpus_must_be_on_one_node() {
    check(
        "node n1 places=9 gpu=24; node n2 places=9 gpu=24,24,24; job j1 gpus=2 vram=20; job j2 gpus=2; plan; why j2",
        expect![[r#"
            j1 on n2: cores=0 mem=0 gpu0=20 gpu1=20
            j2 waiting for capacity on 2 nodes: 2 no GPU with free capacity; closest is "n1": needs 2 GPUs, has 1 of 1
        "#]],
    );
}

#[test]
fn a_broken_gpu_gets_no_jobs_and_fails_none() {
    check(
        "node n1 places=9 gpu=24 broken=0; job j1 gpus=1; plan; why j1",
        expect![[r#"
            nothing
            j1 waiting for capacity on 1 node: 1 no GPU with free capacity; closest is "n1": needs GPU, has 0 of 1
        "#]],
    );
}

#[test]
fn a_node_without_checks_has_room_while_it_has_a_place() {
    check(
        "node n1 places=1 arch=x86_64 cores=1 unchecked; job j1 gpus=1 vram=80 cores=9 arch=arm64 dev=/dev/x; job j2 gpus=1; plan; why j2",
        expect![[r#"
            j1 on n1: cores=0 mem=0
            j2 waiting for capacity on 1 node: 1 no free concurrency permit; closest is "n1": needs 1 concurrency permit, has 0 of 1
        "#]],
    );
}

#[test]
fn declared_nodes_count_the_defaults_of_a_contract() {
    check(
        "node n1 places=9 cores=2 mem=1 declared; job j1; job j2; plan; why j2",
        expect![[r#"
            j1 on n1: cores=1 mem=1
            j2 waiting for capacity on 1 node: 1 too little memory; closest is "n1": needs 1GB memory, has 0GB of 1GB
        "#]],
    );
}

#[test]
fn untracked_amounts_are_not_checked() {
    check(
        "node n1 places=9; job j1 cores=64 mem=512; plan",
        expect![[r#"
            j1 on n1: cores=64 mem=512
        "#]],
    );
}

#[test]
fn a_demand_beyond_every_node_can_never_run() {
    check(
        "node n1 places=1 gpu=24 mem=64 cores=8; node n2 places=1 down; job j1 gpus=1 vram=80; job j2 gpus=1 vram=80; job \
         j3 pin=n9; why j1; plan; plan",
        expect![[r#"
            j1 no registered worker can run it: GPU (80GB VRAM); closest is "n1": needs GPU (80GB VRAM), has 0 of 1
            j1 never: GPU (80GB VRAM)
            j2 never: GPU (80GB VRAM)
            j3 never: node=n9
            nothing
        "#]],
    );
}

#[test]
fn a_job_that_parked_waits_for_a_node_and_does_not_hold_up_others() {
    check(
        "node n1 places=2; job j1 gpus=1 parks=1; job j2 gpus=1; job j3 gpus=1 parks=2; job j4; plan; why j1; why j3; plan",
        expect![[r#"
            j4 on n1: cores=0 mem=0
            j2 never: GPU
            j1 no registered worker can run it: GPU; closest is "n1": needs GPU, has 0 of 0
            j3 no registered worker can run it: GPU; closest is "n1": needs GPU, has 0 of 0; 1 job is ahead of it
            nothing
        "#]],
    );
}

#[test]
fn a_node_that_is_down_or_closed_may_come_back() {
    check(
        "node n1 places=1 gpu=24 down; node n2 places=1 gpu=24 cordoned; node n3 places=1 gpu=24 draining; job j1 gpus=1; \
         plan; why j1",
        expect![[r#"
            nothing
            j1 waiting for capacity on 3 nodes: 3 not accepting new leases; closest is "n1": needs a node that accepts leases, has one that is down
        "#]],
    );
}

#[test]
fn without_nodes_jobs_wait() {
    check(
        "job j1; plan; why j1",
        expect![[r#"
            nothing
            j1 waiting for a worker: none is registered
        "#]],
    );
}

#[test]
fn what_does_not_wait_for_a_node_says_so() {
    check(
        "node n1 places=1; job j1; job j2; job j3; job j4 backoff=90; job j5 doubt; why j1; why j3; why j4; why j5; plan; \
         why j1; why j3",
        expect![[r#"
            j1 ready to run: a node has capacity for it
            j3 ready to run: a node has capacity for it; 2 jobs are ahead of it
            j4 waiting until 1970-01-01T00:01:30Z to be retried
            j5 in doubt: its lease was lost and it must not run twice; resolve it manually
            j1 on n1: cores=0 mem=0
            j1 not waiting: it is running
            j3 waiting for capacity on 1 node: 1 no free concurrency permit; closest is "n1": needs 1 concurrency permit, has 0 of 1; 1 job is ahead of it
        "#]],
    );
}

#[test]
fn a_waiting_job_lends_its_place_to_a_deeper_one_and_to_nobody_else() {
    check(
        "node a places=1; run j1 a; job j2 prio=9; job j3 depth=1; plan; lend j1; why j3; plan; why j2",
        expect![[r#"
            nothing
            j3 ready to run: a node has capacity for it
            j3 on a: cores=0 mem=0
            j2 waiting for capacity on 1 node: 1 no free concurrency permit; closest is "a": needs 1 concurrency permit, has 0 of 1
        "#]],
    );
}

#[test]
fn places_that_are_lent_are_used_before_those_that_others_could_have() {
    check(
        "node a places=2; node b places=1; run j1 a; lend j1; job j2 depth=1; job j3 depth=1; job j4; plan; plan",
        expect![[r#"
            j2 on a: cores=0 mem=0
            j3 on a: cores=0 mem=0
            j4 on b: cores=0 mem=0
            nothing
        "#]],
    );
    check(
        "node a places=1; node b places=1; run j1 a; lend j1; job j2 depth=1; job j3 depth=1; spread",
        expect![[r#"
        j2 on a: cores=0 mem=0
        j3 on b: cores=0 mem=0
    "#]],
    );
}

#[test]
fn hardware_is_not_lent() {
    check(
        "node a places=2 gpu=80; run j1 a gpus=1; lend j1; job j2 depth=1 gpus=1; plan; why j2",
        expect![[r#"
            nothing
            j2 waiting for capacity on 1 node: 1 no GPU with free capacity; closest is "a": needs GPU, has 0 of 1
        "#]],
    );
}

#[test]
fn a_job_without_room_starts_when_others_end_or_a_node_changes() {
    check(
        "node n1 places=4 mem=32; node n2 places=4 mem=64 label=zone:us cordoned; node n3 places=4 mem=64 down; run j8 n1 mem=4; run \
         j9 n1 mem=20; job j1 mem=24; plan; starts j1",
        expect![[r#"
            nothing
            j1 starts if job-0000000000000009 ends
            j1 starts if node "n2" is uncordoned
            j1 starts if node "n1" has 16GB more memory free
            j1 starts if its agent asks for at most 8GB memory
            j1 starts if another worker joins with: 24GB RAM
        "#]],
    );
}

#[test]
fn the_amounts_are_those_that_the_node_does_not_have() {
    check(
        "node n1 places=9 gpu=24,24; run j8 n1 gpus=1 vram=10; run j9 n1 gpus=1 vram=20; job j1 gpus=2 vram=16; plan; starts j1",
        expect![[r#"
            nothing
            j1 starts if job-0000000000000008 and job-0000000000000009 end
            j1 starts if node "n1" has 2GB more VRAM on GPU 0 and 12GB more VRAM on GPU 1 free
            j1 starts if its agent asks for at most 4GB VRAM
            j1 starts if another worker joins with: 2 GPUs (16GB VRAM each)
        "#]],
    );
    check(
        "node n1 places=2 label=zone:us; node n2 places=1 label=zone:eu; run j9 n2; job j2 label=zone:eu; plan; starts j2",
        expect![[r#"
            nothing
            j2 starts if job-0000000000000009 ends
            j2 starts if node "n1" gets the label zone=eu
            j2 starts if node "n2" has 1 more concurrency permit free
            j2 starts if another worker joins with: zone=eu
        "#]],
    );
}

#[test]
fn jobs_ahead_are_counted_in() {
    check(
        "node n1 places=2; run j8 n1; run j9 n1; job j1; job j2; job j3; plan; starts j1; starts j2; starts j3",
        expect![[r#"
            nothing
            j1 starts if job-0000000000000008 ends
            j1 starts if node "n1" has 1 more concurrency permit free
            j1 starts if any other worker joins
            j2 starts if job-0000000000000008 and job-0000000000000009 end
            j2 starts if node "n1" has 1 more concurrency permit free and its priority is at least 1
            j2 starts if any other worker joins and its priority is at least 1
            j3 starts if job-0000000000000008 ends and its priority is at least 1
            j3 starts if node "n1" has 1 more concurrency permit free and its priority is at least 1
            j3 starts if any other worker joins and its priority is at least 1
        "#]],
    );
}

#[test]
fn other_reasons_come_before_capacity() {
    check(
        "node n1 places=1; run j9 n1 agent=solo limit=1; job j1 backoff=90; job j2 doubt; job j3 agent=solo limit=1; job j4 agent=solo \
         limit=1; plan; starts j1; starts j2; starts j3; starts j4",
        expect![[r#"
            nothing
            j1 starts if it is 1970-01-01T00:01:30Z and job-0000000000000009 ends
            j1 starts if it is 1970-01-01T00:01:30Z and node "n1" has 1 more concurrency permit free
            j1 starts if it is 1970-01-01T00:01:30Z and any other worker joins
            j2 starts if an operator resolves it as not done and job-0000000000000009 ends
            j2 starts if an operator resolves it as not done and node "n1" has 1 more concurrency permit free
            j2 starts if an operator resolves it as not done and any other worker joins
            j3 starts if job-0000000000000009 ends
            j3 starts if its agent may run 2 jobs at once and node "n1" has 1 more concurrency permit free
            j3 starts if its agent may run 2 jobs at once and any other worker joins
            j4 starts if job-0000000000000009 ends and its priority is at least 1
            j4 starts if its agent may run 2 jobs at once, node "n1" has 1 more concurrency permit free and its priority is at least 1
            j4 starts if its agent may run 2 jobs at once, any other worker joins and its priority is at least 1
        "#]],
    );
    check(
        "job j1 gpus=1 vram=16; plan; starts j1",
        expect![[r#"
            nothing
            j1 starts if another worker joins with: GPU (16GB VRAM)
        "#]],
    );
}
