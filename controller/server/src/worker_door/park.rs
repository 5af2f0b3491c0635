//! Attempts that ask for their jobs to be parked.

use atlas_service::{Error, Service};
use atlas_types::{FencingToken, JobId, NodeId, Park, ParkJob, ParkResult};
use atlas_wire::session::ToWorker;

use super::hub::Connection;
use super::mail;

/// One request.
pub(super) struct Asked {
    number: u64,
    job: JobId,
    token: FencingToken,
    read: u64,
    result: Result<ParkResult, Error>,
}

/// Has a job parked.
pub(super) async fn run(
    service: Service,
    node: NodeId,
    (number, job, token): (u64, JobId, FencingToken),
    park: Park,
) -> Asked {
    let Park { journal_length, waits, used, read } = park;
    let result = service.park(ParkJob { job, node, token, journal_length, waits, used, read }).await;
    Asked { number, job, token, read, result }
}

/// Sends the answer. The messages that a job waits for come before the answer that a wait is over.
pub(super) fn answer(service: &Service, connection: &Connection, asked: Asked) -> Result<(), Error> {
    let Asked { number, job, token, read, result } = asked;
    let result = result?;
    if result == ParkResult::Ready {
        let state = service.handle().applied();
        mail::send(connection, job, token, mail::mail(&state, job, read));
    }
    connection.out.send(ToWorker::ParkAck { number, result });
    Ok(())
}
