//! The index of timers equals one computed from all jobs, tokens and agents, after any sequence of commands.

use atlas_types::{ClusterTime, Namespace};
use proptest::prelude::*;
use proptest::test_runner::Config;

use super::model::{Step, start, steps};
use crate::{State, Timer, TimerKey, job_timer};

/// What may happen to a thing with a timer that is not a job.
fn statement() -> impl Strategy<Value = String> {
    let (token, agent) = (0..4_u8, 0..3_u8);
    prop_oneof![
        (token.clone(), 1..6_u8, 1..3_u8).prop_map(|(t, ttl, uses)| format!("token t{t} ttl={ttl} uses={uses}")),
        token.clone().prop_map(|t| format!("revoke t{t}")),
        token.prop_map(|t| format!("join t{t}")),
        agent.clone().prop_map(|a| format!("retire a{a}")),
        agent.prop_map(|a| format!("delete a{a}")),
        (1..4_u8).prop_map(|seconds| format!("clock +{seconds}")),
    ]
}

#[derive(Debug, Clone)]
enum Act {
    Step(Step),
    Say(String),
}

fn acts() -> impl Strategy<Value = Vec<Act>> {
    let steps = steps(1..2).prop_map(|mut steps| Act::Step(steps.remove(0)));
    proptest::collection::vec(prop_oneof![3 => steps, 2 => statement().prop_map(Act::Say)], 1..80)
}

proptest! {
    #![proptest_config(Config { cases: 128, failure_persistence: None, ..Config::default() })]

    #[test]
    fn timers_are_what_a_look_through_everything_gives(acts in acts()) {
        let mut run = start();
        run.prepare("level 5");
        for act in &acts {
            match act {
                Act::Step(step) => step.run(&mut run.state),
                Act::Say(statement) => drop(run.play(statement)),
            }
            let state = &run.state;
            let found: Vec<_> = state.due(ClusterTime(u64::MAX)).cloned().collect();
            prop_assert_eq!(found, looked_through(state), "after {:?}", act);
            let now: Vec<_> = state.due(state.clock()).cloned().collect();
            prop_assert!(now.iter().all(|timer| timer.due <= state.clock()));
            prop_assert!(state.kept_since(state.clock()).count() >= state.kept_since(ClusterTime(0)).count());
            prop_assert_eq!(&state.rebuilt_index().timers, &state.index.timers);
        }
    }
}

fn looked_through(state: &State) -> Vec<Timer> {
    let namespace = Namespace::default_namespace();
    let jobs = state.jobs(&namespace, None, None);
    let jobs = jobs.filter_map(|job| Some(Timer { due: job_timer(job)?.0, key: TimerKey::Job(job.id) }));
    let tokens = state.to_image().join_tokens.into_iter();
    let tokens = tokens.map(|token| Timer { due: token.expires, key: TimerKey::JoinToken(token.hash) });
    let mut all: Vec<_> = jobs.chain(tokens).collect();
    all.sort();
    all
}
