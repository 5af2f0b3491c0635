//! Errors of the API server in one line, for logs and statuses.

use std::error::Error;

use kube::core::Status;
use kube::runtime::watcher;

use crate::kind::{GROUP, Kind};

/// An error and its causes, outermost first. The client's errors repeat their causes, and show an answer of the API server twice: here each is
/// said once, and an answer by its message alone.
pub(crate) fn said(error: &(dyn Error + 'static)) -> String {
    let mut parts: Vec<String> = Vec::new();
    let mut next = Some(error);
    while let Some(one) = next {
        let text = one.to_string();
        if let Some(before) = parts.last_mut().and_then(|outer| outer.strip_suffix(text.as_str()).map(str::to_owned)) {
            parts.pop();
            parts.extend(Some(before.trim_end_matches(": ").to_owned()).filter(|before| !before.is_empty()));
        }
        if let Some(status) = own_answer(one) {
            parts.push(message(status));
            break;
        }
        parts.push(text);
        next = one.source();
    }
    parts.join(": ")
}

/// What a watch that failed means to people; none if it only has to begin again.
pub(crate) fn of_watch(kind: Kind, error: &(dyn Error + 'static)) -> Option<String> {
    match answer(error).map(|status| status.code) {
        // The API server was restarted, or forgot old changes: everything is listed again.
        Some(410) => None,
        Some(404) => Some(format!(
            "Kubernetes does not know {}.{GROUP}: install the definitions of the chart, operator.crds or k8s/chart/files/crds.yaml",
            kind.plural()
        )),
        _ => Some(said(error)),
    }
}

/// What the API server answered, if that is the cause.
fn answer<'a>(error: &'a (dyn Error + 'static)) -> Option<&'a Status> {
    own_answer(error).or_else(|| answer(error.source()?))
}

fn own_answer<'a>(error: &'a (dyn Error + 'static)) -> Option<&'a Status> {
    if let Some(kube::Error::Api(status)) = error.downcast_ref() {
        return Some(status);
    }
    match error.downcast_ref() {
        Some(watcher::Error::WatchError(status)) => Some(status),
        _ => None,
    }
}

fn message(status: &Status) -> String {
    match status.message.as_str() {
        "" => format!("{} {}", status.code, status.reason).trim_end().to_owned(),
        message => message.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use kube::runtime::controller;

    use super::*;

    type Failed = controller::Error<std::io::Error, watcher::Error>;

    fn refused(code: u16, message: &str, reason: &str) -> kube::Error {
        kube::Error::Api(Box::new(Status::failure(message, reason).with_code(code)))
    }

    #[test]
    fn causes_are_said_once() {
        let forbidden = refused(403, "leases is forbidden", "Forbidden");
        assert_eq!(said(&forbidden), "leases is forbidden");
        assert_eq!(said(&refused(500, "", "InternalError")), "500 InternalError");
        let queue: Failed = controller::Error::QueueError(watcher::Error::WatchStartFailed(forbidden));
        assert_eq!(said(&queue), "event queue error: failed to start watching object: leases is forbidden");
        let cut = std::io::Error::other("connection reset");
        assert_eq!(said(&kube::Error::Service(cut.into())), "ServiceError: connection reset");
    }

    #[test]
    fn a_watch_says_what_people_can_do() {
        let of = |error| of_watch(Kind::Chain, &Failed::QueueError(error));
        let missing = refused(404, "404 page not found", "Failed to parse error data");
        let told = of(watcher::Error::WatchStartFailed(missing)).expect("words");
        assert!(told.starts_with("Kubernetes does not know chains.atlas.dev: install the definitions"), "{told}");
        let expired = Status::failure("too old resource version", "Expired").with_code(410);
        assert_eq!(of(watcher::Error::WatchError(Box::new(expired))), None);
        let listed = watcher::Error::InitialListFailed(refused(403, "chains is forbidden", "Forbidden"));
        let told = of(listed).expect("words");
        assert_eq!(told, "event queue error: failed to perform initial object list: chains is forbidden");
    }
}
