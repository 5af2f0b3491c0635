//! `atlasctl cluster status`.

use atlas_api::types::{ClusterView, Member};

use crate::answers;
use crate::context::Context;
use crate::display::ClusterDisplay as _;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::{Shown, Table};
use crate::words;

pub(crate) async fn run(context: &Context) -> Result<Exit, Failure> {
    let value = context.client()?.get(&["api", "cluster"], &[]).await?;
    let cluster: ClusterView = answers::read(&value)?;
    let names = cluster.members.iter().map(|member| format!("controller/{}", member.name)).collect();
    context.show(&Shown { value, text: text(&cluster), names })?;
    if cluster.quorum.reachable == cluster.quorum.voters {
        return Ok(Exit::Done);
    }
    if !cluster.has_majority() {
        let needed = cluster.quorum.voters / 2 + 1;
        context.note(&format!(
            "no majority: {needed} of {} controllers must answer; changes are refused until then",
            cluster.quorum.voters
        ));
    }
    let away = cluster.members.iter().filter(|member| !member.reachable);
    for member in away {
        context.note(&format!("{} does not answer at {}", member.name, member.peer));
    }
    Ok(Exit::Short)
}

fn text(cluster: &ClusterView) -> String {
    let name = match cluster.mode.as_str() {
        "dev" => "dev",
        _ => cluster.cluster_id.get(..8).unwrap_or_default(),
    };
    // The lag of the slowest reachable voter behind the commit index.
    let here = cluster.members.iter().filter(|member| member.role != "learner" && member.reachable);
    let applied = here.filter_map(|member| member.applied);
    let lag = applied.map(|applied| cluster.commit.saturating_sub(applied)).max();
    let mut text = format!(
        "CLUSTER {name}   quorum {}/{}   commit {}   apply lag {}   version {}\n\n",
        cluster.quorum.reachable,
        cluster.quorum.voters,
        cluster.commit,
        lag.map_or_else(|| "-".to_owned(), |lag| lag.to_string()),
        cluster.version,
    );
    let mut table = Table::new(&["CONTROLLER", "ROLE", "TERM", "APPLIED", "HEARTBEAT", "DISK FSYNC P99"]);
    for member in &cluster.members {
        table.row(row(member));
    }
    text += &table.text();
    text
}

fn row(member: &Member) -> [String; 6] {
    let number = |number: Option<u64>| number.map(|number| number.to_string()).unwrap_or_default();
    let heartbeat = if member.reachable || member.heartbeat_ms.is_none() { member.heartbeat_ms } else { None };
    [
        member.name.clone(),
        if member.reachable { member.role.clone() } else { format!("{}, unreachable", member.role) },
        member.term.map(|term| term.to_string()).unwrap_or_default(),
        number(member.applied),
        heartbeat.map(|ms| words::milliseconds(ms as f64)).unwrap_or_default(),
        member.fsync_p99_ms.map(words::fine_milliseconds).unwrap_or_default(),
    ]
}

#[cfg(test)]
mod tests {
    use expect_test::expect;
    use serde_json::json;

    use super::*;

    #[test]
    fn the_cluster_is_a_line_and_a_table() {
        let member = |name: &str, role: &str, heartbeat: Option<u64>, sync: f64| json!({"name": name, "role": role, "reachable": true, "term": 1, "applied": 1042, "heartbeat_ms": heartbeat, "fsync_p99_ms": sync});
        let away = json!({"name": "c4", "role": "learner", "reachable": false, "peer": "10.0.0.4:7402"});
        let cluster = json!({
            "cluster_id": "4f".repeat(16), "mode": "dev", "version": "0.1.0", "commit": 1042, "quorum": {"voters": 3, "reachable": 3},
            "members": [member("c1", "leader", None, 1.1), member("c2", "follower", Some(12), 1.3), member("c3", "follower", Some(11), 1.2), away],
        });
        expect![[r#"
            CLUSTER dev   quorum 3/3   commit 1042   apply lag 0   version 0.1.0

            CONTROLLER  ROLE                  TERM  APPLIED  HEARTBEAT  DISK FSYNC P99
            c1          leader                1     1042     -          1.1 ms
            c2          follower              1     1042     12 ms      1.3 ms
            c3          follower              1     1042     11 ms      1.2 ms
            c4          learner, unreachable  -     -        -          -
        "#]]
        .assert_eq(&text(&answers::read(&cluster).expect("readable")));
    }
}
