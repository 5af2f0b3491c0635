use atlas_platform::Transition;
use atlas_types::Micros;

use super::*;

/// The measured durations of an agent, in seconds.
fn measured(agent: &AgentName, seconds: impl IntoIterator<Item = u64>) -> Stats {
    let stats = Stats::default();
    stats.count(seconds.into_iter().map(|seconds| Transition {
        agent,
        from: JobStatus::Running,
        to: JobStatus::Completed,
        warm: false,
        retry: false,
        execution: Micros::from_secs(seconds),
        at: Timestamp(1),
    }));
    stats
}

#[test]
fn the_time_left_comes_from_jobs_that_ran_longer() {
    let agent: AgentName = "render".parse().expect("a name");
    let stats = measured(&agent, 1..=10);
    let seconds = |seconds: i64| Timestamp(seconds * 1_000_000);
    let left = |elapsed| {
        let ends = Ends { stats: &stats, now: seconds(100), known: RefCell::default() };
        ends.left_after(&agent, elapsed).map(|left| left.map(|micros| micros / 1_000_000))
    };
    assert_eq!(left(0), Some([2, 6, 10]));
    assert_eq!(left(5_000_000), Some([1, 3, 5]), "only 6 to 10 are left");
    assert_eq!(left(10_000_000), None, "longer than all");
    let nothing = Stats::default();
    let ends = Ends { stats: &nothing, now: seconds(100), known: RefCell::default() };
    assert_eq!(ends.left_after(&agent, 0), None);
}
