//! Limits that are reached: which free themselves, and what a person can do about the others.

use atlas_types::Rejection;

/// What makes room under a limit that never frees itself. None if the limit frees itself, as one on running jobs does.
pub(super) fn remedy(rejection: &Rejection) -> Option<&'static str> {
    Some(match rejection {
        Rejection::NamespaceLimit { what: "agent versions", .. } => {
            "remove versions that nobody uses (atlasctl agent retire NAME@VERSION, then atlasctl agent delete NAME@VERSION), or raise \
             agents_max: atlasctl edit namespace NAME"
        }
        Rejection::LimitReached { what, .. } => match *what {
            "agent versions" => {
                "remove versions that nobody uses: atlasctl agent retire NAME@VERSION, then atlasctl agent delete NAME@VERSION"
            }
            "nodes" => "remove nodes that are gone: atlasctl node list, then atlasctl node remove NODE",
            "objects" => "delete objects that nobody uses: atlasctl get KIND, then atlasctl delete KIND NAME",
            "join tokens" => "use one of the earlier tokens, or wait until they have expired, within an hour",
            "labels of a node" => "remove labels of the node: atlasctl node label NODE KEY-",
            "labels" => "give fewer labels",
            "members with a history" => {
                "remove controllers that are gone: atlasctl cluster members, then atlasctl cluster remove NAME"
            }
            "numbers of members" => "start a new cluster from a backup: atlasctl operator snapshot save FILE",
            "journal bytes of a job" | "folds of a journal" => "split the job: its steps need too much room",
            "waits of a job" => "let the agent wait for fewer things at once",
            "steps of a run" => "split the chain: a step can be another chain",
            "questions of a job" => "let the agent ask fewer questions",
            "options of a question" => "let the agent offer fewer options",
            "warm packages of a node" => "retire agent versions that nobody uses: atlasctl agent retire NAME@VERSION",
            _ => return None,
        },
        _ => return None,
    })
}

/// What to try where a limit frees itself.
pub(super) fn waiting(rejection: &Rejection) -> &'static str {
    match rejection {
        Rejection::NamespaceLimit { what: "pending jobs", .. } => {
            "wait until waiting jobs have started, or raise jobs_pending_max: atlasctl edit namespace NAME"
        }
        Rejection::NamespaceLimit { what: "bytes of inputs", .. } => {
            "wait until jobs have ended, or raise jobs_bytes_max: atlasctl edit namespace NAME"
        }
        _ => "wait until jobs have ended: atlasctl job list --status running",
    }
}

/// What to do about something that is too large, by what it is.
pub(super) fn smaller(what: &str) -> &'static str {
    match what {
        "the package" => "leave files out of the package, or start the controllers with a larger --package-max",
        "the body" | "the job" => "send less at once, or start the controllers with a larger --http-body-max",
        "the payload" => "make it smaller, or start the controllers with a larger --artifact-max",
        "the input, for its namespace" => "make it smaller, or raise jobs_bytes_max: atlasctl edit namespace NAME",
        _ => "make it smaller; this limit is fixed",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_frees_itself_has_no_remedy() {
        let frees =
            Rejection::LIMITS.into_iter().filter(|what| remedy(&Rejection::LimitReached { what, limit: 1 }).is_none());
        let frees: Vec<&str> = frees.collect();
        // What is added here ends with jobs, and needs nobody.
        let known = [
            "jobs",
            "payload bytes",
            "running jobs of this agent",
            "journal bytes",
            "messages of a job",
            "message bytes of a job",
            "pending jobs",
            "bytes of inputs",
            "runs",
            "calls of orchestrators",
            "running jobs",
            "running jobs of this key",
            "starts of jobs",
            "starts of jobs of this agent",
            "starts of jobs of this key",
            "waiting jobs, whose order would change",
        ];
        assert_eq!(frees, known);
    }
}
