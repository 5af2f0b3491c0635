//! The leader task for the group: complete learners become voters, and a change that another leader began is completed.

use std::time::Duration;

use atlas_raft::{ChangeError, Leadership, Role};

use super::{Cluster, remote};

/// The interval at which the leader checks its learners.
const LOOK_EVERY: Duration = Duration::from_millis(500);

/// Runs this task whenever this member leads, until it is aborted.
pub(crate) async fn run(cluster: Cluster) {
    let mut leadership = cluster.handle().leadership();
    while leadership.wait_for(|leadership| matches!(leadership, Leadership::Leader { .. })).await.is_ok() {
        if let Err(error) = look(&cluster).await {
            tracing::debug!(%error, "the membership change failed");
        }
        cluster.env.clock.sleep(LOOK_EVERY).await;
    }
}

async fn look(cluster: &Cluster) -> Result<(), ChangeError> {
    let handle = cluster.handle();
    let view = handle.members();
    if view.voters.len() > 1 {
        return handle.settle().await;
    }
    let mut complete = Vec::new();
    for learner in view.members.iter().filter(|member| member.role == Role::Learner) {
        let member = learner.peer.member;
        if handle.keeps_up(member) && remote::is_ready(&cluster.env, handle.cluster_id(), &learner.peer).await {
            complete.push(member);
        }
    }
    if complete.is_empty() {
        return Ok(());
    }
    // All complete learners are promoted at once. Two that join together then skip the state with two voters, in which
    // both are needed for a quorum.
    handle.promote(&complete).await?;
    tracing::info!(members = ?complete, "learners became voters");
    Ok(())
}
