//! Calls to other members' `MemberService`.

use std::time::Duration;

use atlas_env::Env;
use atlas_raft::{Peer, peer_channel};
use atlas_service::Error;
use atlas_types::MemberId;
use atlas_wire::proto::peer::v1 as wire;
use atlas_wire::proto::peer::v1::member_service_client::MemberServiceClient;
use tonic::transport::Channel;
use tonic::{Code, Status};

use super::Change;

/// The time limit for a change at the leader.
const CHANGE_MAX: Duration = Duration::from_secs(15);
/// The time limit for a learner to report whether it is complete.
const READY_MAX: Duration = Duration::from_secs(2);

fn client(env: &Env, address: &str) -> Result<MemberServiceClient<Channel>, Status> {
    let channel = peer_channel(env, address).map_err(|error| Status::unavailable(error.to_string()))?;
    Ok(MemberServiceClient::new(channel))
}

async fn in_time<T>(
    env: &Env,
    limit: Duration,
    call: impl Future<Output = Result<tonic::Response<T>, Status>>,
) -> Result<T, Status> {
    tokio::select! {
        biased;
        answer = call => answer.map(tonic::Response::into_inner),
        () = env.clock.sleep(limit) => Err(Status::deadline_exceeded("no answer came in time")),
    }
}

/// Asks the leader to make a change.
pub(super) async fn change(
    env: &Env,
    cluster_id: u128,
    leader: &Peer,
    change: Change,
) -> Result<(MemberId, u64), Error> {
    let failed = |status: Status| error(&status);
    let cluster_id = cluster_id.to_be_bytes().to_vec().into();
    let mut client = client(env, &leader.address).map_err(failed)?;
    match change {
        Change::Remove(member) => {
            let request = wire::RemoveRequest { cluster_id, member_id: member.0 };
            in_time(env, CHANGE_MAX, client.remove(request)).await.map_err(failed)?;
            Ok((member, 0))
        }
        Change::HandOver(to) => {
            let request = wire::HandOverRequest { cluster_id, member_id: to.map_or(0, |to| to.0) };
            let answer = in_time(env, CHANGE_MAX, client.hand_over(request)).await.map_err(failed)?;
            Ok((MemberId(answer.member_id), answer.term))
        }
    }
}

/// Asks the member at an address to add a controller.
pub(crate) async fn join(env: &Env, address: &str, request: wire::JoinRequest) -> Result<wire::JoinResponse, Status> {
    let mut client = client(env, address)?;
    in_time(env, CHANGE_MAX, client.join(request)).await
}

/// True if a learner reports that it has all data that a voter needs. False if it does not answer.
pub(super) async fn is_ready(env: &Env, cluster_id: u128, learner: &Peer) -> bool {
    let request = wire::ReadyRequest { cluster_id: cluster_id.to_be_bytes().to_vec().into() };
    let Ok(mut client) = client(env, &learner.address) else { return false };
    let answer = in_time(env, READY_MAX, client.ready(request)).await;
    answer.is_ok_and(|answer| answer.history_complete && answer.artifacts_complete)
}

/// Converts an error of the leader for this member's callers.
fn error(status: &Status) -> Error {
    let answered = atlas_wire::Error::from(status);
    match status.code() {
        Code::DeadlineExceeded | Code::Cancelled => Error::OutcomeUnknown,
        // An answer without an error code did not come from a controller, so the leader was not reached.
        Code::Unavailable if answered.code.is_empty() => Error::NoLeader,
        _ if answered.code == Error::NoLeader.entry().code => Error::NoLeader,
        _ => Error::relayed(&answered.code, answered.message),
    }
}
