//! `POST /api/jobs:batch`: many jobs in one request, each with its own answer.

use std::fmt;

use atlas_api::types::{self, BatchResult, BatchResults, of};
use atlas_service::{Caller, Error, Submission, Submitted};
use bytes::Bytes;
use http::StatusCode;
use http::header::{HeaderValue, RETRY_AFTER};
use serde::de::{self, Deserialize, Deserializer, SeqAccess, Visitor};
use serde_json::value::RawValue;

use super::HttpDoor;
use super::answer::{self, Answer, Problem, Response, problem_document};
use super::jobs::read_submission;
use super::names::check_members;
use super::request::{Request, client_key};

/// The most jobs in one request.
const JOBS_MAX: usize = 1_000;
/// The size limit of the body, as a multiple of the limit for one job.
const BODIES_MAX: usize = 8;

/// Answers 201 if every job was accepted, otherwise 207. Both contain the result of each job.
pub(crate) async fn submit(door: &HttpDoor, caller: &Caller, request: &mut Request) -> Answer {
    let job_bytes_max = door.limits.body_bytes_max;
    let body = request.json_text(door, job_bytes_max.saturating_mul(BODIES_MAX)).await?;
    let Texts(texts) = read_texts(&body)?;
    let query = request.query();
    let refuse = query.get("validate").as_deref() == Some("refuse");
    let wait = query.seconds("queue_wait", door.limits.wait_max)?.unwrap_or_default();
    let read = texts.iter().enumerate().map(|(index, text)| {
        if text.len() > job_bytes_max {
            return Err(Error::TooLarge { what: "the job", limit: job_bytes_max as u64 }.into());
        }
        let mut submission = read_job(caller, index, &body.slice_ref(text.as_bytes()))?;
        submission.refuse = refuse;
        Ok(submission)
    });
    let mut submissions = Vec::with_capacity(texts.len());
    let wrong: Vec<Option<Problem>> = read.map(|read| read.map(|read| submissions.push(read)).err()).collect();
    // The idempotency key of the whole request is already part of each job's key.
    let caller = caller.clone().with_request_id(None);
    let submitted = door.service.submit_many(&caller, &submissions, wait).await;
    Ok(told(wrong, submitted))
}

/// The JSON texts of the jobs, at most [`JOBS_MAX`]. They have a visitor of their own: a list of many more would be held before it could be counted,
/// and the error tells the place where there is one too many.
struct Texts<'a>(Vec<&'a str>);

fn read_texts(body: &[u8]) -> Result<Texts<'_>, Problem> {
    #[derive(serde::Deserialize)]
    #[serde(expecting = "an object with `jobs`")]
    struct Members<'a> {
        #[serde(borrow)]
        jobs: Texts<'a>,
    }
    let members: Members<'_> = serde_json::from_slice(body).map_err(|error| Problem::malformed(error.to_string()))?;
    if members.jobs.0.is_empty() {
        return Err(Problem::malformed(format!("'jobs' has no element; 1 to {JOBS_MAX} are expected")));
    }
    Ok(members.jobs)
}

impl<'de: 'a, 'a> Deserialize<'de> for Texts<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Read;
        impl<'de> Visitor<'de> for Read {
            type Value = Texts<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "an array of 1 to {JOBS_MAX} jobs")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut jobs: A) -> Result<Self::Value, A::Error> {
                let mut texts = Vec::new();
                while let Some(job) = jobs.next_element::<&RawValue>()? {
                    if texts.len() == JOBS_MAX {
                        return Err(de::Error::invalid_length(JOBS_MAX + 1, &self));
                    }
                    texts.push(job.get());
                }
                Ok(Texts(texts))
            }
        }
        deserializer.deserialize_seq(Read)
    }
}

fn read_job(caller: &Caller, index: usize, text: &Bytes) -> Result<Submission, Problem> {
    #[derive(serde::Deserialize)]
    struct Key {
        idempotency_key: Option<String>,
    }
    check_members(of::<types::BatchJob>(), text)?;
    let (mut submission, _) = read_submission(text)?;
    let Key { idempotency_key } = serde_json::from_slice(text)
        .map_err(|_| Problem::malformed("'idempotency_key' must be a string and must not be repeated"))?;
    submission.request_id = match (idempotency_key, &caller.request_id) {
        (Some(key), _) => Some(client_key(&key)?),
        (None, Some(all)) => Some(client_key(&format!("{}.{index}", all.as_str()))?),
        (None, None) => None,
    };
    Ok(submission)
}

/// The answer: for each job in order its id, or the problem document that it would have received alone.
fn told(wrong: Vec<Option<Problem>>, submitted: Vec<Submitted>) -> Response {
    let mut submitted = submitted.into_iter();
    let (mut taken, mut retry_after_s) = (0_u64, None);
    let mut refused = |error: &Error| {
        retry_after_s = answer::retry_after_s(error).max(retry_after_s);
        BatchResult { id: None, error: Some(problem_document(error)) }
    };
    let count = wrong.len() as u64;
    let results = wrong.into_iter().map(|wrong| match wrong.map(Problem::into_error) {
        Some(error) => refused(&error),
        None => match submitted.next() {
            Some(Ok(id)) => {
                taken += 1;
                BatchResult { id: Some(id.to_string()), error: None }
            }
            Some(Err(error)) => refused(&error),
            None => refused(&Error::Internal),
        },
    });
    let results: Vec<BatchResult> = results.collect();
    let status = if taken == count { StatusCode::CREATED } else { StatusCode::MULTI_STATUS };
    let mut response = answer::body(status, &BatchResults { taken, results, retry_after_s });
    response.headers_mut().extend(retry_after_s.map(|after| (RETRY_AFTER, HeaderValue::from(after))));
    response
}
