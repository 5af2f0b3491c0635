//! `--stale`: reads that one controller answers alone, for a cluster whose majority is lost.

use http::Method;

use crate::failure::Failure;

/// Whether a request takes `consistency=stale`. Refuses requests that a controller cannot answer alone.
pub(super) fn asks(method: &Method, path: &[&str]) -> Result<bool, Failure> {
    match (method, path) {
        (&Method::GET, path) if takes(path) => Ok(true),
        // They are answered without the others in any case.
        (&Method::GET, ["metrics"] | ["api", "version"] | ["api", "cluster"] | ["api", "cluster", "members"]) => Ok(false),
        _ => Err(Failure::usage("--stale is for reads that one controller can answer alone, such as lists of jobs, agents, nodes and objects")
            .with_next("leave it out")),
    }
}

/// Whether the API has the parameter at a path.
fn takes(path: &[&str]) -> bool {
    matches!(
        path,
        [
            "api",
            "jobs" | "questions" | "traces" | "chains" | "nodes" | "triggers" | "skills" | "conversations" | "agents"
        ] | [
            "api",
            "jobs" | "questions" | "traces" | "chains" | "nodes" | "triggers" | "skills" | "conversations" | "agents",
            _
        ] | ["api", "jobs", _, "tree" | "explain" | "steps" | "receipt"]
            | ["api", "memory"]
            | ["api", "memory", "entries"]
            | ["api", "bases"]
            | ["api", "bases", _]
            | ["api", "bases", _, "documents"]
            | ["api", "knowledge", "search" | "entries" | "domains" | "acl"]
            | ["api", "knowledge", "entries", _]
            | ["api", "chains", _, "tree"]
            | ["api", "agents", _, "versions"]
            | ["api", "agents", _, "versions", _]
            | ["api", "objects", _]
            | ["api", "objects", _, _]
            | ["api", "orchestrator" | "health"]
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_parameter_is_sent_where_the_api_has_it() {
        let page = include_str!("../../../docs/reference/api.md");
        let mut seen = 0;
        for section in page.split("\n## GET /").skip(1) {
            let section = section.split("\n## ").next().unwrap_or_default();
            let path: Vec<&str> = section.lines().next().unwrap_or_default().split('/').collect();
            let has = section.contains("* `consistency`, in the query");
            seen += usize::from(has);
            assert_eq!(has, takes(&path), "{path:?}");
        }
        assert!(seen > 20, "only {seen}");
    }

    #[test]
    fn what_one_controller_cannot_answer_is_refused() {
        let get = |path: &[&str]| asks(&Method::GET, path).ok();
        assert_eq!(get(&["api", "jobs", "job-1"]), Some(true));
        assert_eq!(get(&["api", "cluster"]), Some(false));
        assert_eq!(get(&["api", "jobs", "job-1", "wait"]), None);
        assert!(asks(&Method::POST, &["api", "jobs"]).is_err());
    }
}
