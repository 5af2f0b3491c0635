//! Properties of every plan: safety (never above capacity) and, separately, liveness (a job that fits is placed).

use std::collections::BTreeMap;
use std::sync::Arc;

use atlas_types::{Circuit, Demand, Gpu, Inventory, Job, JobId, JobStatus, Namespace, Node, NodeHealth, Place, Reason};
use proptest::prelude::*;
use proptest::strategy::Strategy as Generate;

use super::fake::{Fake, job, node};
use crate::fit::short_now;
use crate::{
    Ask, Brief, Change, Cluster, More, NodeView, Plan, Strategy, Why, allocate, brief, could_ever, counterfactuals,
    explain, plan,
};

fn nodes() -> impl Generate<Value = Vec<String>> {
    let gpus = prop_oneof![Just(""), Just(" gpu=24"), Just(" gpu=24,80"), Just(" gpu=0,8")];
    let state = prop_oneof![6 => Just(""), 1 => Just(" down"), 1 => Just(" draining"), 1 => Just(" failing=open"), 1 => Just(" failing=ready")];
    let extra = prop_oneof![
        Just(""),
        Just(" declared"),
        Just(" unchecked"),
        Just(" warm=d1*2"),
        Just(" label=zone:eu"),
        Just(" label=zone:us given=zone:eu")
    ];
    let places = (0..5u32, 0..3u32);
    let one =
        (places, 0..9u32, 0..33u32, gpus, state, extra).prop_map(|((places, llm), cores, mem, gpus, state, extra)| {
            format!("places={places} llm={llm} cores={cores} mem={mem}{gpus}{state}{extra}")
        });
    prop::collection::vec(one, 0..6)
}

fn jobs() -> impl Generate<Value = Vec<String>> {
    let gpus = prop_oneof![4 => Just(""), 2 => Just(" llm"), 1 => Just(" gpus=1"), 1 => Just(" gpus=1 vram=10"), 1 => Just(" gpus=2 vram=4")];
    let extra = prop_oneof![
        5 => Just(""),
        1 => Just(" label=zone:eu"),
        1 => Just(" pin=n1"),
        1 => Just(" agent=solo limit=1"),
        1 => Just(" agent=duo limit=2"),
        1 => Just(" agent=slow rate=1/10/2"),
        1 => Just(" agent=shaky failures=3"),
        1 => Just(" agent=probed failures=3"),
        1 => Just(" agent=fair k=x k-limit=1"),
        1 => Just(" agent=fair k=y k-limit=1"),
        1 => Just(" agent=even limit=3 rate=2/5/1 k=x k-rate=1/20/1")
    ];
    let one = (0..4u32, 0..17u32, -1..3i64, 1..4u8, gpus, extra, namespace()).prop_map(
        |(cores, mem, prio, digest, gpus, extra, namespace)| {
            format!("cores={cores} mem={mem} prio={prio} digest=d{digest}{gpus}{extra}{namespace}")
        },
    );
    prop::collection::vec(one, 0..24)
}

fn namespace() -> impl Generate<Value = &'static str> {
    prop_oneof![4 => Just(""), 1 => Just(" ns=x"), 1 => Just(" ns=y")]
}

fn build(nodes: &[String], jobs: &[String]) -> Fake {
    let mut fake = Fake::default();
    fake.parse("weight x 3");
    fake.parse("circuit shaky open");
    fake.parse("circuit probed ready");
    for (text, n) in nodes.iter().zip(1..) {
        fake.add_node(node(&format!("n{n}"), &text.split_whitespace().collect::<Vec<_>>()));
    }
    for (text, n) in jobs.iter().zip(1..) {
        fake.add_job(job(&format!("j{n}"), &text.split_whitespace().collect::<Vec<_>>()));
    }
    fake
}

fn apply(fake: &mut Fake, plan: &Plan) {
    plan.placements.iter().for_each(|placement| fake.place(&placement.grant));
    plan.never.iter().for_each(|never| fake.remove(never.job));
}

/// Adds up the allocations of each node without the arithmetic of [`Free`](atlas_allocation::Free).
fn assert_within_capacity(fake: &Fake) {
    for (node, _) in fake.nodes.values() {
        let inventory = &node.inventory;
        let leases: Vec<_> = fake.allocations.values().filter(|(on, _)| *on == node.id).map(|(_, held)| held).collect();
        for place in [Place::Process, Place::Llm] {
            let taken = leases.iter().filter(|held| held.place == place).count();
            assert!(taken <= inventory.places_of(place) as usize, "{place:?} places of {}", node.id);
        }
        let cores: u32 = leases.iter().map(|held| held.cores).sum();
        assert!(inventory.cores == 0 || cores <= inventory.cores, "cores of {}", node.id);
        let memory_bytes: u64 = leases.iter().map(|held| held.memory_bytes).sum();
        assert!(inventory.memory_bytes == 0 || memory_bytes <= inventory.memory_bytes, "memory of {}", node.id);
        for gpu in &inventory.gpus {
            let shares = leases.iter().flat_map(|held| &held.gpus).filter(|share| share.index == gpu.index);
            let (count, vram_bytes) = shares.fold((0, 0), |(count, sum), share| (count + 1, sum + share.vram_bytes));
            assert!(vram_bytes <= gpu.memory_bytes, "GPU {} of {}", gpu.index, node.id);
            assert!(gpu.memory_bytes > 0 || count <= 1, "GPU {} of {}", gpu.index, node.id);
        }
    }
}

fn running_by_default(fake: &Fake) -> usize {
    let counts = |job: &&Job| job.status == JobStatus::Running && job.namespace == Namespace::default_namespace();
    fake.jobs.values().filter(counts).count()
}

fn assert_within_limits(fake: &Fake) {
    let all = running_by_default(fake);
    assert!(fake.running_max.is_none_or(|limit| all <= limit as usize), "{all} jobs run");
    let mut running = BTreeMap::<_, u32>::new();
    for job in fake.jobs.values().filter(|job| job.status == JobStatus::Running) {
        *running.entry((&job.namespace, &job.agent)).or_default() += 1;
        if let Some(limit) = job.spec.as_ref().and_then(|spec| spec.concurrency) {
            assert!(running[&(&job.namespace, &job.agent)] <= limit, "{} runs more often than {limit}", job.agent);
        }
    }
}

/// Whether the circuit of its agent lets a job not start.
fn is_broken(fake: &Fake, job: &Job) -> bool {
    fake.circuit(job).is_some_and(|circuit| !circuit.admits())
}

/// Every job that still waits has a reason that an exhaustive search confirms.
fn assert_nothing_left_that_fits(fake: &Fake) {
    let paused = fake.running_max.is_some_and(|limit| running_by_default(fake) >= limit as usize);
    for job in fake.jobs.values().filter(|job| job.status == JobStatus::Pending) {
        let spec = job.spec.as_ref().expect("a spec");
        let running = |other: &&Job| {
            other.status == JobStatus::Running && other.namespace == job.namespace && other.agent == job.agent
        };
        let running = fake.jobs.values().filter(running).count() as u32;
        let paused = paused && job.namespace == Namespace::default_namespace();
        if paused || spec.concurrency.is_some_and(|limit| running >= limit) || fake.is_held(job) || is_broken(fake, job)
        {
            continue;
        }
        for (node, free) in fake.nodes.values() {
            let view = NodeView { node, free };
            assert_eq!(allocate(&spec.demand, job.depth(), view), None, "{} fits {}", job.id, node.id);
            assert!(!short_now(&spec.demand, job.depth(), view).is_empty(), "{} has no reason on {}", job.id, node.id);
        }
        let possible = fake.nodes.values().any(|(node, _)| could_ever(&spec.demand, node));
        assert!(possible || fake.nodes.is_empty(), "{} can never run and was not refused", job.id);
    }
}

/// Jobs that also wait for something else than capacity, or are children.
fn more_jobs() -> impl Generate<Value = Vec<String>> {
    let waits = prop_oneof![
        6 => Just(""),
        1 => Just(" backoff=9"),
        1 => Just(" doubt"),
        2 => Just(" depth=1"),
        1 => Just(" parks=1"),
        1 => Just(" parks=1 label=zone:mars pin=n1"),
        1 => Just(" parks=1 pin=n77 gpus=3 arch=arm64 dev=/dev/a")
    ];
    jobs().prop_flat_map(move |jobs| {
        let count = jobs.len();
        (Just(jobs), prop::collection::vec(waits.clone(), count))
            .prop_map(|(jobs, waits)| jobs.iter().zip(waits).map(|(job, waits)| format!("{job}{waits}")).collect())
    })
}

/// Makes the changes as an operator or time would, without the code that found them.
fn make(fake: &mut Fake, asked: JobId, changes: &[Change]) {
    for change in changes {
        match change {
            Change::Time { .. } | Change::Wake | Change::Allow | Change::Approve | Change::Resolve => {
                fake.change_jobs(|job| {
                    if job.id == asked {
                        job.reason = Reason::Queued;
                    }
                })
            }
            Change::End { jobs } => jobs.iter().for_each(|job| fake.remove(*job)),
            Change::OthersWait => {
                let namespace = fake.jobs[&asked].namespace.clone();
                fake.change_jobs(|job| {
                    if job.namespace != namespace {
                        job.reason = Reason::InDoubt;
                    }
                });
            }
            Change::Priority { at_least } => fake.change_jobs(|job| {
                if job.id == asked {
                    job.priority = *at_least;
                }
            }),
            Change::Limit { at_least } => {
                let (namespace, agent) = (fake.jobs[&asked].namespace.clone(), fake.jobs[&asked].agent.clone());
                fake.change_jobs(|job| {
                    if job.namespace == namespace && job.agent == agent {
                        Arc::make_mut(job.spec.as_mut().expect("a spec")).concurrency = Some(*at_least);
                    }
                });
            }
            Change::NamespaceLimit { at_least } => fake.running_max = Some(*at_least),
            Change::KeyLimit { at_least } => {
                let of = |job: &Job| (job.namespace.clone(), job.agent.clone(), job.labels.clone());
                let of_asked = of(&fake.jobs[&asked]);
                fake.change_jobs(|job| {
                    if of(job) == of_asked {
                        let spec = Arc::make_mut(job.spec.as_mut().expect("a spec"));
                        spec.per_key.as_mut().expect("a key").concurrency = Some(*at_least);
                    }
                });
            }
            Change::Resume { agent, .. } => drop(fake.circuits.remove(agent)),
            Change::Probe { .. } => {
                let agent = fake.jobs[&asked].agent.clone();
                fake.circuits.get_mut(&agent).expect("a circuit").end_pause();
            }
            Change::Rate { wait, .. } => fake.now = fake.now.plus(*wait),
            Change::Open { node, .. } => fake.change_node(node, |node| {
                node.health = NodeHealth::Ready;
                node.cordoned = false;
                node.draining = false;
                node.circuit = Circuit::default();
            }),
            Change::Label { node, labels } => {
                fake.change_node(node, |node| node.operator_labels.extend(labels.clone()));
            }
            Change::Room { node, more } => {
                let place = fake.jobs[&asked].spec.as_ref().expect("a spec").demand.place;
                fake.change_node(node, |node| {
                    more.iter().for_each(|more| grow(Arc::make_mut(&mut node.inventory), place, *more))
                });
            }
            Change::Register { demand } => fake.add_node(registered(demand)),
            Change::Ask { at_most } => fake.change_jobs(|job| {
                if job.id == asked {
                    let demand = &mut Arc::make_mut(job.spec.as_mut().expect("a spec")).demand;
                    match *at_most {
                        Ask::Cores(cores) => demand.cores = cores,
                        Ask::MemoryBytes(bytes) => demand.memory_bytes = bytes,
                        Ask::VramBytes(bytes) => demand.vram_bytes = bytes,
                    }
                }
            }),
        }
    }
}

fn grow(inventory: &mut Inventory, place: Place, more: More) {
    match (more, place) {
        (More::Places(places), Place::Process) => inventory.places += places,
        (More::Places(places), Place::Llm) => inventory.llm_places += places,
        (More::Cores(cores), _) => inventory.cores += cores,
        (More::MemoryBytes(bytes), _) => inventory.memory_bytes += bytes,
        (More::VramBytes { gpu, bytes }, _) => inventory.gpus[gpu as usize].memory_bytes += bytes,
        (More::Gpus { count, vram_bytes }, _) => {
            for _ in 0..count {
                let gpu = gpu(inventory.gpus.len() as u32, vram_bytes);
                inventory.gpus.push(gpu);
            }
        }
    }
}

fn gpu(index: u32, memory_bytes: u64) -> Gpu {
    let model = String::new();
    Gpu { index, uuid: String::new(), vendor: String::new(), model, memory_bytes, mig_profile: None, healthy: true }
}

/// A node that is as large as the demand says.
fn registered(demand: &Demand) -> Node {
    let name = demand.node.as_ref().map_or_else(|| "zz".to_owned(), ToString::to_string);
    let place = if demand.place == Place::Llm { "llm=1" } else { "places=1" };
    let mut node = node(&name, &[place]);
    let inventory = Arc::make_mut(&mut node.inventory);
    (inventory.cores, inventory.memory_bytes) = (demand.cores, demand.memory_bytes);
    (inventory.architecture, inventory.devices) = (demand.architecture, demand.devices.clone());
    inventory.labels = demand.labels.clone();
    inventory.gpus = (0..demand.gpus).map(|index| gpu(index, demand.vram_bytes)).collect();
    node
}

fn plan_all(fake: &mut Fake) {
    loop {
        let next = plan(fake, Strategy::BinPack, 8);
        apply(fake, &next);
        if !next.more {
            return;
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn plans_keep_to_capacity_and_leave_nothing_that_fits(
        nodes in nodes(), jobs in jobs(), spread: bool, budget in 1..30usize, limit in prop::option::weighted(0.3, 0..6u32),
    ) {
        let strategy = if spread { Strategy::Spread } else { Strategy::BinPack };
        let mut fake = build(&nodes, &jobs);
        fake.running_max = limit;
        for _ in 0..jobs.len() + 1 {
            let plan = plan(&fake, strategy, budget);
            prop_assert!(plan.placements.len() + plan.never.len() <= budget);
            apply(&mut fake, &plan);
            assert_within_capacity(&fake);
            assert_within_limits(&fake);
            if !plan.more {
                break;
            }
        }
        assert_nothing_left_that_fits(&fake);
        for job in fake.jobs.values().filter(|job| job.status == JobStatus::Pending) {
            let expected = match explain(&fake, job).why {
                Why::Turn => Brief::Turn,
                Why::NoNode => Brief::NoNode,
                Why::NoRoom { .. } => Brief::NoRoom,
                Why::NeverSatisfiable { .. } => Brief::NeverSatisfiable,
                Why::Concurrency { .. } => Brief::Concurrency,
                Why::NamespaceLimit { .. } => Brief::NamespaceLimit,
                Why::KeyLimit { .. } => Brief::KeyLimit,
                Why::Rate { .. } => Brief::Rate,
                Why::Circuit { .. } => Brief::Circuit,
                why => panic!("{why:?}"),
            };
            prop_assert_eq!(brief(&fake, job), expected);
        }
        prop_assert_eq!(plan(&fake, strategy, budget), Plan::default(), "planning a solved plan again changes nothing");
    }

    #[test]
    fn room_that_comes_free_is_used(nodes in nodes(), jobs in jobs(), ended: prop::sample::Index) {
        let mut fake = build(&nodes, &jobs);
        let first = plan(&fake, Strategy::BinPack, 100);
        apply(&mut fake, &first);
        if !first.placements.is_empty() {
            let ended: JobId = first.placements[ended.index(first.placements.len())].grant.job;
            fake.remove(ended);
            let second = plan(&fake, Strategy::BinPack, 100);
            apply(&mut fake, &second);
            assert_within_capacity(&fake);
            assert_nothing_left_that_fits(&fake);
        }
    }

    #[test]
    fn the_next_namespace_is_the_one_with_the_lowest_share(nodes in nodes(), jobs in jobs(), budget in 1..30usize) {
        let mut fake = build(&nodes, &jobs);
        for _ in 0..jobs.len() + 1 {
            let plan = plan(&fake, Strategy::BinPack, budget);
            for placement in &plan.placements {
                let share = fake.share(&placement.namespace);
                let may_start = |job: &&Job| job.status == JobStatus::Pending && !fake.is_at_a_limit(job) && !is_broken(&fake, job);
                for job in fake.jobs.values().filter(may_start) {
                    let demand = &job.spec.as_ref().expect("a spec").demand;
                    let mut views = fake.nodes.values().map(|(node, free)| NodeView { node, free });
                    let fits = views.any(|view| allocate(demand, job.depth(), view).is_some());
                    prop_assert!(!fits || fake.share(&job.namespace) >= share, "j{} is passed", job.id.0);
                }
                fake.place(&placement.grant);
            }
            plan.never.iter().for_each(|never| fake.remove(never.job));
            if !plan.more {
                break;
            }
        }
    }

    #[test]
    fn the_first_of_a_class_is_placed_first(jobs in jobs()) {
        let fake = build(&["places=3 cores=8 mem=32 gpu=24,80".to_owned()], &jobs);
        let plan = plan(&fake, Strategy::BinPack, 100);
        let placed = |id: JobId| plan.placements.iter().position(|placement| placement.grant.job == id);
        for a in fake.jobs.values() {
            let like = |b: &&Job| a.spec == b.spec && a.agent == b.agent && a.namespace == b.namespace;
            for b in fake.jobs.values().filter(like) {
                let a_first = (-a.priority, a.queue_seq) < (-b.priority, b.queue_seq);
                if let (true, Some(later)) = (a_first, placed(b.id)) {
                    prop_assert!(placed(a.id).is_some_and(|earlier| earlier < later), "{} before {}", b.id, a.id);
                }
            }
        }
    }
}

/// Tries each counterfactual of each job that waits.
fn counterfactuals_start(
    nodes: &[String],
    jobs: &[String],
    lends: &[bool],
    limit: Option<u32>,
) -> Result<(), TestCaseError> {
    let mut fake = build(nodes, jobs);
    fake.running_max = limit;
    plan_all(&mut fake);
    let running: Vec<JobId> = fake.allocations.keys().copied().collect();
    for (job, _) in running.iter().zip(lends).filter(|(_, lends)| **lends) {
        fake.parse(&format!("lend j{}", job.0));
    }
    plan_all(&mut fake);
    let waiting: Vec<_> = fake.jobs.values().filter(|job| job.status == JobStatus::Pending).cloned().collect();
    for job in waiting {
        let found = counterfactuals(&fake, &job, &|job| job.id.0);
        prop_assert!(!found.is_empty(), "nothing starts j{}: {}", job.id.0, explain(&fake, &job));
        for counterfactual in found {
            let mut changed = fake.clone();
            make(&mut changed, job.id, &counterfactual.changes);
            plan_all(&mut changed);
            let status = changed.jobs.get(&job.id).map(|job| job.status);
            prop_assert_eq!(status, Some(JobStatus::Running), "j{}: {}", job.id.0, counterfactual);
        }
    }
    Ok(())
}

/// A warm node comes in its turn, also if it is the one that would have more room.
#[test]
fn a_node_with_more_room_keeps_its_turn_among_warm_ones() {
    let texts = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>();
    let nodes = texts(&[
        "places=1 llm=1 cores=2 mem=22",
        "places=0 llm=0 cores=3 mem=7 warm=d1*2",
        "places=1 llm=1 cores=3 mem=15 warm=d1*2",
    ]);
    let jobs = texts(&[
        "cores=3 mem=7 prio=-1 digest=d2 llm agent=probed failures=3",
        "cores=0 mem=2 prio=0 digest=d1 llm agent=probed failures=3",
        "cores=2 mem=13 prio=1 digest=d3 agent=probed failures=3",
        "cores=0 mem=6 prio=2 digest=d2 ns=x depth=1",
        "cores=3 mem=0 prio=1 digest=d2 llm agent=shaky failures=3 ns=x",
        "cores=0 mem=9 prio=-1 digest=d3 llm agent=probed failures=3 ns=y",
    ]);
    counterfactuals_start(&nodes, &jobs, &[], None).expect("what is said to start a job starts it");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 192, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_counterfactual_starts_its_job(
        nodes in nodes(), jobs in more_jobs(), lends in prop::collection::vec(any::<bool>(), 24),
        limit in prop::option::weighted(0.3, 0..6u32),
    ) {
        counterfactuals_start(&nodes, &jobs, &lends, limit)?;
    }
}
