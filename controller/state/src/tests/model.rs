//! Property tests against a reference model that keeps plain lists and searches all of them.

mod naive;
mod steps;

use std::collections::BTreeMap;
use std::sync::Arc;

use atlas_types::{ClusterTime, Demand, JobId, JobStatus, Namespace, Place, Step as Recorded, Timestamp};
use proptest::prelude::*;
use proptest::test_runner::Config;

use super::script::{Run, apply};
use crate::{State, TimerKey};
use naive::Naive;
use steps::steps_of_strangers;
pub(super) use steps::{Step, steps};

proptest! {
    #![proptest_config(Config { cases: 256, failure_persistence: None, ..Config::default() })]

    #[test]
    fn the_state_does_what_the_model_does(steps in steps_of_strangers(1..90)) {
        let mut run = start();
        let mut model = Naive::new(&run.state);
        for step in &steps {
            if let Step::Pass(seconds) = step {
                run.play(&format!("clock +{seconds}"));
                model.clock = run.state.clock();
                continue;
            }
            let request = step.request(&run.state);
            model.at = Timestamp(run.state.at().0 + 1_000);
            let expected = model.apply(&request.command);
            let (outcome, _) = apply(&mut run.state, request);
            prop_assert_eq!(outcome.is_ok(), expected, "{:?}: {:?}", step, outcome);
            prop_assert_eq!(Naive::view(&run.state), model.jobs_view(), "after {:?}", step);
            prop_assert_eq!(journals(&run.state), model.journals(), "after {:?}", step);
            compare_indexes(&run.state, &model)?;
        }
    }

    #[test]
    fn a_state_comes_back_from_its_image_at_any_point(before in steps(0..40), after in steps(0..20)) {
        let mut original = start().state;
        before.iter().for_each(|step| step.run(&mut original));
        let image = original.to_image();
        let mut restored = State::from_image(image.clone()).expect("a state's own image");
        prop_assert_eq!(&restored.to_image(), &image);
        for step in &after {
            step.run(&mut original);
            step.run(&mut restored);
        }
        prop_assert_eq!(restored.to_image(), original.to_image(), "snapshot and rest differ from the whole log");
    }

    #[test]
    fn a_clone_stays_as_it_was(before in steps(0..30), after in steps(0..30)) {
        let mut state = start().state;
        before.iter().for_each(|step| step.run(&mut state));
        let (kept, image) = (state.clone(), state.to_image());
        after.iter().for_each(|step| step.run(&mut state));
        prop_assert_eq!(kept.to_image(), image);
        prop_assert_eq!(kept.check_invariants(), Ok(()));
    }

    #[test]
    fn whatever_is_ready_and_fits_is_granted(steps in steps(0..40)) {
        let mut run = start();
        steps.iter().for_each(|step| step.run(&mut run.state));
        let Some(job) = run.state.class_heads().map(|(_, job)| job.clone()).next() else { return Ok(()) };
        let demand = job.spec.as_ref().map(|spec| spec.demand.clone()).unwrap_or_default();
        let limits = run.state.limits_for(&job);
        let full = limits.iter().any(|limit| run.state.permits_one_more(limit, job.depth()).is_err());
        let Some(node) = run.state.nodes_with_room(&demand).next().cloned() else { return Ok(()) };
        let allocation = node.free.fit(&node.node.inventory, &demand, job.depth()).expect("it has room");
        let step = Step::GrantExactly { job: job.id, node: node.node.id.clone(), epoch: node.node.epoch, allocation };
        let request = step.request(&run.state);
        let (outcome, _) = apply(&mut run.state, request);
        prop_assert_eq!(outcome.is_ok(), !full);
    }
}

/// Agents of different sorts and two nodes.
pub(super) fn start() -> Run {
    let mut run = Run::new();
    run.prepare(
        "agent a0 spawns=true; agent a1 spawns=true cores=1 retries=1 digest=2; agent a2 effects=once digest=3 attempts=2 queue=2;
        agent a3 gpus=1 vram=30 memory=2 limit=2 spawns=true digest=4 retries=2 attempts=1;
        agent a4 labels=zone:b digest=5; agent a5 llm=true spawns=true digest=6;
        agent a6 carried=true spawns=true digest=7 retries=1 queue=3 limit=1; node n0 places=2 llm=1 cores=2;
        node n1 places=3 llm=2 gpus=80,40",
    );
    run
}

/// The inline steps of each journal and the number of the first.
fn journals(state: &State) -> BTreeMap<JobId, (u64, Vec<Arc<Recorded>>)> {
    let jobs = state.to_image().jobs.into_iter().map(|job| job.id);
    let journal = |id| state.journal(id).map(|journal| (id, (journal.first(), journal.steps.clone())));
    jobs.filter_map(journal).collect()
}

fn compare_indexes(state: &State, model: &Naive) -> Result<(), TestCaseError> {
    let mut waiting: Vec<_> = state.class_heads().flat_map(|(class, _)| state.waiting_in(class)).collect();
    waiting.sort_by_key(|job| (std::cmp::Reverse(job.priority), job.queue_seq));
    let waiting: Vec<_> = waiting.into_iter().map(|job| job.id).collect();
    prop_assert_eq!(&waiting, &model.waiting());
    prop_assert_eq!(state.class_heads().map(|(_, job)| job.id).next(), waiting.first().copied());
    for (class, head) in state.class_heads() {
        prop_assert_eq!(state.waiting_in(class).next().map(|job| job.id), Some(head.id));
    }
    let for_runs: Vec<_> = state.waiting_for_runs().map(|job| job.id).collect();
    prop_assert_eq!(for_runs, model.waiting_for_runs());
    for job in state.jobs(&Namespace::default_namespace(), None, None) {
        let by_its_run = job.carrier().and_then(|carried| state.carried_by(carried.run)).map(|job| job.id);
        prop_assert_eq!(by_its_run, job.carrier().map(|_| job.id));
    }
    let due: Vec<_> = state.due(state.clock()).map(|timer| timer.key.clone()).collect();
    let expected: Vec<_> = model.due(state.clock()).into_iter().map(TimerKey::Job).collect();
    prop_assert_eq!(due, expected);
    prop_assert_eq!(state.due(ClusterTime(u64::MAX)).next().map(|timer| timer.due), state.next_due());

    let namespace = Namespace::default_namespace();
    let listed: Vec<_> = state.jobs(&namespace, None, None).map(|job| job.id).collect();
    prop_assert_eq!(listed, model.newest(|_| true));
    for status in JobStatus::ALL {
        let listed: Vec<_> = state.jobs(&namespace, Some(status), None).map(|job| job.id).collect();
        prop_assert_eq!(listed, model.newest(|job| job.status == status));
    }
    let demands = [
        Demand::default(),
        Demand { cores: 2, ..Demand::default() },
        Demand { gpus: 1, ..Demand::default() },
        Demand { place: Place::Llm, ..Demand::default() },
        Demand { labels: [("zone".to_owned(), "b".to_owned())].into(), ..Demand::default() },
    ];
    for demand in demands {
        let found: Vec<_> = state.nodes_with_room(&demand).map(|node| node.node.id.clone()).collect();
        let mut all: Vec<_> = state.nodes().filter(|node| node.takes_leases() && node.has_room(&demand, 0)).collect();
        all.sort_by_key(|node| (node.free.places(demand.place).free, node.node.id.clone()));
        prop_assert_eq!(found, all.into_iter().map(|node| node.node.id.clone()).collect::<Vec<_>>());
    }
    let found: Vec<_> = state.nodes_lending().map(|node| node.node.id.clone()).collect();
    let all = state.nodes().filter(|node| node.takes_leases() && node.free.lends());
    prop_assert_eq!(found, all.map(|node| node.node.id.clone()).collect::<Vec<_>>());
    Ok(())
}
