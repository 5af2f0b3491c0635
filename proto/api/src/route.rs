//! From the path of a request to the operations there.

use std::borrow::Cow;
use std::sync::LazyLock;

use http::Method;

use crate::operations::operation::{Operation, Verb};
use crate::operations::operations;

/// A path of the interface, as a request names it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Route {
    node: &'static Node,
    /// What stands for its parameters.
    pub names: Names,
}

/// What stands for the parameters of a path, decoded and not empty. A path has at most two.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Names {
    /// The first; empty if the path has none.
    pub first: String,
    /// The second; empty if the path has fewer.
    pub second: String,
}

/// The operations that begin with the same parts of a path.
#[derive(Debug, Default, PartialEq, Eq)]
struct Node {
    /// What follows by its own name.
    literals: Vec<(&'static str, Node)>,
    /// What follows by the name of a parameter.
    parameter: Option<Box<Node>>,
    /// The operations of exactly this path.
    here: Vec<At>,
}

/// An operation of the table; two are the same if they are the same row.
#[derive(Debug, Clone, Copy)]
struct At(&'static Operation);

impl PartialEq for At {
    fn eq(&self, other: &Self) -> bool {
        std::ptr::eq(self.0, other.0)
    }
}

impl Eq for At {}

/// The paths whose clients may write them with a `/` at the end (RFC 9728 §3.1 makes it from the address of a resource).
const WITH_SLASH: &str = "/.well-known/oauth-protected-resource/";

static ROOT: LazyLock<Node> = LazyLock::new(|| {
    let mut root = Node::default();
    for operation in operations() {
        let mut node = &mut root;
        for part in operation.path.trim_start_matches('/').split('/') {
            node = node.below(part);
        }
        node.here.push(At(operation));
    }
    root
});

/// The route of a path; none if the interface has no such path, or a name in it is empty or no UTF-8.
pub fn route(path: &str) -> Option<Route> {
    let path = match path.strip_suffix('/') {
        Some(without) if path.starts_with(WITH_SLASH) => without,
        _ => path,
    };
    let mut names = Names::default();
    let node = LazyLock::force(&ROOT).find(path.strip_prefix('/')?, &mut names)?;
    Some(Route { node, names })
}

impl Route {
    /// What a method does there.
    pub fn operation(&self, method: &Method) -> Option<&'static Operation> {
        self.node.operations().find(|operation| operation.verb.takes(method))
    }

    /// The methods of the path, as the header `Allow` lists them.
    pub fn methods(&self) -> String {
        let mut methods: Vec<Method> = self.node.operations().map(|operation| operation.verb.method()).collect();
        if self.node.operations().any(|operation| operation.verb == Verb::Get) {
            methods.push(Method::HEAD);
        }
        methods.sort_unstable_by(|a, b| a.as_str().cmp(b.as_str()));
        methods.iter().map(Method::as_str).collect::<Vec<_>>().join(", ")
    }

    /// Whether Atlas for Python has the path. Errors of the others are always problem documents.
    pub fn has_plain_errors(&self) -> bool {
        self.node.operations().any(|operation| operation.plain_errors)
    }
}

impl Node {
    /// The node of one more part, made if it is new.
    fn below(&mut self, part: &'static str) -> &mut Self {
        if part.starts_with('{') {
            return self.parameter.get_or_insert_default();
        }
        let at = self.literals.iter().position(|(literal, _)| *literal == part).unwrap_or_else(|| {
            self.literals.push((part, Self::default()));
            self.literals.len() - 1
        });
        &mut self.literals[at].1
    }

    /// The node of the rest of a path. What is written out comes before what a parameter stands for.
    fn find(&'static self, rest: &str, names: &mut Names) -> Option<&'static Self> {
        let (part, after) = rest.split_once('/').map_or((rest, None), |(part, after)| (part, Some(after)));
        let go_on = |node: &'static Self, names: &mut Names| match after {
            Some(after) => node.find(after, names),
            None => Some(node).filter(|node| !node.here.is_empty()),
        };
        let literal = self.literals.iter().find(|(literal, _)| *literal == part);
        if let Some(found) = literal.and_then(|(_, node)| go_on(node, names)) {
            return Some(found);
        }
        let node = self.parameter.as_deref()?;
        let name = percent_decoded(part).filter(|name| !name.is_empty())?;
        let place = if names.first.is_empty() { &mut names.first } else { &mut names.second };
        *place = name.into_owned();
        go_on(node, names)
    }

    fn operations(&self) -> impl Iterator<Item = &'static Operation> {
        self.here.iter().map(|at| at.0)
    }
}

/// Decodes percent encoding. None if the result is not UTF-8.
pub fn percent_decoded(text: &str) -> Option<Cow<'_, str>> {
    if text.contains('%') { String::from_utf8(bytes_decoded(text)).ok().map(Cow::Owned) } else { Some(text.into()) }
}

/// Decodes percent encoding. A `%` that does not start a code is kept.
pub fn bytes_decoded(text: &str) -> Vec<u8> {
    let bytes = text.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while let Some(&byte) = bytes.get(at) {
        let code = if byte == b'%' { bytes.get(at + 1..at + 3) } else { None };
        let hex = |b: u8| char::from(b).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
        match code.and_then(|code| Some(hex(code[0])? * 16 + hex(code[1])?)) {
            Some(decoded) => {
                out.push(decoded);
                at += 3;
            }
            None => {
                out.push(byte);
                at += 1;
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::operations::{Jobs, OperationId};

    #[track_caller]
    fn check(path: &str, expected: Option<(&str, [&str; 2])>) {
        let found = route(path);
        let at = found.as_ref().and_then(|route| route.node.operations().next());
        let names = found.as_ref().map(|route| [&*route.names.first, &*route.names.second]);
        assert_eq!(at.map(|operation| operation.path).zip(names), expected, "{path:?}");
    }

    #[test]
    fn paths_name_what_they_name() {
        check("/api/jobs", Some(("/api/jobs", ["", ""])));
        check("/api/jobs:batch", Some(("/api/jobs:batch", ["", ""])));
        check("/api/jobs/job%2D1", Some(("/api/jobs/{id}", ["job-1", ""])));
        check("/api/jobs/a/wait", Some(("/api/jobs/{id}/wait", ["a", ""])));
        check("/api/chains/check", Some(("/api/chains/check", ["", ""])));
        check("/api/chains/check/cancel", Some(("/api/chains/{id}/cancel", ["check", ""])));
        check("/ws", Some(("/ws", ["", ""])));
        check("/api/objects/model/a%2Fb", Some(("/api/objects/{kind}/{name}", ["model", "a/b"])));
        let resource = "/.well-known/oauth-protected-resource/mcp";
        check(&format!("{resource}/"), Some((resource, ["", ""])));
    }

    #[test]
    fn hostile_paths_name_nothing() {
        for path in
            ["", "*", "/", "//", "/api", "/api/", "/api/jobs/", "/api/jobs//wait", "/api/jobs/%ff", "/a/b/c/d/e/f/g"]
        {
            check(path, None);
        }
        check(&format!("/{}", "a/".repeat(100_000)), None);
    }

    #[test]
    fn every_operation_is_found_at_its_path() {
        for operation in operations() {
            let path: Vec<&str> =
                operation.path.split('/').map(|part| if part.starts_with('{') { "x" } else { part }).collect();
            let found = route(&path.join("/")).and_then(|route| route.operation(&operation.verb.method()));
            assert_eq!(found.map(|found| found.id), Some(operation.id));
        }
    }

    #[test]
    fn a_path_tells_its_methods() {
        let methods = |path: &str| route(path).expect("a path").methods();
        assert_eq!(methods("/api/jobs"), "GET, HEAD, POST");
        assert_eq!(methods("/api/jobs/a/cancel"), "POST");
        let jobs = route("/api/jobs").expect("a path");
        assert_eq!(jobs.operation(&Method::HEAD).map(|found| found.id), Some(OperationId::Jobs(Jobs::ListJobs)));
        assert!(jobs.operation(&Method::PUT).is_none());
    }

    #[test]
    fn paths_of_atlas_for_python_have_its_errors() {
        let paths: BTreeSet<&str> = operations().map(|operation| operation.path).collect();
        let plain = |path: &&str| route(&path.replace(['{', '}'], "")).is_some_and(|route| route.has_plain_errors());
        let plain: Vec<&str> = paths.into_iter().filter(plain).collect();
        expect_test::expect![[r#"
            /api/agents
            /api/chains
            /api/chains/{id}
            /api/events
            /api/health
            /api/hooks/{id}
            /api/jobs
            /api/jobs/{id}
            /api/jobs/{id}/events
            /api/jobs/{id}/wait
            /api/metrics
            /api/metrics/{agent}
            /api/orchestrator
            /api/security/policy
            /api/skills
            /api/traces
            /api/traces/{id}
            /api/triggers
            /api/triggers/{id}
            /api/triggers/{id}/fire
            /ws
        "#]]
        .assert_eq(&(plain.join("\n") + "\n"));
    }
}
