//! The login on another machine: the person types a code there, and this machine asks until it is done (RFC 8628).

use atlas_model::{CallError, CallErrorKind};
use atlas_types::SecretText;
use serde_json::Value;

use crate::answer::{self, malformed};
use crate::{Expiry, Issuer, Request, Tokens, UnixSeconds};

/// Seconds between two questions, where the issuer names none.
const INTERVAL_DEFAULT: u64 = 5;
/// Largest interval that is obeyed, and longest life of a code.
const INTERVAL_MAX: u64 = 60;
const LIFETIME_MAX: u64 = 3600;

/// A login that waits for the person. It has no `Debug`, because it contains the code that becomes tokens.
pub struct Device {
    pub code: SecretText,
    /// What the person types.
    pub user_code: String,
    /// Where the person types it.
    pub verification_uri: String,
    /// Seconds before the next question.
    pub interval: u64,
    pub expires_at: UnixSeconds,
}

/// What an answer to a question says.
#[derive(PartialEq, Eq)]
pub enum Poll {
    /// Ask again, after this many seconds more than the time before.
    Wait {
        longer: u64,
    },
    Done(Tokens),
}

impl Device {
    /// The request that begins a login. None if the issuer has no logins of devices.
    pub fn request(issuer: &Issuer) -> Option<Request> {
        let url = issuer.device_url.as_deref()?;
        let scope = issuer.scopes.join(" ");
        let mut pairs = vec![("client_id", issuer.client_id.as_str())];
        if !scope.is_empty() {
            pairs.push(("scope", &scope));
        }
        Some(Request::form(url, &issuer.headers, &pairs))
    }

    /// Reads the answer to [`Device::request`].
    pub fn read(status: u16, body: &[u8], now: UnixSeconds) -> Result<Self, CallError> {
        if !(200..300).contains(&status) {
            return Err(answer::refusal(status, body, &[]));
        }
        let answer = answer::parse(body);
        let text = |name: &str| {
            let missing = || malformed(format!("the answer of the issuer has no {name}"));
            answer::text(&answer, name).map(answer::bounded).ok_or_else(missing)
        };
        let count = |name: &str| answer.get(name).and_then(Value::as_u64).unwrap_or_default();
        let code = answer::text(&answer, "device_code").map(SecretText::new);
        let interval = match count("interval") {
            0 => INTERVAL_DEFAULT,
            seconds => seconds.min(INTERVAL_MAX),
        };
        Ok(Self {
            code: code.ok_or_else(|| malformed("the answer of the issuer has no device_code"))?,
            user_code: text("user_code")?,
            verification_uri: text("verification_uri").or_else(|error| text("verification_url").map_err(|_| error))?,
            interval,
            expires_at: now.saturating_add(count("expires_in").min(LIFETIME_MAX)),
        })
    }

    /// The question whether the person is done.
    pub fn poll(issuer: &Issuer, code: &SecretText) -> Request {
        let grant = "urn:ietf:params:oauth:grant-type:device_code";
        issuer.token_request(&[("grant_type", grant), ("device_code", code.expose())])
    }
}

impl Poll {
    /// Reads the answer to [`Device::poll`].
    pub fn read(
        issuer: &Issuer,
        code: &SecretText,
        (status, body): (u16, &[u8]),
        now: UnixSeconds,
    ) -> Result<Self, CallError> {
        match answer::text(&answer::parse(body), "error") {
            Some("authorization_pending") => Ok(Self::Wait { longer: 0 }),
            Some("slow_down") => Ok(Self::Wait { longer: INTERVAL_DEFAULT }),
            Some("expired_token") => {
                Err(CallError::new(CallErrorKind::Credentials, "the code has expired: begin the login again"))
            }
            _ => {
                let secrets = issuer.secrets([("code", code)]);
                Tokens::read((status, body), now, Expiry::Optional, &secrets).map(Self::Done)
            }
        }
    }
}
