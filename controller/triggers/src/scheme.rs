//! How the senders of webhooks sign their calls: Atlas itself, and services that have their own ways.
//!
//! Every scheme accepts any of several signatures, made with any of several secrets: while a secret is replaced, sender and receiver
//! need not change it at the same moment.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value, json};
use sha2::{Digest as _, Sha256};

use crate::signature::{fits, hex, verify};

/// Most signatures of one call that are compared.
const SIGNATURES_MAX: usize = 8;
/// How old a signed time stamp may be by default, in seconds: what the services themselves propose.
const WINDOW: u32 = 300;
/// For how long a secret counts that was replaced, in seconds: a day, within which the sender has the new one.
const ROTATION: u64 = 86_400;
/// The longest challenge that is answered.
const CHALLENGE_BYTES_MAX: usize = 1 << 10;

/// The headers that any scheme reads, in lower case.
pub const SIGNED_HEADERS: [&str; 13] = [
    "stripe-signature",
    "webhook-id",
    "webhook-signature",
    "webhook-timestamp",
    "x-atlas-signature",
    "x-atlas-timestamp",
    "x-github-delivery",
    "x-github-event",
    "x-hub-signature-256",
    "x-shopify-event-id",
    "x-shopify-hmac-sha256",
    "x-slack-request-timestamp",
    "x-slack-signature",
];

/// How calls are signed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Scheme {
    /// `X-Atlas-Signature`: the body, or with a window for replays `X-Atlas-Timestamp`, a full stop and the body.
    #[default]
    Atlas,
    /// `X-Hub-Signature-256`: the body. There is no time stamp.
    GitHub,
    /// `Stripe-Signature`, `t=…,v1=…`: the time stamp, a full stop and the body.
    Stripe,
    /// `X-Slack-Signature`, `v0=…`: `v0`, the time stamp of `X-Slack-Request-Timestamp` and the body, with colons between them.
    Slack,
    /// `X-Shopify-Hmac-SHA256`: the body, in Base64. There is no time stamp.
    Shopify,
    /// `webhook-signature` of standardwebhooks.com, `v1,…`: the id, the time stamp and the body, with full stops between them.
    Standard,
}

/// A call of a webhook, as it came.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Call<'c> {
    pub body: &'c [u8],
    /// Of the [`SIGNED_HEADERS`] those that it has, by lower-case name.
    pub headers: BTreeMap<&'static str, String>,
}

impl Call<'_> {
    fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", String::as_str)
    }
}

/// Whether a secret no longer counts that was replaced at `replaced`, seconds since 1970.
pub fn superseded(replaced: u64, now: u64) -> bool {
    now.saturating_sub(replaced) >= ROTATION
}

impl Scheme {
    const ALL: [Self; 6] = [Self::Atlas, Self::GitHub, Self::Stripe, Self::Slack, Self::Shopify, Self::Standard];

    /// Its word.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Atlas => "atlas",
            Self::GitHub => "github",
            Self::Stripe => "stripe",
            Self::Slack => "slack",
            Self::Shopify => "shopify",
            Self::Standard => "standard",
        }
    }

    /// The scheme of a word; the error lists the words.
    pub(crate) fn named(word: &str) -> Result<Self, String> {
        let found = Self::ALL.into_iter().find(|scheme| scheme.as_str() == word);
        found.ok_or_else(|| {
            let words = Self::ALL.map(Self::as_str).join(", ");
            format!("Invalid scheme '{word}', must be one of {words}")
        })
    }

    /// The header with the signature.
    pub fn header(self) -> &'static str {
        match self {
            Self::Atlas => "X-Atlas-Signature",
            Self::GitHub => "X-Hub-Signature-256",
            Self::Stripe => "Stripe-Signature",
            Self::Slack => "X-Slack-Signature",
            Self::Shopify => "X-Shopify-Hmac-SHA256",
            Self::Standard => "webhook-signature",
        }
    }

    /// Whether it can have a window for replays: its senders sign a time stamp.
    pub fn can_stamp(self) -> bool {
        !matches!(self, Self::GitHub | Self::Shopify)
    }

    /// How old a signed time stamp may be, in seconds, if a definition says `window`; none if no time stamp is asked for.
    fn window(self, window: u32) -> Option<i64> {
        match self {
            Self::GitHub | Self::Shopify => None,
            Self::Atlas => (window > 0).then_some(window.into()),
            Self::Stripe | Self::Slack | Self::Standard => Some(if window > 0 { window } else { WINDOW }.into()),
        }
    }

    /// Whether one of `secrets` signed the call, and not longer ago than `window` seconds before `now`.
    pub fn accepts(self, secrets: &[impl AsRef<str>], call: &Call<'_>, window: u32, now: i64) -> bool {
        let stamp = self.stamp(call);
        if let Some(window) = self.window(window) {
            let is_fresh = |stamp: i64| now.saturating_sub(stamp).saturating_abs() <= window;
            if !stamp.parse().is_ok_and(is_fresh) {
                return false;
            }
        }
        let parts: Vec<&[u8]> = match self {
            Self::Atlas if window > 0 => vec![stamp.as_bytes(), b".", call.body],
            Self::Atlas | Self::GitHub | Self::Shopify => vec![call.body],
            Self::Stripe => vec![stamp.as_bytes(), b".", call.body],
            Self::Slack => vec![b"v0:", stamp.as_bytes(), b":", call.body],
            Self::Standard => vec![call.header("webhook-id").as_bytes(), b".", stamp.as_bytes(), b".", call.body],
        };
        let signed = parts.concat();
        let signatures = self.signatures(call);
        // All pairs are compared, so that the time tells nothing about which fits.
        secrets.iter().fold(false, |accepted, secret| {
            signatures
                .iter()
                .take(SIGNATURES_MAX)
                .fold(accepted, |accepted, signature| self.fits(secret.as_ref(), &signed, signature) | accepted)
        })
    }

    /// The time stamp of a call as it was sent; empty if there is none.
    fn stamp<'c>(self, call: &'c Call<'_>) -> &'c str {
        match self {
            Self::Atlas => call.header("x-atlas-timestamp"),
            Self::Stripe => of_pairs(call.header("stripe-signature"), "t").next().unwrap_or_default(),
            Self::Slack => call.header("x-slack-request-timestamp"),
            Self::Standard => call.header("webhook-timestamp"),
            Self::GitHub | Self::Shopify => "",
        }
    }

    fn signatures<'c>(self, call: &'c Call<'_>) -> Vec<&'c str> {
        let listed = |header: &'c str| header.split(',').map(str::trim).filter(|one| !one.is_empty()).collect();
        match self {
            Self::Atlas => listed(call.header("x-atlas-signature")),
            Self::GitHub => of_pairs(call.header("x-hub-signature-256"), "sha256").collect(),
            Self::Stripe => of_pairs(call.header("stripe-signature"), "v1").collect(),
            Self::Slack => of_pairs(call.header("x-slack-signature"), "v0").collect(),
            Self::Shopify => listed(call.header("x-shopify-hmac-sha256")),
            Self::Standard => {
                let all = call.header("webhook-signature").split(' ');
                all.filter_map(|one| one.strip_prefix("v1,")).collect()
            }
        }
    }

    fn fits(self, secret: &str, signed: &[u8], signature: &str) -> bool {
        match self {
            Self::Atlas => verify(secret, signed, signature),
            Self::GitHub | Self::Stripe | Self::Slack => {
                hex(signature).is_some_and(|bytes| fits(secret.as_bytes(), signed, &bytes))
            }
            Self::Shopify => STANDARD.decode(signature).is_ok_and(|bytes| fits(secret.as_bytes(), signed, &bytes)),
            Self::Standard => {
                let Ok(key) = STANDARD.decode(secret.strip_prefix("whsec_").unwrap_or(secret)) else { return false };
                STANDARD.decode(signature).is_ok_and(|bytes| fits(&key, signed, &bytes))
            }
        }
    }

    /// What a repeat of a call is known by, if its sender says so in its own way: the id of the delivery or of its event.
    pub fn delivery(self, call: &Call<'_>, body: &Map<String, Value>) -> Option<String> {
        let id = match self {
            Self::Atlas => "",
            Self::GitHub => call.header("x-github-delivery"),
            Self::Stripe => body.get("id").and_then(Value::as_str).unwrap_or_default(),
            Self::Slack => body.get("event_id").and_then(Value::as_str).unwrap_or_default(),
            Self::Shopify => call.header("x-shopify-event-id"),
            Self::Standard => call.header("webhook-id"),
        };
        (!id.is_empty()).then(|| id.to_owned())
    }

    /// What a repeat of a stamped call without such an id is known by: what is signed, its time stamp and its body. A header can say the same
    /// signature in many ways, or others beside it.
    pub fn stamped(self, call: &Call<'_>, window: u32) -> Option<String> {
        let body = || Sha256::digest(call.body).iter().map(|byte| format!("{byte:02x}")).collect::<String>();
        self.window(window).map(|_| format!("{}\0{}", self.stamp(call), body()))
    }

    /// The answer to a call that only asks whether somebody is here, and starts nothing.
    pub fn greeting(self, call: &Call<'_>, body: &Map<String, Value>) -> Option<Value> {
        let text = |member: &str| body.get(member).and_then(Value::as_str);
        match self {
            Self::Slack if text("type") == Some("url_verification") => {
                let challenge = text("challenge").filter(|challenge| challenge.len() <= CHALLENGE_BYTES_MAX)?;
                Some(json!({ "challenge": challenge }))
            }
            Self::GitHub if call.header("x-github-event") == "ping" => Some(json!({ "pong": true })),
            _ => None,
        }
    }
}

/// The values of `name` in `name=value,other=value`.
fn of_pairs<'h>(header: &'h str, name: &'h str) -> impl Iterator<Item = &'h str> {
    let pairs = header.split(',').filter_map(|pair| pair.trim().split_once('='));
    pairs.filter(move |(found, _)| *found == name).map(|(_, value)| value)
}

#[cfg(test)]
mod tests;
