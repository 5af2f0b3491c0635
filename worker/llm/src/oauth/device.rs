//! The login on another machine: the person types a code there, and this machine asks until it is done (RFC 8628).

use atlas_model::{CallError, CallErrorKind};
use http::StatusCode;

use super::Issuer;
use super::token::{Expiry, Tokens};
use crate::{EncodeError, Parts, Secret, UnixSeconds, failure, json, percent};

/// Seconds between two questions, where the issuer names none.
const INTERVAL_DEFAULT: u64 = 5;
/// Largest interval that is obeyed, and longest life of a code.
const INTERVAL_MAX: u64 = 60;
const LIFETIME_MAX: u64 = 3600;

/// A login that waits for the person.
#[derive(Debug)]
pub struct Device {
    code: Secret,
    /// What the person types.
    pub user_code: String,
    /// Where the person types it.
    pub verification_uri: String,
    /// Seconds before the next question.
    pub interval: u64,
    expires_at: UnixSeconds,
}

/// What an answer to a question says.
#[derive(Debug, PartialEq, Eq)]
pub enum Poll {
    /// Ask again after this many seconds.
    Wait(u64),
    Done(Tokens),
}

impl Device {
    /// The request that begins a login.
    pub fn request(issuer: &Issuer) -> Result<Parts, EncodeError> {
        let unsupported = || EncodeError::Unsupported { provider: "the issuer", feature: "logins of devices".into() };
        let url = issuer.device_url.clone().ok_or_else(unsupported)?;
        let scope = issuer.scopes.join(" ");
        let mut parts = Parts::form(url, percent::form(&[("client_id", issuer.client_id.as_str()), ("scope", &scope)]));
        issuer.headers.iter().try_for_each(|(name, value)| parts.header(name, value))?;
        Ok(parts)
    }

    /// Reads the answer to [`Device::request`].
    pub fn read(status: StatusCode, body: &[u8], now: UnixSeconds) -> Result<Self, CallError> {
        if !status.is_success() {
            return Err(failure::of_response(status, body));
        }
        let answer = json::parse(body)?;
        let text = |name: &str| {
            let missing = || failure::answer(format!("the answer of the issuer has no {name}"));
            json::text(&answer, &format!("/{name}")).map(str::to_owned).ok_or_else(missing)
        };
        let interval = match json::count(&answer, "/interval") {
            0 => INTERVAL_DEFAULT,
            seconds => seconds.min(INTERVAL_MAX),
        };
        Ok(Self {
            code: text("device_code")?.into(),
            user_code: text("user_code")?,
            verification_uri: text("verification_uri").or_else(|error| text("verification_url").map_err(|_| error))?,
            interval,
            expires_at: now.saturating_add(json::count(&answer, "/expires_in").min(LIFETIME_MAX)),
        })
    }

    /// The question whether the person is done.
    pub fn poll(&self, issuer: &Issuer) -> Result<Parts, EncodeError> {
        let grant = "urn:ietf:params:oauth:grant-type:device_code";
        issuer.token_parts(&[("grant_type", grant), ("device_code", self.code.expose())])
    }

    /// Reads the answer to [`Device::poll`].
    pub fn answer(
        &mut self,
        issuer: &Issuer,
        status: StatusCode,
        body: &[u8],
        now: UnixSeconds,
    ) -> Result<Poll, CallError> {
        let answer = json::parse(body).unwrap_or_default();
        let wait = match json::text(&answer, "/error") {
            Some("authorization_pending") => self.interval,
            Some("slow_down") => self.interval.saturating_add(INTERVAL_DEFAULT).min(INTERVAL_MAX),
            _ => {
                let secrets = issuer.secrets([&self.code]);
                return Tokens::read(status, body, now, Expiry::Optional, &secrets).map(Poll::Done);
            }
        };
        self.interval = wait;
        if now.saturating_add(wait) >= self.expires_at {
            return Err(CallError::new(CallErrorKind::Credentials, "the code has expired: begin the login again"));
        }
        Ok(Poll::Wait(wait))
    }
}
