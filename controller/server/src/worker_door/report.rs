//! From reports to requests, and from outcomes to acknowledgements.

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

/// What a worker asked for in one go: proposed together, answered one by one.
#[derive(Default)]
pub(super) struct Batch {
    requests: Vec<Request>,
    /// What each request answers; none for what the worker does not wait for.
    reports: Vec<Option<Reported>>,
    /// Requests whose stream is too large to be inline, with it.
    streams: Vec<(usize, Vec<u8>)>,
    /// Requests whose output and metadata have to be looked at.
    unchecked: Vec<usize>,
}

/// A report that waits for its outcome.
struct Reported {
    number: u64,
    job: JobId,
    token: FencingToken,
    started: bool,
    /// The last stream event that the report takes along.
    stream: Option<(Attempt, u64)>,
}

/// Why a batch was not answered. The worker sends it again on its next stream.
#[derive(Debug)]
pub(super) enum NotAnswered {
    /// The log did not accept it, or the outcome is unknown.
    Propose(ProposeError),
    /// The log lines of an attempt, or its result, could not be stored.
    Stream(atlas_service::Error),
    /// The process stops: a result could not be looked at.
    Stopping,
}

impl Batch {
    pub(super) fn is_empty(&self) -> bool {
        self.requests.is_empty()
    }

    /// Adds what the worker does not wait for.
    pub(super) fn command(&mut self, command: Command) {
        self.push(Namespace::default_namespace(), command, None);
    }

    /// Adds a report. One of a lease that the worker does not hold is fenced at once: what took the lease is committed.
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
            if lines.len() <= INLINE_BYTES_MAX {
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

    /// Proposes everything and returns the acknowledgements. Here or not at all: the next leader hears it again from the worker, and what
    /// carries no epoch, as the request to drain, must not fall on the worker's successor there.
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
                // Whatever came of it: sending it again would not change it.
                answers.push(&reported, outcome.map_or(ReportResult::Fenced, |_| ReportResult::Applied));
            }
        }
        count(&service, ReportResult::Applied, answers.applied);
        count(&service, ReportResult::Fenced, answers.fenced);
        Ok(answers.acks)
    }

    /// Puts streams that are too large to be inline where their reports can name them.
    async fn store_streams(&mut self, service: &Service) -> Result<(), NotAnswered> {
        for (index, lines) in std::mem::take(&mut self.streams) {
            let payload = service.payload(lines.into()).await.map_err(NotAnswered::Stream)?;
            let command = self.requests.get_mut(index).map(|request| &mut request.command);
            // A lost lease takes no lines along: the next attempt has its own.
            if let Some(Command::CompleteJob(CompleteJob { stream, .. }) | Command::FailJob(FailJob { stream, .. })) =
                command
            {
                *stream = Some(payload);
            }
        }
        Ok(())
    }

    /// A result that is not here, or that not every client can read, would spoil all lists that it is in: its job fails instead.
    ///
    /// It is not a reason to end the session, because the report would come again, and again.
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

/// What to answer; an error for a refusal that does not come from an outdated lease.
fn result(reported: &Reported, outcome: Result<Outcome, Rejection>) -> Result<ReportResult, Rejection> {
    match outcome {
        // Cancelled before it started: it ended, and must not run.
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
        // Whether it was cancelled the state knows.
        ReportKind::Failed { failure, output, usage, metadata, cancelled: _ } => {
            Command::FailJob(FailJob { job, node, token, failure, output, usage, metadata, stream })
        }
        ReportKind::NotHeld => Command::LoseLease(LoseLease { job, token }),
    }
}

/// Ends a job whose report cannot be recorded: otherwise it would hold its lease for ever.
fn unrecordable(node: &NodeId, reported: &Reported, reason: &str) -> Command {
    Command::FailJob(FailJob {
        job: reported.job,
        node: node.clone(),
        token: reported.token,
        failure: not_recorded(reason),
        output: None,
        usage: Usage::default(),
        metadata: None,
        // Without its lines: they may be what could not be recorded.
        stream: None,
    })
}

/// The same report without the result that cannot be kept. A job that failed anyway keeps its own error.
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

/// Which part of a result a text is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    Output,
    Metadata,
}

/// What clients get as parts of JSON documents.
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

/// Why a text cannot be handed out; none if it can. Large ones are read on the pool for blocking work.
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
            // Too few controllers answer today: the worker keeps the report and sends it again.
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
        Err(NotJson::Malformed) => Some(format!("the {name} is not JSON that every client can read")),
    })
}

/// Reads a result and makes sure that a majority has it: it may have been stored when another controller led.
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
