//! Converts reports to requests, and outcomes to acknowledgements.

use std::sync::Arc;

use atlas_env::Env;
use atlas_raft::ProposeError;
use atlas_service::json::{self, NotJson};
use atlas_service::{ArtifactError, Service};
use atlas_telemetry::ByReportResult;
use atlas_types::{
    Attempt, Command, CompleteJob, Digest, Door, ErrorKind, FailJob, Failure, FailureKind, FencingToken,
    INLINE_BYTES_MAX, JobId, LoseLease, Namespace, NodeId, Origin, Outcome, Payload, PayloadBody, Principal, Rejection,
    Report, ReportKind, ReportResult, Request, StartJob, Usage,
};
use atlas_wire::session::ToWorker;
use bytes::Bytes;

use super::hub::{Connection, Leases};

/// Results up to this size are checked on the session's own thread.
const SMALL_BYTES_MAX: usize = 4 * 1024;

/// Reports and commands of a worker that arrived together. They are proposed together and answered one by one.
#[derive(Default)]
pub(super) struct Batch {
    requests: Vec<Request>,
    /// The report that each request answers. None if the worker does not wait for an answer.
    reports: Vec<Option<Reported>>,
    /// Requests whose log lines are too large to be inline, with the lines.
    streams: Vec<(usize, Vec<u8>)>,
    /// Requests whose output and metadata must be checked.
    unchecked: Vec<usize>,
}

/// A report that waits for its outcome.
struct Reported {
    number: u64,
    job: JobId,
    token: FencingToken,
    started: bool,
    /// The last log line that is stored with the report.
    stream: Option<(Attempt, u64)>,
}

/// Why a batch was not answered. The worker sends its reports again on its next stream.
#[derive(Debug)]
pub(super) enum NotAnswered {
    /// The log did not accept it, or the outcome is unknown.
    Propose(ProposeError),
    /// The log lines or the result of an attempt could not be stored.
    Stream(atlas_service::Error),
    /// The process is stopping, and a result could not be checked.
    Stopping,
}

impl Batch {
    pub(super) fn is_empty(&self) -> bool {
        self.requests.is_empty()
    }

    /// Adds a command for which the worker needs no answer.
    pub(super) fn command(&mut self, command: Command) {
        self.push(Namespace::default_namespace(), command, None);
    }

    /// Adds a report. If the worker no longer holds the lease, the report is fenced at once, because the loss of the
    /// lease is already committed.
    pub(super) fn report(
        &mut self,
        (service, connection, leases): (&Service, &Connection, &mut Leases),
        number: u64,
        report: Report,
    ) {
        let Report { job, token, kind } = report;
        let Some(held) = leases.held(job, token) else {
            connection.out.send(ToWorker::ReportAck { number, result: ReportResult::Fenced });
            count(service, ReportResult::Fenced, 1);
            return;
        };
        let started = kind == ReportKind::Started;
        held.reported |= !started;
        let said = if started { None } else { service.streams().collect(job, held.attempt) };
        let last = said.as_ref().map(|(_, last)| (held.attempt, *last));
        let stream = said.and_then(|(lines, _)| {
            let state = service.handle().applied();
            let stored = state.job(job).is_some_and(|job| job.stream.is_some());
            if lines.len() <= INLINE_BYTES_MAX && !stored {
                return Some(Payload::inline(&lines));
            }
            self.streams.push((self.requests.len(), lines));
            None
        });
        let command = command(&connection.node, job, token, kind, stream);
        if !result_texts(&command).is_empty() {
            self.unchecked.push(self.requests.len());
        }
        self.push(held.namespace.clone(), command, Some(Reported { number, job, token, started, stream: last }));
    }

    fn push(&mut self, namespace: Namespace, command: Command, reported: Option<Reported>) {
        let principal = Principal::cluster();
        let origin = Origin { namespace, principal, door: Door::Worker, request_id: None, body_hash: 0, trace: None };
        self.requests.push(Request { origin, command });
        self.reports.push(reported);
    }

    /// Proposes all requests and returns the acknowledgements. They are proposed at this leader only, because the
    /// worker sends its reports again to the next one. A command without an epoch, such as the request to drain, could
    /// otherwise affect a newer process of the node there.
    pub(super) async fn propose(
        mut self,
        service: Service,
        env: Env,
        node: NodeId,
    ) -> Result<Vec<ToWorker>, NotAnswered> {
        self.check_results(&service, &env).await?;
        self.store_streams(&service).await?;
        let namespaces: Vec<_> = self.requests.iter().map(|request| request.origin.namespace.clone()).collect();
        let outcomes = service.handle().propose_here(self.requests).await.map_err(NotAnswered::Propose)?;
        let mut answers = Answers::default();
        let mut unrecorded = Self::default();
        for ((reported, outcome), namespace) in self.reports.into_iter().zip(outcomes).zip(namespaces) {
            let Some(reported) = reported else { continue };
            match result(&reported, outcome) {
                Ok(result) => answers.push(&reported, result),
                Err(rejection) => {
                    tracing::error!(job = %reported.job, %rejection, "could not record a report");
                    let command = unrecordable(&node, &reported, &rejection.to_string());
                    unrecorded.push(namespace, command, Some(reported));
                }
            }
        }
        if !unrecorded.is_empty() {
            let outcomes = service.handle().propose_here(unrecorded.requests).await.map_err(NotAnswered::Propose)?;
            for (reported, outcome) in unrecorded.reports.into_iter().flatten().zip(outcomes) {
                // Any refusal is final, because sending the report again would not change it.
                answers.push(&reported, outcome.map_or(ReportResult::Fenced, |_| ReportResult::Applied));
            }
        }
        count(&service, ReportResult::Applied, answers.applied);
        count(&service, ReportResult::Fenced, answers.fenced);
        Ok(answers.acks)
    }

    /// Stores log lines that are too large to be inline as artifacts, so that the reports can refer to them.
    async fn store_streams(&mut self, service: &Service) -> Result<(), NotAnswered> {
        for (index, lines) in std::mem::take(&mut self.streams) {
            let state = service.handle().applied();
            let job = self.requests.get(index).and_then(|request| match &request.command {
                Command::CompleteJob(CompleteJob { job, .. }) | Command::FailJob(FailJob { job, .. }) => {
                    state.job(*job)
                }
                _ => None,
            });
            let lines = match job {
                Some(job) => service.whole_log(job, lines).await,
                None => lines,
            };
            let payload = service.payload(lines.into()).await.map_err(NotAnswered::Stream)?;
            let command = self.requests.get_mut(index).map(|request| &mut request.command);
            // Lines are not stored with a lost lease: the next attempt has its own.
            if let Some(Command::CompleteJob(CompleteJob { stream, .. }) | Command::FailJob(FailJob { stream, .. })) =
                command
            {
                *stream = Some(payload);
            }
        }
        Ok(())
    }

    /// Replaces invalid results: a result that is missing, or that some clients cannot parse, would break every list
    /// that contains it, so its job fails instead.
    ///
    /// The session does not end, because the worker would send the same report again and again.
    async fn check_results(&mut self, service: &Service, env: &Env) -> Result<(), NotAnswered> {
        for index in std::mem::take(&mut self.unchecked) {
            let Some(request) = self.requests.get_mut(index) else { continue };
            for (what, text) in result_texts(&request.command) {
                if let Some(fault) = fault(service, env, what, text).await? {
                    tracing::warn!(fault, "could not store a result");
                    request.command = without_result(&request.command, &fault);
                    break;
                }
            }
        }
        Ok(())
    }
}

/// Answers to a worker's reports.
#[derive(Default)]
struct Answers {
    acks: Vec<ToWorker>,
    applied: u64,
    fenced: u64,
}

impl Answers {
    fn push(&mut self, reported: &Reported, result: ReportResult) {
        let Reported { number, job, stream, .. } = *reported;
        self.acks.push(ToWorker::ReportAck { number, result });
        match result {
            ReportResult::Fenced => self.fenced += 1,
            ReportResult::Applied => {
                self.applied += 1;
                let stored = stream.map(|(attempt, number)| ToWorker::StreamAck { job, attempt, number });
                self.acks.extend(stored);
            }
        }
    }
}

/// The result for the worker. An error for a refusal that was not caused by an outdated lease.
fn result(reported: &Reported, outcome: Result<Outcome, Rejection>) -> Result<ReportResult, Rejection> {
    match outcome {
        // The job was cancelled before it started. It has ended and must not run.
        Ok(Outcome::Ended { .. }) if reported.started => Ok(ReportResult::Fenced),
        Ok(_) => Ok(ReportResult::Applied),
        Err(
            Rejection::Fenced
            | Rejection::UnknownJob { .. }
            | Rejection::WrongStatus { .. }
            | Rejection::UnknownNode { .. }
            | Rejection::NodeUnavailable,
        ) => Ok(ReportResult::Fenced),
        Err(rejection) => Err(rejection),
    }
}

fn command(node: &NodeId, job: JobId, token: FencingToken, kind: ReportKind, stream: Option<Payload>) -> Command {
    let node = node.clone();
    match kind {
        ReportKind::Started => Command::StartJob(StartJob { job, node, token }),
        ReportKind::Completed { output, usage, metadata } => {
            Command::CompleteJob(CompleteJob { job, node, token, output, usage, metadata, stream })
        }
        // The state knows whether the job was cancelled.
        ReportKind::Failed { failure, output, usage, metadata, cancelled: _ } => {
            Command::FailJob(FailJob { job, node, token, failure, output, usage, metadata, stream })
        }
        ReportKind::NotHeld => Command::LoseLease(LoseLease { job, token }),
    }
}

/// Ends a job whose report cannot be recorded. Otherwise the job would hold its lease for ever.
fn unrecordable(node: &NodeId, reported: &Reported, reason: &str) -> Command {
    Command::FailJob(FailJob {
        job: reported.job,
        node: node.clone(),
        token: reported.token,
        failure: not_recorded(reason),
        output: None,
        usage: Usage::default(),
        metadata: None,
        // The log lines are left out, because they may be the reason why the report could not be recorded.
        stream: None,
    })
}

/// The same report without the result that cannot be stored. A job that failed anyway keeps its own error.
fn without_result(command: &Command, reason: &str) -> Command {
    match command.clone() {
        Command::CompleteJob(CompleteJob { job, node, token, usage, stream, .. }) => {
            let failure = not_recorded(reason);
            Command::FailJob(FailJob { job, node, token, failure, output: None, usage, metadata: None, stream })
        }
        Command::FailJob(command) => Command::FailJob(FailJob { output: None, metadata: None, ..command }),
        command => command,
    }
}

fn not_recorded(reason: &str) -> Failure {
    let error = Arc::from(format!("could not record the result: {reason}"));
    Failure { kind: FailureKind::Internal, error }
}

/// The part of a result that a text belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    Output,
    Metadata,
}

/// The texts that clients receive as parts of JSON documents.
fn result_texts(command: &Command) -> Vec<(Part, PayloadBody)> {
    let (output, metadata) = match command {
        Command::CompleteJob(command) => (Some(&command.output), &command.metadata),
        Command::FailJob(command) => (command.output.as_ref(), &command.metadata),
        _ => return Vec::new(),
    };
    let output = output.map(|output| (Part::Output, output.body.clone()));
    let metadata = metadata.clone().map(|metadata| (Part::Metadata, PayloadBody::Inline(metadata)));
    output.into_iter().chain(metadata).collect()
}

/// Why a text cannot be sent to clients. None if it can. Large texts are read on a blocking thread.
async fn fault(service: &Service, env: &Env, part: Part, text: PayloadBody) -> Result<Option<String>, NotAnswered> {
    let name = match part {
        Part::Output => "output",
        Part::Metadata => "metadata",
    };
    let text = match text {
        PayloadBody::Inline(text) => Bytes::from_owner(text),
        PayloadBody::Artifact { digest, size_bytes } => match read(service, digest).await {
            Ok(text) if text.len() as u64 == size_bytes => text,
            Ok(_) => return Ok(Some(format!("the {name} does not have the announced size"))),
            Err(ArtifactError::Stopped) => return Err(NotAnswered::Stopping),
            // Too few controllers answer at the moment. The worker keeps the report and sends it again.
            Err(error) if error.kind() == ErrorKind::Unavailable => {
                return Err(NotAnswered::Stream(atlas_service::Error::Artifact(error)));
            }
            Err(error) => return Ok(Some(error.to_string())),
        },
    };
    if part == Part::Metadata && !text.trim_ascii_start().starts_with(b"{") {
        return Ok(Some(format!("the {name} is not a JSON object")));
    }
    let checked = if text.len() <= SMALL_BYTES_MAX {
        json::check(&text)
    } else {
        let task = env.spawn_blocking("check-result", move || json::check(&text));
        task.join().await.map_err(|_| NotAnswered::Stopping)?
    };
    Ok(match checked {
        Ok(()) => None,
        Err(NotJson::TooDeep) => Some(format!("the {name} is nested more than {} levels", json::DEPTH_MAX)),
        Err(NotJson::OutOfRange { place }) => {
            Some(format!("the number at {place:?} of the {name} is beyond the range of numbers"))
        }
        Err(NotJson::Malformed) => Some(format!("the {name} is not JSON that every client can read")),
    })
}

/// Reads a result and ensures that a majority has it, because it may have been stored while another controller led.
async fn read(service: &Service, digest: Digest) -> Result<Bytes, ArtifactError> {
    service.artifacts().pin(digest).await?;
    service.artifacts().read(digest).await
}

fn count(service: &Service, result: ReportResult, reports: u64) {
    if reports == 0 {
        return;
    }
    let atlas_report_result = match result {
        ReportResult::Applied => atlas_telemetry::ReportResult::applied,
        ReportResult::Fenced => atlas_telemetry::ReportResult::fenced,
    };
    service.metrics().reports.get_or_create(&ByReportResult { atlas_report_result }).inc_by(reports);
}
