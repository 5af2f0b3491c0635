//! Log lines of running attempts, and pieces of models' answers, for the other members: served here, requested by [`follow`].

use std::pin::Pin;
use std::sync::Arc;

use atlas_raft::Sender;
use atlas_service::{ArrivingLines, AttemptOutput, Following, Line, LineCursor, LiveLines, PeerError, Pieces, Service};
use atlas_types::{Attempt, JobId, MemberId, StreamEvent};
use atlas_wire::convert::deltas_in;
use atlas_wire::limits::PEER_FRAME_BYTES_MAX;
use atlas_wire::proto::peer::v1::line_service_client::LineServiceClient;
use atlas_wire::proto::peer::v1::line_service_server::{LineService, LineServiceServer};
use atlas_wire::proto::peer::v1::{
    FindModelWaitRequest, FindModelWaitResponse, FollowLinesRequest, FollowLinesResponse,
};
use atlas_wire::proto::worker::v1::{Deltas, StreamEvents};
use bytes::Bytes;
use futures::{Stream, StreamExt, stream};
use tonic::transport::Channel;
use tonic::{Request, Response, Status};

use super::sender::Members;

/// The most lines in one frame. Lines of the largest size fit.
const LINES_MAX: usize = 64;

/// The service that answers the other members.
pub(super) fn service(service: Service, members: Members) -> LineServiceServer<LineDoor> {
    LineServiceServer::new(LineDoor(service, members)).max_encoding_message_size(PEER_FRAME_BYTES_MAX)
}

/// Answers the other members.
pub(super) struct LineDoor(Service, Members);

#[tonic::async_trait]
impl LineService for LineDoor {
    type FollowLinesStream = Pin<Box<dyn Stream<Item = Result<FollowLinesResponse, Status>> + Send>>;

    async fn follow_lines(
        &self,
        request: Request<FollowLinesRequest>,
    ) -> Result<Response<Self::FollowLinesStream>, Status> {
        let sender = request.extensions().get::<Sender>().copied();
        let FollowLinesRequest { cluster_id, job_id, attempt, after, once, pieces } = request.into_inner();
        self.1.same_cluster(sender, &cluster_id)?;
        let place = LineCursor { job: JobId(job_id), attempt: Attempt(attempt), after };
        let deposed = |error: atlas_service::LeadershipLost| Status::unavailable(error.to_string());
        if once {
            let lines = self.0.lines_now(place).map_err(deposed)?;
            return Ok(Response::new(Box::pin(stream::iter(frames(place.job, &lines)).map(Ok))));
        }
        let live = self.0.live_lines(place, pieces);
        let told = stream::unfold(Some(live), move |live: Option<LiveLines>| async move {
            let mut live = live?;
            match live.next().await {
                Ok(heard) => Some((Ok(heard_frames(place.job, heard?)), Some(live))),
                Err(error) => Some((Err(deposed(error)), None)),
            }
        });
        let told = told.flat_map(|some| match some {
            Ok(frames) => stream::iter(frames).map(Ok).left_stream(),
            Err(status) => stream::iter([Err(status)]).right_stream(),
        });
        Ok(Response::new(Box::pin(told)))
    }

    async fn find_model_wait(
        &self,
        request: Request<FindModelWaitRequest>,
    ) -> Result<Response<FindModelWaitResponse>, Status> {
        let sender = request.extensions().get::<Sender>().copied();
        let FindModelWaitRequest { cluster_id, job_id } = request.into_inner();
        self.1.same_cluster(sender, &cluster_id)?;
        let found = self.0.model_wait_here(JobId(job_id)).map_err(|error| Status::unavailable(error.to_string()))?;
        Ok(Response::new(FindModelWaitResponse { waits_for: found.unwrap_or_default() }))
    }
}

fn heard_frames(job: JobId, heard: AttemptOutput) -> Vec<FollowLinesResponse> {
    match heard {
        AttemptOutput::Lines(lines) => frames(job, &lines),
        AttemptOutput::Pieces(pieces) => {
            let Pieces { attempt, deltas } = &*pieces;
            let deltas = deltas.iter().map(|delta| delta.clone().into()).collect();
            let pieces = Deltas { job_id: job.0, attempt: attempt.0, deltas };
            vec![FollowLinesResponse { lines: None, pieces: Some(pieces) }]
        }
    }
}

/// Splits lines into frames of limited size, each with lines of one attempt.
fn frames(job: JobId, lines: &[Line]) -> Vec<FollowLinesResponse> {
    let alike = lines.chunk_by(|one, next| one.attempt == next.attempt);
    let frame = |lines: &[Line]| {
        let attempt = lines.first().map_or(0, |line| line.attempt.0);
        let events = lines.iter().map(|line| line.event.clone().into()).collect();
        FollowLinesResponse { lines: Some(StreamEvents { job_id: job.0, attempt, events }), pieces: None }
    };
    alike.flat_map(|lines| lines.chunks(LINES_MAX)).map(frame).collect()
}

/// Asks the leader which limit of a model a job's attempt waits for.
pub(crate) async fn model_wait(channel: Channel, cluster_id: Bytes, job: JobId) -> Result<Option<String>, Status> {
    let mut client = LineServiceClient::new(channel);
    let answer = client.find_model_wait(FindModelWaitRequest { cluster_id, job_id: job.0 }).await?.into_inner();
    Ok(Some(answer.waits_for).filter(|found| !found.is_empty()))
}

/// Follows the lines of a job at the leader.
pub(crate) async fn follow(
    channel: Channel,
    cluster_id: Bytes,
    member: MemberId,
    from: LineCursor,
    following: Following,
) -> Result<ArrivingLines, Status> {
    let LineCursor { job, attempt, after } = from;
    let (once, pieces) = (following == Following::Once, following == Following::Pieces);
    let request = FollowLinesRequest { cluster_id, job_id: job.0, attempt: attempt.0, after, once, pieces };
    let mut client = LineServiceClient::new(channel).max_decoding_message_size(PEER_FRAME_BYTES_MAX);
    let frames = client.follow_lines(request).await?.into_inner();
    let lines = move |frame: Result<FollowLinesResponse, Status>| {
        let away = |reason: String| PeerError::Away { member, reason };
        let frame = frame.map_err(|status| away(status.message().to_owned()))?;
        if let Some(Deltas { attempt, deltas, .. }) = frame.pieces {
            let deltas = deltas_in(deltas).map_err(|error| away(error.to_string()))?;
            return Ok(AttemptOutput::Pieces(Arc::new(Pieces { attempt: Attempt(attempt), deltas })));
        }
        let StreamEvents { attempt, events, .. } = frame.lines.unwrap_or_default();
        let line = |event| Ok(Line { attempt: Attempt(attempt), event: StreamEvent::try_from(event)? });
        let lines: Result<Vec<Line>, atlas_wire::ConvertError> = events.into_iter().map(line).collect();
        lines.map(AttemptOutput::Lines).map_err(|error| away(error.to_string()))
    };
    Ok(Box::pin(frames.map(lines)))
}
