//! The leader's side: handles client requests that another member forwards.
//!
//! Requests go to this member's own leader loop and are never forwarded again. Otherwise two members that consider each
//! other the leader could forward a request in circles.

use atlas_wire::proto::peer::v1::{
    ForwardResult, ProposeRequest, ProposeResponse, ReadIndexRequest, ReadIndexResponse,
};
use tonic::Status;

use crate::door::{PeerDoor, Sender, refused};
use crate::error::{ProposeError, ReadError};

/// The most requests in one forwarded proposal.
const REQUESTS_MAX: usize = 16_384;

/// Answers `PeerService.Propose`.
pub(crate) async fn propose(
    door: &PeerDoor,
    sender: Option<Sender>,
    request: ProposeRequest,
) -> Result<ProposeResponse, Status> {
    door.is_for_cluster(sender, &request.cluster_id)?;
    let requests = atlas_format::decode_requests(&request.requests, REQUESTS_MAX).map_err(refused)?;
    let ended = |result: ForwardResult| ProposeResponse { result: result.into(), ..ProposeResponse::default() };
    Ok(match door.local.propose(requests).await {
        Ok(answers) => {
            door.hurry.tell(request.from);
            ProposeResponse {
                answers: atlas_format::encode_outcomes(&answers).into(),
                seq: door.applied.borrow().seq().0,
                ..ended(ForwardResult::Done)
            }
        }
        // A member that has stopped did not accept the proposal either.
        Err(ProposeError::NotLeader { .. } | ProposeError::Stopped { .. }) => ended(ForwardResult::NotLeader),
        Err(ProposeError::Unknown) => ended(ForwardResult::Unknown),
        Err(ProposeError::Overloaded) => ended(ForwardResult::Overloaded),
        Err(ProposeError::NoSpace) => ended(ForwardResult::NoSpace),
    })
}

/// Answers `PeerService.ReadIndex`.
pub(crate) async fn read_index(
    door: &PeerDoor,
    sender: Option<Sender>,
    request: ReadIndexRequest,
) -> Result<ReadIndexResponse, Status> {
    door.is_for_cluster(sender, &request.cluster_id)?;
    let ended = |result: ForwardResult, seq| ReadIndexResponse { result: result.into(), seq };
    Ok(match door.local.read().await {
        Ok(state) => {
            door.hurry.tell(request.from);
            ended(ForwardResult::Done, state.seq().0)
        }
        Err(ReadError::Overloaded) => ended(ForwardResult::Overloaded, 0),
        Err(ReadError::NotLeader { .. } | ReadError::NoSession | ReadError::Stopped { .. }) => {
            ended(ForwardResult::NotLeader, 0)
        }
    })
}
