//! The two eras of the protocol over HTTP: requests that stand alone (from 2026-07-28 on), and sessions. The protocol asks a client of both
//! to try the newer one first. What a server speaks is remembered, so a server of the older era is asked once.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rmcp::model::ProtocolVersion;
use rmcp::service::ClientLifecycleMode;

use crate::bounds::{DISCOVER_MAX, SERVERS_MAX};
use crate::error::{McpError, McpErrorKind};

/// How a server is spoken to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Era {
    /// Each request says which version it is in; the first one is `server/discover`.
    Requests,
    /// `initialize` opens a session.
    Sessions,
}

/// One try to open a connection, with the time that it may take at most.
pub(crate) type Try = (Era, Option<Duration>);

impl Era {
    pub(crate) fn lifecycle(self) -> ClientLifecycleMode {
        match self {
            Self::Requests => ClientLifecycleMode::Discover { preferred_versions: vec![ProtocolVersion::LATEST] },
            Self::Sessions => ClientLifecycleMode::Initialize,
        }
    }

    fn other(self) -> Self {
        match self {
            Self::Requests => Self::Sessions,
            Self::Sessions => Self::Requests,
        }
    }
}

/// The next try, after those that failed. `known` is the era that the server spoke the last time.
pub(crate) fn next(known: Option<Era>, failed: &[(Era, McpError)]) -> Option<Try> {
    match (known, failed) {
        // A server of the older era may not answer at all. One that spoke the newer one may be an older program today.
        (None | Some(Era::Requests), []) => Some((Era::Requests, Some(DISCOVER_MAX))),
        (Some(Era::Sessions), []) => Some((Era::Sessions, None)),
        // Another handshake would be refused as well.
        (_, [.., (_, error)]) if matches!(error.kind, McpErrorKind::Unauthorized | McpErrorKind::Forbidden) => None,
        (_, [(era, _)]) => Some((era.other(), None)),
        // It was only slow.
        (_, [(era, first), _]) if first.kind == McpErrorKind::Timeout => Some((*era, None)),
        _ => None,
    }
}

/// The error of all tries. Both eras are told if they failed for different reasons: which of them the server meant to speak is not known.
pub(crate) fn told(server: &str, failed: Vec<(Era, McpError)>) -> McpError {
    let (mut requests, mut sessions) = (None, None);
    for (era, error) in failed {
        match era {
            Era::Requests => requests = Some(error),
            Era::Sessions => sessions = Some(error),
        }
    }
    let of_requests = requests.as_ref().filter(|error| error.kind != McpErrorKind::Timeout);
    match (sessions, of_requests) {
        (Some(sessions), Some(requests))
            if sessions.kind == McpErrorKind::Protocol && requests.text != sessions.text =>
        {
            let start = format!("the MCP server {server} cannot be reached: ");
            let why = requests.text.strip_prefix(&start).unwrap_or(&requests.text);
            McpError::new(sessions.kind, format!("{} (to initialize); {why} (to server/discover)", sessions.text))
        }
        (Some(sessions), _) => sessions,
        (None, _) => requests.unwrap_or_else(|| McpError::timeout(server, "answer", DISCOVER_MAX)),
    }
}

/// The era of each server, by its address.
#[derive(Debug, Clone, Default)]
pub(crate) struct Eras(Arc<Mutex<BTreeMap<String, Era>>>);

impl Eras {
    fn all(&self) -> MutexGuard<'_, BTreeMap<String, Era>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn of(&self, url: &str) -> Option<Era> {
        self.all().get(url).copied()
    }

    pub(crate) fn keep(&self, url: &str, era: Era) {
        let mut all = self.all();
        if all.len() >= SERVERS_MAX && !all.contains_key(url) {
            all.clear();
        }
        all.insert(url.to_owned(), era);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failed(tries: &[(Era, McpErrorKind, &str)]) -> Vec<(Era, McpError)> {
        tries.iter().map(|(era, kind, text)| (*era, McpError::new(*kind, *text))).collect()
    }

    #[test]
    fn both_eras_are_tried_and_a_slow_server_gets_more_time() {
        use Era::{Requests, Sessions};
        use McpErrorKind::{Protocol, Timeout, Unauthorized};
        let check = |known, tries: &[(Era, McpErrorKind, &str)], expected: Option<Try>| {
            assert_eq!(next(known, &failed(tries)), expected, "{known:?} {tries:?}");
        };
        check(None, &[], Some((Requests, Some(DISCOVER_MAX))));
        check(None, &[(Requests, Protocol, "")], Some((Sessions, None)));
        check(None, &[(Requests, Unauthorized, "")], None);
        check(None, &[(Requests, Protocol, ""), (Sessions, Protocol, "")], None);
        check(None, &[(Requests, Timeout, ""), (Sessions, Protocol, "")], Some((Requests, None)));
        check(None, &[(Requests, Timeout, ""), (Sessions, Protocol, ""), (Requests, Protocol, "")], None);
        check(Some(Sessions), &[], Some((Sessions, None)));
        check(Some(Sessions), &[(Sessions, Protocol, "")], Some((Requests, None)));
        check(Some(Requests), &[], Some((Requests, Some(DISCOVER_MAX))));
        check(Some(Requests), &[(Requests, Timeout, "")], Some((Sessions, None)));
        check(Some(Requests), &[(Requests, Protocol, ""), (Sessions, Protocol, "")], None);
    }

    #[test]
    fn the_error_says_what_both_eras_were_answered() {
        use Era::{Requests, Sessions};
        use McpErrorKind::{Protocol, Timeout, Unreachable};
        let check = |tries: &[(Era, McpErrorKind, &str)], expected: &str| {
            assert_eq!(told("s", failed(tries)).text, expected);
        };
        let (one, two) = ("the MCP server s cannot be reached: one", "the MCP server s cannot be reached: two");
        check(
            &[(Requests, Protocol, one), (Sessions, Protocol, two)],
            "the MCP server s cannot be reached: two (to initialize); one (to server/discover)",
        );
        check(&[(Requests, Protocol, one), (Sessions, Protocol, one)], one);
        check(&[(Requests, Protocol, one), (Sessions, Unreachable, two)], two);
        check(&[(Requests, Timeout, one), (Sessions, Protocol, two)], two);
        check(&[(Requests, Protocol, one)], one);
    }

    #[test]
    fn what_is_remembered_is_bounded() {
        let eras = Eras::default();
        (0..=SERVERS_MAX).for_each(|number| eras.keep(&format!("http://{number}/"), Era::Sessions));
        assert_eq!(eras.of("http://0/"), None);
        assert_eq!(eras.all().len(), 1);
    }
}
