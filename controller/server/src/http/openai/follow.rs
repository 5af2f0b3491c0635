//! A job whose answer is waited for: its end, and the pieces of its answer meanwhile. Nothing is kept for a client that does not read: pieces that it
//! misses are in the finished answer.

use std::collections::VecDeque;
use std::pin::Pin;
use std::time::Duration;

use atlas_env::Env;
use atlas_model::Delta;
use atlas_model::live::{LiveReader, mark_of};
use atlas_service::{Caller, Error, LogOutput, LogReader, Piece, Service, Shown, SubmittedJob, View};
use atlas_types::JobId;
use serde::Deserialize;
use tokio::sync::watch;

use super::begin::Live;
use crate::http::HttpDoor;

/// After how long a silence a client is told that the stream is open.
pub(super) const KEEP_ALIVE: Duration = Duration::from_secs(15);
/// How long one look at a job waits for its end.
const LOOK: Duration = Duration::from_secs(600);

/// How often a job is looked for while that fails, and the pause before each time.
const TRIES_MAX: u32 = 20;
const PAUSE: Duration = Duration::from_millis(500);

/// What is heard of a job.
pub(super) enum Heard {
    /// A piece of its answer.
    Delta(Delta),
    /// The answer begins again: those pieces are void.
    Again,
    /// Pieces were missed.
    Missed,
    /// Nothing, for a while.
    Silence,
    /// The job has ended, with its retries.
    Ended(Box<Shown>),
    /// The wait failed; the job goes on.
    Lost(Error),
    /// The controller stops; the job goes on.
    Stopped,
}

type Waiting = Pin<Box<dyn Future<Output = Result<Shown, Error>> + Send>>;

/// A job that is followed.
pub(super) struct Following {
    env: Env,
    stop: watch::Receiver<bool>,
    reader: Option<LogReader>,
    waiting: Waiting,
    pieces: Pieces,
    heard: VecDeque<Heard>,
}

impl Following {
    /// Follows a job. Without pieces, only its end is heard.
    pub(super) async fn of(door: &HttpDoor, caller: &Caller, job: SubmittedJob, live: Live) -> Result<Self, Error> {
        let id = job.id;
        let reader = match live {
            Live::Nothing => None,
            Live::Call | Live::Text => Some(door.service.follow_logs(caller, id, None, true).await?),
        };
        let waiting = Box::pin(ended(door.service.clone(), caller.clone(), door.env.clone(), job));
        let (env, stop) = (door.env.clone(), door.stop.clone());
        Ok(Self { env, stop, reader, waiting, pieces: Pieces::new(live), heard: VecDeque::new() })
    }

    /// The next that is heard. Nothing comes after the end.
    pub(super) async fn next(&mut self) -> Heard {
        loop {
            if let Some(heard) = self.heard.pop_front() {
                return heard;
            }
            let pieces = tokio::select! {
                biased;
                pieces = next_pieces(&mut self.reader) => pieces,
                ended = &mut self.waiting => return match ended {
                    Ok(shown) => Heard::Ended(Box::new(shown)),
                    Err(error) => Heard::Lost(error),
                },
                () = async { drop(self.stop.wait_for(|stop| *stop).await) } => return Heard::Stopped,
                () = self.env.clock.sleep(KEEP_ALIVE) => return Heard::Silence,
            };
            for piece in pieces {
                self.pieces.read(&piece, &mut self.heard);
            }
        }
    }
}

/// Waits until a job and its retries have ended. While the cluster has no leader, the job goes on, and so does the wait.
async fn ended(service: Service, caller: Caller, env: Env, job: SubmittedJob) -> Result<Shown, Error> {
    let id = job.id;
    let mut looked = service.wait_for_family(&caller, job, View::Full, LOOK).await;
    let mut tries = 0;
    loop {
        match looked {
            Ok(shown) if shown.job().status.is_terminal() => return Ok(shown),
            Ok(_) => tries = 0,
            Err(error) if error.is_transient() && tries < TRIES_MAX => {
                tries += 1;
                env.clock.sleep(PAUSE).await;
            }
            Err(error) => return Err(error),
        }
        looked = service.wait_family(&caller, id, View::Plain, LOOK).await;
    }
}

/// The next pieces; never, if there are none any more.
async fn next_pieces(reader: &mut Option<LogReader>) -> Vec<Piece> {
    while let Some(following) = reader {
        match following.next().await {
            Some(LogOutput::Pieces(pieces)) => return pieces,
            Some(LogOutput::Lines(_)) => {}
            None => *reader = None,
        }
    }
    std::future::pending().await
}

/// A piece as followers of logs get it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
struct Place {
    attempt: u32,
    step: u32,
    #[serde(rename = "try")]
    try_number: u32,
}

#[derive(Deserialize)]
struct Said {
    #[serde(flatten)]
    place: Place,
    #[serde(default)]
    text: String,
}

/// Reads pieces of the answer.
struct Pieces {
    live: Live,
    /// The answer that they are of: the attempt, the step, and how often its call was begun.
    answer: Option<(u32, u32, u32)>,
    reader: LiveReader,
    /// Whether a piece of this answer was missed.
    missed: bool,
}

impl Pieces {
    fn new(live: Live) -> Self {
        Self { live, answer: None, reader: LiveReader::default(), missed: false }
    }

    fn read(&mut self, piece: &Piece, heard: &mut VecDeque<Heard>) {
        let Ok(Said { place, text }) = serde_json::from_slice::<Said>(&piece.json) else { return };
        let Place { attempt, step, try_number } = place;
        // The parts of one call are numbered apart.
        let step = if self.live == Live::Call { 0 } else { step };
        let answer = (attempt, step, try_number);
        if self.answer != Some(answer) {
            if self.answer.is_some() {
                heard.push_back(Heard::Again);
            }
            (self.answer, self.reader, self.missed) = (Some(answer), LiveReader::default(), false);
        }
        if self.missed {
            return;
        }
        let deltas = match (piece.name, self.live) {
            ("delta", Live::Call) => self.reader.read(mark_of(place.step), &text).ok(),
            ("delta", _) => Some(vec![Delta::Text(text)]),
            ("gap", _) => None,
            _ => return,
        };
        match deltas {
            Some(deltas) => heard.extend(deltas.into_iter().map(Heard::Delta)),
            None => {
                self.missed = true;
                heard.push_back(Heard::Missed);
            }
        }
    }
}

/// Cancels a job when its client goes away.
pub(super) struct CancelGuard {
    service: Service,
    env: Env,
    caller: Caller,
    job: Option<JobId>,
}

impl CancelGuard {
    /// Watches over a job. A client with an idempotency key can come back for the answer, so that its job goes on.
    pub(super) fn of(door: &HttpDoor, caller: &Caller, job: JobId) -> Self {
        let job = Some(job).filter(|_| caller.request_id.is_none());
        Self { service: door.service.clone(), env: door.env.clone(), caller: caller.clone(), job }
    }

    /// One that cancels nothing.
    pub(super) fn none(door: &HttpDoor, caller: &Caller) -> Self {
        Self { service: door.service.clone(), env: door.env.clone(), caller: caller.clone(), job: None }
    }

    /// The client has what it asked for, or is told that the job goes on.
    pub(super) fn release(&mut self) {
        self.job = None;
    }
}

impl Drop for CancelGuard {
    fn drop(&mut self) {
        let Some(job) = self.job.take() else { return };
        let (service, caller) = (self.service.clone(), self.caller.clone());
        self.env.spawn("cancel-model-call", async move {
            if let Err(error) = service.cancel(&caller, job, true).await {
                tracing::debug!(%error, %job, "could not cancel a job whose client went away");
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn heard(live: Live, pieces: &[(&'static str, &str)]) -> Vec<String> {
        let (mut reader, mut heard) = (Pieces::new(live), VecDeque::new());
        for (name, json) in pieces {
            reader.read(&Piece { name, json: json.as_bytes().to_vec() }, &mut heard);
        }
        let shown = heard.into_iter().map(|heard| match heard {
            Heard::Delta(delta) => format!("{delta:?}"),
            Heard::Again => "again".to_owned(),
            Heard::Missed => "missed".to_owned(),
            _ => "other".to_owned(),
        });
        shown.collect()
    }

    #[test]
    fn another_try_begins_again_and_gaps_are_missed_once() {
        let pieces = [
            ("delta", r#"{"attempt":1,"step":1,"try":1,"offset":0,"text":"He"}"#),
            ("gap", r#"{"attempt":1,"step":1,"try":1,"from":2,"to":5}"#),
            ("delta", r#"{"attempt":1,"step":1,"try":1,"offset":5,"text":"o"}"#),
            ("reset", r#"{"attempt":1,"step":1,"try":2}"#),
            ("delta", r#"{"attempt":1,"step":1,"try":2,"offset":0,"text":"Hi"}"#),
            ("delta", "?"),
        ];
        let expected = [r#"Text("He")"#, "missed", "again", r#"Text("Hi")"#];
        assert_eq!(heard(Live::Call, &pieces), expected);
        assert_eq!(heard(Live::Text, &pieces), expected);
    }

    #[test]
    fn parts_of_a_call_are_one_answer() {
        let pieces = [
            ("delta", r#"{"attempt":1,"step":1,"try":1,"offset":0,"text":"a"}"#),
            ("delta", r#"{"attempt":1,"step":1049601,"try":1,"offset":0,"text":"{\"at\":1}\nb"}"#),
        ];
        assert_eq!(heard(Live::Call, &pieces), [r#"Text("a")"#, r#"Reasoning("b")"#]);
    }
}
