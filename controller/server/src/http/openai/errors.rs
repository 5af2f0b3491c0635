//! Refusals and failures in OpenAI's form. What has an error code of ours keeps it in a header.

use atlas_api::status_of;
use atlas_model::CallErrorKind;
use atlas_openai::WireError;
use atlas_service::{Error, Shown};
use atlas_types::{FailureKind, JobId, JobStatus};
use axum::body::Body;
use http::StatusCode;
use http::header::{CONTENT_LENGTH, CONTENT_TYPE, HeaderValue};
use serde_json::Value;

use super::REQUEST_ID;
use crate::http::answer::{Problem, Response, json};

/// The answer to a refused request: the headers of all doors, and OpenAI's body.
pub(in crate::http) fn refused(problem: Problem) -> Response {
    let error = problem.into_error();
    let body = of_service(&error).body().to_string();
    let mut response = Problem::from(error).into_response(true);
    *response.body_mut() = Body::from(body);
    response.headers_mut().remove(CONTENT_LENGTH);
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

/// The answer to a request that was carried out without success.
pub(super) fn failed(error: &WireError, job: Option<JobId>) -> Response {
    let status = StatusCode::from_u16(error.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    with_job(json(status, &error.body()), job)
}

/// An answer that names the job behind it.
pub(super) fn with_job(mut response: Response, job: Option<JobId>) -> Response {
    if let Some(value) = job.and_then(|job| HeaderValue::from_str(&job.to_string()).ok()) {
        response.headers_mut().insert(REQUEST_ID, value);
    }
    response
}

/// What a request is refused with.
#[derive(Debug)]
pub(super) enum Refusal {
    /// A door or the gate refuses it.
    Problem(Problem),
    /// OpenAI's interface does, or a job has failed.
    Wire(WireError, Option<JobId>),
}

impl From<WireError> for Refusal {
    fn from(error: WireError) -> Self {
        Self::Wire(error, None)
    }
}

impl From<Problem> for Refusal {
    fn from(problem: Problem) -> Self {
        Self::Problem(problem)
    }
}

impl From<Error> for Refusal {
    fn from(error: Error) -> Self {
        Self::Problem(error.into())
    }
}

impl Refusal {
    /// As the answer of a handler.
    pub(super) fn answer(self) -> Result<Response, Problem> {
        match self {
            Self::Problem(problem) => Err(problem),
            Self::Wire(error, job) => Ok(failed(&error, job)),
        }
    }

    /// As an error within a stream that has begun.
    pub(super) fn wire(self) -> WireError {
        match self {
            Self::Problem(problem) => of_service(&problem.into_error()),
            Self::Wire(error, _) => error,
        }
    }
}

/// An error of the service. Its status is that of our own interface.
pub(super) fn of_service(error: &Error) -> WireError {
    let status = status_of(&error.entry());
    let mut text = error.to_string();
    for violation in error.violations() {
        text += &format!("; {}: {}", violation.pointer, violation.message);
    }
    let wire = match status.as_u16() {
        400 | 422 => WireError::invalid(text),
        401 => WireError::authentication(text),
        403 => WireError::permission(text),
        404 => WireError::not_found(text),
        409 => WireError::conflict(text),
        413 => WireError { message: text, ..WireError::too_large(0) },
        429 => WireError::rate_limited(text),
        405 => WireError::invalid(text).with_code("method_not_allowed"),
        502..=504 => WireError::unavailable(text),
        500 => WireError::internal(text),
        _ => WireError::invalid(text),
    };
    WireError { status: status.as_u16(), ..wire }
}

/// Why a job has no answer. `model` is the name in the request.
pub(super) fn of_job(shown: &Shown, model: &str) -> WireError {
    let job = shown.job();
    let failure = job.failure.as_ref();
    let why = failure.map(|failure| failure.error.to_string()).filter(|why| !why.is_empty());
    let why = why.unwrap_or_else(|| format!("{} is {}", job.id, job.status.as_str()));
    if job.status == JobStatus::Cancelled {
        return WireError::conflict(format!("{} was cancelled", job.id)).with_code("cancelled");
    }
    let metadata: Value = serde_json::from_slice(&job.metadata).unwrap_or_default();
    let kind = metadata["_error_kind"].as_str();
    if let Some(kind) = CallErrorKind::ALL.into_iter().find(|known| kind == Some(known.name())) {
        return WireError::of_call(kind, model, &why);
    }
    match (shown.error_code().as_deref(), failure.map(|failure| failure.kind)) {
        (Some("E3202"), _) => WireError::unavailable(why).with_code("model_unavailable"),
        (Some("E3203"), _) => WireError::quota(why),
        (Some("E3204"), _) => WireError::invalid(why),
        (Some("E3209"), _) => WireError::invalid(why).with_code("content_filter"),
        (_, Some(FailureKind::InputInvalid)) => WireError::invalid(why),
        (_, Some(FailureKind::Timeout | FailureKind::QueueTimeout)) => WireError::timeout(why),
        (_, Some(FailureKind::Rejected)) => WireError::permission(why),
        (_, Some(FailureKind::LeaseLost | FailureKind::Unsatisfiable)) => WireError::unavailable(why),
        (_, Some(FailureKind::Internal)) => WireError::internal(why),
        _ => WireError::provider(why),
    }
}

#[cfg(test)]
mod tests {
    use http_body_util::BodyExt as _;

    use super::*;

    async fn check(error: Error, status: u16, kind: &str) {
        let response = refused(error.into());
        assert_eq!(response.status().as_u16(), status);
        assert!(response.headers().contains_key("atlas-error-code"));
        let body = response.into_body().collect().await.expect("a body").to_bytes();
        let body: Value = serde_json::from_slice(&body).expect("JSON");
        assert_eq!(body["error"]["type"], kind, "{body}");
        assert!(body["error"]["message"].as_str().is_some_and(|text| !text.is_empty()), "{body}");
    }

    #[tokio::test]
    async fn refusals_of_the_gate_have_the_form_that_clients_read() {
        check(Error::Unauthenticated("no token"), 401, "authentication_error").await;
        check(Error::UnknownJob, 404, "invalid_request_error").await;
        check(Error::TooLarge { what: "the body", limit: 5 }, 413, "invalid_request_error").await;
        check(Error::NoLeader, 503, "server_error").await;
        check(Error::UnknownPath, 404, "invalid_request_error").await;
        check(Error::NoMethod("GET".to_owned()), 405, "invalid_request_error").await;
    }
}
