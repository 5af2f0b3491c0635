//! A cluster whose majority is lost: which controllers answer, which do not, and what to start.

use atlas_api::types::ClusterView;

use crate::answers;
use crate::context::Context;
use crate::display::ClusterDisplay as _;
use crate::failure::Failure;

/// The code of a cluster without a leader.
const NO_LEADER: &str = "E4001";

/// Adds to an error that there is no leader: which controllers answer. An election, which ends by itself, is left as it is.
pub(crate) async fn explain(context: &Context, failure: Failure) -> Failure {
    if failure.code.as_deref() != Some(NO_LEADER) {
        return failure;
    }
    let cluster = async { answers::read::<ClusterView>(&context.any_client()?.get(&["api", "cluster"], &[]).await?) };
    match cluster.await {
        Ok(cluster) if !cluster.has_majority() => lost(&cluster, failure),
        _ => failure,
    }
}

/// The failure with who answers and what to start.
fn lost(cluster: &ClusterView, failure: Failure) -> Failure {
    let (here, away) = cluster.voters_by_answer();
    let first = here.first().copied().unwrap_or_default();
    let start = away.first().copied().unwrap_or_default();
    let needed = cluster.quorum.voters / 2 + 1;
    let message = format!(
        "no majority of the controllers: {} of {} must answer; {} does, not {}",
        needed,
        cluster.quorum.voters,
        words(&here, "and"),
        words(&away, "and"),
    );
    let start = match cluster.mode.as_str() {
        "dev" => format!("start one: atlasctl dev start {start}"),
        _ => format!("start atlas-controller again on {}", words(&away, "or")),
    };
    let next = format!("{start}   or read what {first} knows: add --stale");
    Failure { message, retry_after: None, ..failure }.with_next(next)
}

/// `c1, c2 and c3`
fn words(names: &[&str], last: &str) -> String {
    match names {
        [] => "none".to_owned(),
        [only] => (*only).to_owned(),
        [first @ .., end] => format!("{} {last} {end}", first.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use expect_test::expect;
    use serde_json::json;

    use super::*;
    use crate::exit::Exit;

    #[test]
    fn who_answers_and_what_to_start_is_told() {
        let member = |name: &str, here: bool| json!({"name": name, "role": "follower", "reachable": here});
        let told = |mode: &str, here: [bool; 3]| {
            let members = [("c1", here[0]), ("c2", here[1]), ("c3", here[2])].map(|(name, here)| member(name, here));
            let reachable = here.iter().filter(|here| **here).count();
            let cluster = json!({"mode": mode, "quorum": {"voters": 3, "reachable": reachable}, "members": members});
            let cluster: ClusterView = answers::read(&cluster).expect("readable");
            let failure = Failure::new(NO_LEADER, Exit::Unreachable, "the cluster has no leader at the moment");
            assert!(!cluster.has_majority());
            format!("{}\n", lost(&cluster, failure))
        };
        expect![[r#"
            error[E4001]: no majority of the controllers: 2 of 3 must answer; c1 does, not c2 and c3
            start one: atlasctl dev start c2   or read what c1 knows: add --stale
            error[E4001]: no majority of the controllers: 2 of 3 must answer; c2 does, not c1 and c3
            start atlas-controller again on c1 or c3   or read what c2 knows: add --stale
        "#]]
        .assert_eq(&(told("dev", [true, false, false]) + &told("prod", [false, true, false])));
    }

    #[test]
    fn an_election_is_no_loss() {
        let cluster = |reachable: u64| ClusterView {
            quorum: atlas_api::types::Quorum { voters: 3, reachable },
            ..ClusterView::default()
        };
        assert!(cluster(2).has_majority() && !cluster(1).has_majority());
        // An older controller does not say.
        assert!(ClusterView::default().has_majority());
    }
}
