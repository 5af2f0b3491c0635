//! One request and its answer over HTTP.

use std::time::Duration;

use atlas_env::chain;
use atlas_http::{USER_AGENT, body, is_lasting, limited};
use atlas_model::{CallError, CallErrorKind, Request};
use bytes::Bytes;
use futures::FutureExt;
use http::{HeaderMap, StatusCode};
use http_body_util::{BodyExt, Full};
use hyper::body::{Body as _, Incoming};

use super::{Client, Http, address, astray, backoff};
use crate::bounds::{ANSWER_BYTES_MAX, ERROR_BODY_BYTES_MAX};
use crate::redact::Redactor;
use crate::{Decoder, EncodeError, Event, Parts, Secret, UnixSeconds, failure, patch};

/// Bytes that are read for one answer, framing and comments included: 500 for each token of the longest answers.
const WIRE_BYTES_MAX: u64 = 64 << 20;
/// Looks for the end of a body behind the answer.
const END_FRAMES_MAX: usize = 16;
/// Maximum time to get an access token.
const TOKEN_TIMEOUT: Duration = Duration::from_secs(30);

/// A try that failed.
#[derive(Debug)]
pub(super) struct Failed {
    pub(super) error: CallError,
    /// What the provider or the way of the connection's failure says about another try, which overrides the kind of the error.
    pub(super) retry: Option<bool>,
}

impl From<CallError> for Failed {
    fn from(error: CallError) -> Self {
        Self { error, retry: None }
    }
}

/// The request of one try.
pub(super) struct Prepared {
    parts: Parts,
    /// The token of the model's login.
    bearer: Option<Secret>,
}

impl Prepared {
    pub(super) fn dropped(&self) -> &[&'static str] {
        &self.parts.dropped
    }

    /// An error without the keys of the request.
    fn clean(&self, error: CallError) -> CallError {
        clean(&Redactor::of_headers(&self.parts.headers), error)
    }

    fn cleaned(&self, failed: Failed) -> Failed {
        Failed { error: self.clean(failed.error), ..failed }
    }
}

/// An error without keys in its message.
fn clean(redactor: &Redactor, mut error: CallError) -> CallError {
    error.message = redactor.redact(&error.message);
    error
}

/// Adds the token of the model's login, if it has one.
async fn log_in(http: &Http, mut parts: Parts) -> Result<Prepared, CallError> {
    let bearer = match &http.login {
        Some(login) => Some(login.token().await?),
        None => None,
    };
    if let Some(token) = &bearer {
        let refused = |error: EncodeError| CallError::new(CallErrorKind::Credentials, error.to_string());
        parts.bearer(token).map_err(refused)?;
    }
    Ok(Prepared { parts, bearer })
}

impl Client {
    /// Encodes, patches and signs a request.
    pub(super) async fn prepare(&self, http: &Http, request: &Request) -> Result<Prepared, Failed> {
        let refused = |problem: String| CallError::new(CallErrorKind::Request, problem);
        self.renew_token(http).await?;
        let mut parts = http.protocol.encode(&http.endpoint, request).map_err(|error| refused(error.to_string()))?;
        for patch in &http.patches {
            patch::apply(&mut parts, patch, &*http.protocol).map_err(|error| refused(error.to_string()))?;
        }
        let signed = http.protocol.sign(&mut parts, self.unix_seconds());
        signed.map_err(|error| clean(&Redactor::of_headers(&parts.headers), error))?;
        Ok(log_in(http, parts).await?)
    }

    /// Sends a request once, and gives the events of its answer to `sink`.
    pub(super) async fn exchange(
        &self,
        http: &Http,
        request: &Request,
        prepared: &Prepared,
        sink: &mut (dyn FnMut(Event) + Send),
    ) -> Result<(), Failed> {
        let (head, mut body) = self.send(http, &prepared.parts).await.map_err(|failed| prepared.cleaned(failed))?;
        if !head.status.is_success() {
            return Err(self.refusal(http, request, prepared, &head, &mut body).await);
        }
        let mut decoder = http.protocol.decoder(request, &head.headers);
        let read = self.read(&mut body, &mut *decoder, http.read_timeout, sink).await;
        let status = Some(head.status.as_u16());
        let known = |error: CallError| CallError { status: error.status.or(status), ..error };
        read.map_err(|error| {
            let error = known(error);
            match astray::answered(http, &prepared.parts, &head.headers, &error) {
                Some(error) => Failed { error: prepared.clean(error), retry: Some(false) },
                None => prepared.clean(error).into(),
            }
        })
    }

    /// Gets an access token, if the protocol needs one.
    async fn renew_token(&self, http: &Http) -> Result<(), Failed> {
        if http.protocol.token_request(self.unix_seconds())?.is_none() {
            return Ok(());
        }
        // Calls that wait find the token of the first one.
        let _turn = self.tokens.lock().await;
        let Some(parts) = http.protocol.token_request(self.unix_seconds())? else { return Ok(()) };
        let redactor = Redactor::of_headers(&parts.headers);
        let exchange = async {
            let (head, mut body) = self.send(http, &parts).await?;
            let body = self.beginning(&mut body, TOKEN_TIMEOUT, ERROR_BODY_BYTES_MAX).await;
            Ok(http.protocol.token_answer(head.status, &body, self.unix_seconds())?)
        };
        let timed_out = || Failed::from(CallError::new(CallErrorKind::Timeout, "no access token within 30 s"));
        limited(&*self.env.clock, TOKEN_TIMEOUT, exchange)
            .await
            .unwrap_or_else(|| Err(timed_out()))
            .map_err(|failed| Failed { error: clean(&redactor, failed.error), ..failed })
    }

    async fn send(&self, http: &Http, parts: &Parts) -> Result<(Head, Incoming), Failed> {
        let connection = |text: String, is_lasting: bool| Failed {
            error: CallError::new(CallErrorKind::Connection, text),
            retry: is_lasting.then_some(false),
        };
        let uri = address::check(&parts.url, http.plain)
            .map_err(|error| CallError::new(CallErrorKind::Request, error.to_string()))?;
        let authority = uri.authority().map(ToString::to_string).unwrap_or_default();
        let mut request = http::Request::new(Full::new(Bytes::copy_from_slice(&parts.body)));
        *request.method_mut() = parts.method.clone();
        *request.uri_mut() = uri;
        *request.headers_mut() = parts.headers.clone();
        request.headers_mut().entry(http::header::USER_AGENT).or_insert(USER_AGENT);
        let pool = self.pool(&http.proxy).map_err(|error| connection(chain(&*error), true))?;
        let response = pool.request(request).await;
        let response =
            response.map_err(|error| connection(format!("{authority}: {}", chain(&error)), is_lasting(&error)))?;
        let (head, body) = response.into_parts();
        Ok((Head { status: head.status, headers: head.headers }, body))
    }

    async fn refusal(
        &self,
        http: &Http,
        request: &Request,
        prepared: &Prepared,
        head: &Head,
        body: &mut Incoming,
    ) -> Failed {
        let body = self.beginning(body, http.read_timeout, ERROR_BODY_BYTES_MAX).await;
        let error = http.protocol.failure(head.status, &head.headers, &body);
        let astray = astray::refused(http, &prepared.parts, &request.model, &error);
        let is_astray = astray.is_some();
        let error = prepared.clean(astray.unwrap_or(error));
        let now = Duration::from_micros(u64::try_from(self.env.clock.wall().0).unwrap_or(0));
        let retry_after = backoff::asked(&head.headers, now).or(error.retry_after);
        let refused = prepared.bearer.as_ref().filter(|_| head.status == StatusCode::UNAUTHORIZED);
        if let (Some(login), Some(token)) = (&http.login, refused) {
            return Failed { error, retry: Some(login.refused(token)) };
        }
        let retry = match head.headers.get("x-should-retry").map(http::HeaderValue::as_bytes) {
            Some(b"true") => Some(true),
            Some(b"false") => Some(false),
            _ => is_astray.then_some(false),
        };
        Failed { error: CallError { retry_after, ..error }, retry }
    }

    /// Asks for what shows that a provider can be reached. None if its protocol has nothing.
    pub(super) async fn ask(&self, http: &Http, model: &str) -> Result<Option<()>, CallError> {
        let refused = |error: EncodeError| CallError::new(CallErrorKind::Request, error.to_string());
        self.renew_token(http).await.map_err(|failed| failed.error)?;
        let Some(mut parts) = http.protocol.probe(&http.endpoint, model).map_err(refused)? else { return Ok(None) };
        http.protocol.sign(&mut parts, self.unix_seconds())?;
        let prepared = log_in(http, parts).await?;
        let sent = self.send(http, &prepared.parts).await;
        let (head, mut body) = sent.map_err(|failed| prepared.clean(failed.error))?;
        let body = self.beginning(&mut body, super::PROBE_TIMEOUT, ANSWER_BYTES_MAX).await;
        if !head.status.is_success() {
            let head_of_body = &body[..body.len().min(ERROR_BODY_BYTES_MAX)];
            let error = http.protocol.failure(head.status, &head.headers, head_of_body);
            let astray = astray::refused(http, &prepared.parts, model, &error).map(|error| {
                let optional =
                    "; a server may also have no list of models, which is optional: then calls work all the same";
                CallError { message: error.message.clone() + optional, ..error }
            });
            return Err(prepared.clean(astray.unwrap_or(error)));
        }
        if !http.protocol.has_model(model, &body) {
            return Err(CallError::new(CallErrorKind::UnknownModel, format!("model '{model}' not found")));
        }
        Ok(Some(()))
    }

    /// The beginning of a body, as far as it arrives.
    async fn beginning(&self, body: &mut Incoming, timeout: Duration, bytes_max: usize) -> Vec<u8> {
        body::beginning(body, bytes_max, Some((&*self.env.clock, timeout))).await
    }

    async fn read(
        &self,
        body: &mut Incoming,
        decoder: &mut dyn Decoder,
        timeout: Duration,
        sink: &mut (dyn FnMut(Event) + Send),
    ) -> Result<(), CallError> {
        let mut wire = 0_u64;
        loop {
            let silent = || {
                let text = format!("nothing of the answer arrived for {} s", timeout.as_secs());
                CallError::new(CallErrorKind::Timeout, text)
            };
            let frame = limited(&*self.env.clock, timeout, body.frame()).await.ok_or_else(silent)?;
            let mut events = Vec::new();
            let result = match frame {
                None => decoder.end(&mut events),
                Some(Err(_)) => Err(failure::cut_off()),
                Some(Ok(frame)) => match frame.into_data() {
                    Ok(data) => {
                        wire = wire.saturating_add(data.len() as u64);
                        decoder.push(&data, &mut events)
                    }
                    Err(_trailers) => Ok(()),
                },
            };
            let answered = matches!(events.last(), Some(Event::Answer(_)));
            events.into_iter().for_each(&mut *sink);
            result?;
            if answered {
                finish(body).await;
                return Ok(());
            }
            if wire > WIRE_BYTES_MAX {
                return Err(failure::answer(format!("the stream is longer than {WIRE_BYTES_MAX} bytes")));
            }
        }
    }

    fn unix_seconds(&self) -> UnixSeconds {
        u64::try_from(self.env.clock.wall().0 / 1_000_000).unwrap_or(0)
    }
}

/// Reads the end of a body that has already arrived, so that the connection can be used again. It does not wait for more.
async fn finish(body: &mut Incoming) {
    if body.is_end_stream() {
        return;
    }
    for _ in 0..END_FRAMES_MAX {
        tokio::task::yield_now().await;
        if let Some(None | Some(Err(_))) = body.frame().now_or_never() {
            break;
        }
    }
}

struct Head {
    status: StatusCode,
    headers: HeaderMap,
}
