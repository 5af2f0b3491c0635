//! The connection of clients to a member: one connection per question. Only the question's number crosses the simulated
//! network. Question and answer are in a table, so that nothing needs to be encoded and messages can still be lost,
//! delayed or cut.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use atlas_env::Env;
use atlas_raft::{Handle, ProposeError, ReadError};
use atlas_state::State;
use atlas_types::{Command, Event, EventRecord, Job, JobId, Outcome, Rejection, Request, Seq};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::Bug;
use crate::cluster::Cluster;

/// The port for clients.
pub(crate) const PORT: u16 = 7400;

/// How long a member waits until it has applied the entries that a client has seen.
const CATCH_UP_MAX: Duration = Duration::from_secs(2);
/// The interval at which a member with the bug checks the others.
const LOOK_EVERY: Duration = Duration::from_millis(5);

/// A question of a client.
#[derive(Debug, Clone)]
pub(crate) enum Ask {
    /// A change.
    Change(Box<Request>),
    /// A linearizable read of a job.
    Read(JobId),
    /// A job as this member has it, but from a state no older than the one that the client has seen.
    Stale(JobId, Seq),
    /// Waits for the end of a job, and reads the job as this member has it.
    Wait(JobId),
}

/// The answer to a question.
#[derive(Debug, Clone)]
pub(crate) enum Answer {
    /// The result of the change.
    Outcome(Result<Outcome, Rejection>),
    /// The job in the state with this many entries.
    Job {
        job: Option<Arc<Job>>,
        seq: Seq,
    },
    /// Nothing was written.
    NotLeader,
    Unknown,
}

/// Serves clients at a member until the member ends.
pub(crate) async fn serve(cluster: Cluster, handle: Handle, env: Env) -> io::Result<()> {
    let any = (std::net::Ipv4Addr::UNSPECIFIED, PORT).into();
    let listener = env.net.listen(any).await?;
    loop {
        let mut connection = listener.accept().await?;
        let (cluster, handle, theirs) = (cluster.clone(), handle.clone(), env.clone());
        env.spawn("client", async move {
            let Ok(number) = connection.read_u64().await else { return };
            let Some(ask) = cluster.question(number) else { return };
            let answer = answer(&cluster, &handle, &theirs, ask).await;
            cluster.put_answer(number, answer);
            // A client that disconnected needs no answer.
            let _ = connection.write_u64(number).await;
            let _ = connection.shutdown().await;
        });
    }
}

async fn answer(cluster: &Cluster, handle: &Handle, env: &Env, ask: Ask) -> Answer {
    match mistaken(cluster, handle, ask) {
        Ask::Change(request) => {
            if let Some(answer) = hasty(cluster, &request) {
                let handle = handle.clone();
                env.spawn("hasty", async move { drop(handle.propose(vec![*request]).await) });
                return answer;
            }
            match handle.propose(vec![*request]).await {
                Ok(answers) => answers.into_iter().next().map_or(Answer::Unknown, Answer::Outcome),
                Err(ProposeError::NotLeader { .. } | ProposeError::Overloaded) => Answer::NotLeader,
                Err(_) => Answer::Unknown,
            }
        }
        Ask::Read(job) => match handle.read().await {
            Ok(state) => Answer::Job { job: state.job(job).cloned(), seq: state.seq() },
            Err(ReadError::NotLeader { .. } | ReadError::Overloaded) => Answer::NotLeader,
            Err(_) => Answer::Unknown,
        },
        Ask::Stale(job, seen) => {
            if !handle.wait_applied(seen, CATCH_UP_MAX).await {
                return Answer::NotLeader;
            }
            let state = handle.applied();
            Answer::Job { job: state.job(job).cloned(), seq: state.seq() }
        }
        Ask::Wait(job) => {
            if !ended(cluster, handle, env, job).await {
                return Answer::NotLeader;
            }
            let state = handle.applied();
            Answer::Job { job: state.job(job).cloned(), seq: state.seq() }
        }
    }
}

/// Waits until a member reports the end of a job. False if it does not within the time limit.
async fn ended(cluster: &Cluster, handle: &Handle, env: &Env, id: JobId) -> bool {
    let mut batches = handle.subscribe();
    if is_over(&handle.applied(), id) {
        return true;
    }
    let ends = |event: &EventRecord| matches!(&event.event, Event::Job { job, .. } if job.id == id && job.status.is_terminal());
    let told = async {
        if cluster.has(Bug::WaitEndsElsewhere) {
            while !cluster.any_state(|state| is_over(state, id)) {
                env.clock.sleep(LOOK_EVERY).await;
            }
            return true;
        }
        while let Ok(batch) = batches.recv().await {
            if batch.events.iter().any(ends) {
                return true;
            }
        }
        false
    };
    tokio::time::timeout(CATCH_UP_MAX, told).await.unwrap_or(false)
}

/// True if a job has ended in a state.
fn is_over(state: &State, id: JobId) -> bool {
    state.job(id).is_some_and(|job| job.status.is_terminal())
}

/// Changes a question according to the active bug.
fn mistaken(cluster: &Cluster, handle: &Handle, ask: Ask) -> Ask {
    match ask {
        Ask::Read(job) if cluster.has(Bug::StaleRead) => Ask::Stale(job, handle.applied().seq()),
        Ask::Stale(job, _) if cluster.has(Bug::BackwardsRead) => Ask::Stale(job, Seq(0)),
        Ask::Change(mut request) if cluster.has(Bug::NoDedupe) => {
            request.origin.request_id = None;
            if let Command::SubmitJob(command) = &mut request.command {
                command.id = JobId(cluster.draw());
            }
            Ask::Change(request)
        }
        ask => ask,
    }
}

/// The answer of a member with the bug of not waiting for the commit.
fn hasty(cluster: &Cluster, request: &Request) -> Option<Answer> {
    match &request.command {
        Command::SubmitJob(command) if cluster.has(Bug::AckBeforeCommit) => {
            Some(Answer::Outcome(Ok(Outcome::Submitted { job: command.id, repeated: false })))
        }
        Command::CancelJob(_) if cluster.has(Bug::CancelAlwaysAccepted) => {
            Some(Answer::Outcome(Ok(Outcome::Cancelled { accepted: true })))
        }
        _ => None,
    }
}

/// Asks a member. None if no answer came in time.
pub(crate) async fn ask(cluster: &Cluster, env: &Env, member: usize, ask: Ask, patience: Duration) -> Option<Answer> {
    let number = cluster.put_question(ask);
    let asked = async {
        let mut connection = env.net.connect(&format!("c{}:{PORT}", member + 1)).await.ok()?;
        connection.write_u64(number).await.ok()?;
        connection.flush().await.ok()?;
        (connection.read_u64().await.ok()? == number).then_some(())
    };
    let came = tokio::time::timeout(patience, asked).await.ok().flatten();
    let answer = cluster.take_answer(number);
    came.and(answer)
}
