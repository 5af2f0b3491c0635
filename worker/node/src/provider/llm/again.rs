//! What follows when no model of a call answered: another round after a pause, or an error that says what to change.

use std::time::Duration;

use atlas_llm::client::{Backend, Failure, Target};
use atlas_llm::failure::is_outage;
use atlas_model::{CallError, CallErrorKind};

/// The seconds before further rounds when a provider limits the calls and does not say for how long: a minute in all.
const PAUSES: [u64; 5] = [2, 4, 8, 16, 30];
/// Further rounds after answers that do not follow the protocol, or in which there is nothing.
const ANSWERS_MAX: usize = 2;

/// The further rounds of one call.
#[derive(Debug, Default)]
pub(super) struct Rounds {
    limited: usize,
    answers: usize,
}

impl Rounds {
    /// The pause before the next round; none if there is none. A model that is to be tried once has no further rounds.
    pub(super) fn next(&mut self, failure: &Failure, targets: &[Target], random: u64) -> Option<Duration> {
        use CallErrorKind::{Answer, Filtered, RateLimited, Request};
        let last = failure.error.kind;
        // Such a request fails in each round.
        if matches!(last, Filtered | Request) {
            return None;
        }
        let again = |place: usize| may_answer(failure, targets, place).is_some();
        let is_limited = |error: &CallError| error.kind == RateLimited && error.retry_after.is_none();
        if errors(failure).any(|(place, error)| is_limited(error) && again(place)) {
            let full = Duration::from_secs(*PAUSES.get(self.limited)?);
            self.limited += 1;
            // Callers that were limited together do not return together.
            let nanoseconds = u64::try_from(full.as_nanos() / 4).unwrap_or(u64::MAX);
            return Some(full - Duration::from_nanos(random % nanoseconds.saturating_add(1)));
        }
        // A redirect leads away in each round.
        let is_success = failure.error.status.is_some_and(|status| (200..300).contains(&status));
        if last != Answer || !is_success || !again(failure.earlier.len()) || self.answers >= ANSWERS_MAX {
            return None;
        }
        self.answers += 1;
        Some(Duration::ZERO)
    }
}

/// The errors of all targets.
fn errors(failure: &Failure) -> impl Iterator<Item = (usize, &CallError)> {
    failure.earlier.iter().map(|(place, error)| (*place, error)).chain([place_of(failure)])
}

/// A target that may answer in another round. A script answers the same in each round, and a model may be one to be tried once.
fn may_answer<'t>(failure: &Failure, targets: &'t [Target], place: usize) -> Option<&'t Target> {
    let target = targets.get(place).filter(|_| !failure.lasting.contains(&place))?;
    (target.attempts > 1 && matches!(target.backend, Backend::Http(_))).then_some(target)
}

/// The first model whose provider is down, and the pause that it asks for. None if waiting does not help.
pub(super) fn down<'t>(failure: &Failure, targets: &'t [Target]) -> Option<(&'t Target, Option<Duration>)> {
    if matches!(failure.error.kind, CallErrorKind::Filtered | CallErrorKind::Request) {
        return None;
    }
    let mut down = errors(failure).filter(|(_, error)| is_outage(error));
    down.find_map(|(place, error)| Some((may_answer(failure, targets, place)?, error.retry_after)))
}

/// The last error, with the place of its target: each target before has one as well.
fn place_of(failure: &Failure) -> (usize, &CallError) {
    (failure.earlier.len(), &failure.error)
}

/// The error of the job: the provider's words, then where they come from and what to change.
pub(super) fn told(failure: Failure, targets: &[Target], tries: u32) -> CallError {
    let (place, error) = (failure.earlier.len(), failure.error);
    let Some(target) = targets.get(place) else { return error };
    // Its text says how to log in.
    if error.kind == CallErrorKind::Login {
        return error;
    }
    let mut from = format!("model \"{}\"", target.name);
    if target.model != target.name {
        from.push_str(&format!(", {}", target.model));
    }
    if let Backend::Http(http) = &target.backend {
        from.push_str(&format!(" at {}", host(&http.endpoint.base_url)));
    }
    if let Some(status) = error.status {
        from.push_str(&format!(", status {status}"));
    }
    if matches!(target.backend, Backend::Local(_)) {
        from.push_str(" on this worker");
    }
    let count = if tries == 1 { "1 try".to_owned() } else { format!("{tries} tries") };
    let mut message = format!("{} ({from}, {count})", error.message.trim_end());
    // What fails on this machine says itself what to change.
    if !matches!(target.backend, Backend::Local(_)) {
        message.push_str(&format!(": {}", advice(error.kind)));
    }
    CallError { message, ..error }
}

/// The server of an address, without a path and a name of a person.
fn host(address: &str) -> &str {
    let behind = address.split_once("://").map_or(address, |(_, behind)| behind);
    let host = behind.split(['/', '?', '#']).next().unwrap_or_default();
    host.rsplit_once('@').map_or(host, |(_, host)| host)
}

fn advice(kind: CallErrorKind) -> &'static str {
    match kind {
        CallErrorKind::Credentials => "set the key of the model to one that the provider accepts",
        CallErrorKind::Login => "log in again",
        CallErrorKind::UnknownModel => "compare the id of the model with those of the provider, and its base_url",
        CallErrorKind::TooLong => "shorten the input, or choose a model with a larger context window",
        CallErrorKind::Request => {
            "change what the provider names: the input, the contract, or the settings of the model"
        }
        CallErrorKind::RateLimited => {
            "run the job again later, make fewer calls at the same time, or give the model a fallback"
        }
        CallErrorKind::Quota => "look at the billing page of the provider",
        CallErrorKind::Filtered => "change the input or the system text, or choose another model",
        CallErrorKind::Provider => "run the job again later, or give the model a fallback",
        CallErrorKind::Connection | CallErrorKind::Timeout => {
            "make sure that the worker reaches this address, or correct the base_url of the model"
        }
        CallErrorKind::Answer => "compare the provider and the base_url of the model",
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::sync::Arc;

    use atlas_http::Secret;
    use atlas_llm::Endpoint;
    use atlas_llm::openai::Chat;

    use super::*;

    fn target(name: &str, attempts: u32) -> Target {
        let protocol = Arc::new(Chat::openai(Secret::from("key".to_owned())));
        let endpoint = Endpoint { base_url: "https://models.example/v1".to_owned(), headers: Vec::new() };
        Target { attempts, ..Target::new(name, "tiny-1", protocol, endpoint) }
    }

    fn failure(kinds: &[CallErrorKind]) -> Failure {
        let status = |kind| (kind != CallErrorKind::Connection).then_some(429);
        let error = |kind: &CallErrorKind| CallError { status: status(*kind), ..CallError::new(*kind, "slow down") };
        let (last, before) = kinds.split_last().expect("an error");
        let earlier = before.iter().map(error).enumerate().collect();
        Failure { error: error(last), earlier, lasting: BTreeSet::new() }
    }

    fn pauses(failure: &Failure, targets: &[Target], random: u64) -> Vec<u64> {
        let mut rounds = Rounds::default();
        std::iter::from_fn(|| rounds.next(failure, targets, random)).map(|pause| pause.as_secs()).collect()
    }

    #[test]
    fn a_limit_without_a_time_is_waited_for_about_a_minute() {
        use CallErrorKind::{Connection, Filtered, RateLimited};
        let (limited, targets) = (failure(&[RateLimited]), [target("a", 3), target("b", 3)]);
        assert_eq!(pauses(&limited, &targets, 0), [2, 4, 8, 16, 30]);
        let least: u64 = pauses(&limited, &targets, u64::MAX).iter().sum();
        assert!((40..=60).contains(&least), "{least}");
        assert_eq!(pauses(&failure(&[RateLimited, Connection]), &targets, 0).len(), 5);
        assert!(pauses(&failure(&[RateLimited, Filtered]), &targets, 0).is_empty());
        assert!(pauses(&failure(&[Connection]), &targets, 0).is_empty());
        assert!(pauses(&limited, &[target("a", 1)], 0).is_empty());
        let mut named = failure(&[RateLimited]);
        named.error.retry_after = Some(Duration::from_secs(1));
        assert!(pauses(&named, &targets, 0).is_empty());
        let refused = Failure { lasting: BTreeSet::from([0]), ..failure(&[RateLimited, Connection]) };
        assert!(pauses(&refused, &targets, 0).is_empty(), "the provider wants no other try");
        let one_of_two = Failure { lasting: BTreeSet::from([0]), ..failure(&[RateLimited, RateLimited]) };
        assert_eq!(pauses(&one_of_two, &targets, 0).len(), 5);
    }

    #[test]
    fn a_job_waits_for_a_provider_that_is_down_and_not_for_one_that_refuses() {
        use CallErrorKind::{Connection, Credentials, Filtered, Provider, RateLimited, UnknownModel};
        let names = |failure: &Failure, attempts| {
            let targets = [target("a", attempts), target("b", attempts)];
            down(failure, &targets).map(|(target, _)| target.name.clone())
        };
        for (kinds, expected) in [
            (&[Connection][..], Some("a")),
            (&[RateLimited], Some("a")),
            (&[Credentials, Connection], Some("b")),
            (&[Connection, UnknownModel], Some("a")),
            (&[Connection, Filtered], None),
            (&[UnknownModel], None),
        ] {
            assert_eq!(names(&failure(kinds), 3).as_deref(), expected, "{kinds:?}");
            assert_eq!(names(&failure(kinds), 1), None, "it is to be tried once");
        }
        for (status, is_down) in [(500, false), (502, true), (503, true), (504, true), (529, true)] {
            let mut failure = failure(&[Provider]);
            failure.error.status = Some(status);
            assert_eq!(names(&failure, 3).is_some(), is_down, "{status}");
        }
        let refused = Failure { lasting: BTreeSet::from([0]), ..failure(&[Connection]) };
        assert_eq!(names(&refused, 3), None, "the provider wants no other try");
        for kind in [Connection, RateLimited] {
            let mut begun = failure(&[kind]);
            begun.error.status = Some(200);
            assert_eq!(names(&begun, 3), None, "the answer broke off");
        }
    }

    #[test]
    fn an_unreadable_answer_is_asked_for_twice_more() {
        let of = |status| CallError { status, ..CallError::new(CallErrorKind::Answer, "not JSON") };
        let of = |status| Failure { error: of(status), ..failure(&[CallErrorKind::Answer]) };
        let unreadable = of(Some(200));
        assert_eq!(pauses(&unreadable, &[target("a", 3)], 0), [0, 0]);
        assert!(pauses(&unreadable, &[target("a", 1)], 0).is_empty());
        for astray in [Failure { lasting: BTreeSet::from([0]), ..unreadable }, of(Some(307)), of(Some(404))] {
            assert!(pauses(&astray, &[target("a", 3)], 0).is_empty(), "{astray:?}");
        }
    }

    #[test]
    fn an_error_says_which_model_and_what_to_change() {
        let of = |kind, tries| told(failure(&[kind]), &[target("fast", 3)], tries).message;
        assert_eq!(
            of(CallErrorKind::RateLimited, 8),
            "slow down (model \"fast\", tiny-1 at models.example, status 429, 8 tries): run the job again later, make fewer calls at the same time, or give the \
             model a fallback"
        );
        assert!(
            of(CallErrorKind::Provider, 1)
                .starts_with("slow down (model \"fast\", tiny-1 at models.example, status 429, 1 try): ")
        );
        assert_eq!(of(CallErrorKind::Login, 1), "slow down");
        assert_eq!(host("https://ada:pw@models.example:8443/v1?key=x"), "models.example:8443");
    }
}
