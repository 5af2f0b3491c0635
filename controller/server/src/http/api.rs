//! The interface as data: every operation with its parameters and answers.
//!
//! The door serves exactly this table, and the OpenAPI document and the reference are generated from it, so the three
//! always agree. The bodies' schemas are in `api/schemas.json`.

mod document;
mod names;
mod operations;
mod reference;
mod rights;

use atlas_access::Right;
use atlas_service::Entry;
use atlas_service::catalogue::{BEHIND, FORBIDDEN, FOREIGN, INTERNAL, UNAUTHENTICATED, UNKNOWN_PATH};
use http::{Method, StatusCode};

use super::answer::status_of;

pub(crate) use document::document;
pub(crate) use names::check_members;
pub(crate) use operations::operations;

/// One method of one path.
#[derive(Debug)]
pub(crate) struct Operation {
    /// What programs call it.
    id: &'static str,
    verb: Verb,
    /// With its parameters in braces.
    path: &'static str,
    /// One sentence on what it does.
    says: &'static str,
    query: &'static [Parameter],
    body: Body,
    successes: &'static [Success],
    /// What it is refused with, besides [`ALWAYS`].
    errors: &'static [&'static [Entry]],
    /// Names that it does not know are ignored, as Atlas for Python ignores them. Elsewhere they are refused.
    lenient: bool,
}

/// The methods that the door knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Verb {
    Get,
    Post,
    Put,
    Delete,
}

/// A member of the query string, or a header of the request.
#[derive(Debug)]
struct Parameter {
    name: &'static str,
    place: ParameterLocation,
    says: &'static str,
    kind: Kind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ParameterLocation {
    Query,
    Header,
}

/// The values of a parameter.
#[derive(Debug, Clone, Copy)]
enum Kind {
    Text,
    /// What a repeat is known by.
    Key,
    /// A number that is not negative and has no fraction.
    Whole,
    Number,
    /// One of these. Something else is refused; where names are not, it counts as absent.
    Word(&'static [&'static str]),
    /// Anything; what is not a number counts as absent.
    Lenient,
    /// A number from 1 to [`LIMIT_MAX`](super::query::LIMIT_MAX). On the paths of Atlas for Python any text is accepted.
    Limit,
}

/// What a request carries.
#[derive(Debug, Clone, Copy)]
enum Body {
    None,
    /// JSON of this schema.
    Json(&'static str),
    /// The same, or nothing.
    MaybeJson(&'static str),
    /// A package: a tar archive, compressed with gzip.
    Package,
}

/// An answer to a request that is carried out.
#[derive(Debug)]
struct Success {
    status: StatusCode,
    says: &'static str,
    contents: &'static [Content],
}

/// The body of an answer.
#[derive(Debug, Clone, Copy)]
enum Content {
    /// JSON of this schema.
    Json(&'static str),
    /// A JSON array of it.
    List(&'static str),
    /// Server-sent events whose data are JSON of this schema.
    Events(&'static str),
    /// Text or bytes of another type.
    Other(&'static str),
}

/// What the paths of operations on things in a namespace begin with.
const IN_NAMESPACE: &[&str] = &[
    "/api/jobs",
    "/api/agents",
    "/api/events",
    "/ws",
    "/api/cluster/events",
    "/api/objects/",
    "/api/secrets/",
    "/api/models/",
    "/api/mcp-servers/",
    "/api/skills",
    "/api/chains",
    "/api/triggers",
    "/api/hooks/",
    "/api/conversations",
    "/.well-known/mcp/",
    "/api/traces",
    "/api/orchestrator",
    "/api/policies/",
    "/api/questions",
];

/// What every operation may be refused with.
const ALWAYS: &[Entry] = &[FOREIGN, BEHIND, INTERNAL];
/// What those that need a right may be refused with.
const GUARDED: &[Entry] = &[UNAUTHENTICATED, FORBIDDEN];
/// What those with a parameter in their path may be: a name that is not a text names nothing.
const NAMED: &[Entry] = &[UNKNOWN_PATH];

impl Operation {
    /// The errors, each once, by code.
    fn errors(&self) -> Vec<Entry> {
        let named = if self.path.contains('{') { NAMED } else { &[] };
        let guarded = if self.right() == Right::Public { &[] } else { GUARDED };
        let mut errors: Vec<Entry> =
            self.errors.iter().chain(&[ALWAYS, named, guarded]).copied().flatten().copied().collect();
        errors.sort_by_key(|entry| entry.code);
        errors.dedup();
        errors
    }

    /// Its parameters outside the path.
    fn parameters(&self) -> impl Iterator<Item = &'static Parameter> {
        let namespace = self.is_in_namespace().then_some(&operations::NAMESPACE);
        self.query.iter().chain(namespace)
    }

    pub(crate) fn id(&self) -> &'static str {
        self.id
    }

    #[cfg(test)]
    pub(crate) fn path(&self) -> &'static str {
        self.path
    }

    #[cfg(test)]
    pub(crate) fn method(&self) -> &'static str {
        match self.verb {
            Verb::Get => "GET",
            Verb::Post => "POST",
            Verb::Put => "PUT",
            Verb::Delete => "DELETE",
        }
    }

    /// The right that it needs. One without a row needs the right to change who may do what, so that a forgotten row opens nothing.
    pub(crate) fn right(&self) -> Right {
        rights::of(self.id).unwrap_or(Right::AccessManage)
    }

    /// Whether whoever began what it changes may do it without that right, with the one to submit jobs.
    pub(crate) fn is_of_owner(&self) -> bool {
        rights::OF_OWNER.contains(&self.id)
    }

    /// Whether it changes what no command of the log changes.
    pub(crate) fn is_beside_the_log(&self) -> bool {
        ["removeMember", "transferLeader", "snapshot"].contains(&self.id)
    }

    /// Whether it is about things of one namespace.
    pub(crate) fn is_in_namespace(&self) -> bool {
        IN_NAMESPACE.iter().any(|prefix| self.path.starts_with(prefix))
    }

    /// The names in braces.
    fn path_parameters(&self) -> impl Iterator<Item = &'static str> {
        self.path.split('/').filter_map(|segment| segment.strip_prefix('{')?.strip_suffix('}'))
    }

    /// Whether a request is one of this.
    fn is(&self, path: &str, method: &Method) -> bool {
        // HEAD is GET without a body.
        self.path == path && (self.verb.method() == *method || self.verb == Verb::Get && *method == Method::HEAD)
    }
}

impl Verb {
    fn method(self) -> Method {
        match self {
            Self::Get => Method::GET,
            Self::Post => Method::POST,
            Self::Put => Method::PUT,
            Self::Delete => Method::DELETE,
        }
    }
}

/// What a method does on a path, as the table writes it.
pub(crate) fn find(path: &str, method: &Method) -> Option<&'static Operation> {
    operations().find(|operation| operation.is(path, method))
}

/// The methods of a path.
pub(crate) fn methods(path: &str) -> String {
    let mut methods: Vec<String> = Vec::new();
    for operation in operations().filter(|operation| operation.path == path) {
        methods.push(operation.verb.method().to_string());
        if operation.verb == Verb::Get {
            methods.push(Method::HEAD.to_string());
        }
    }
    methods.sort_unstable();
    methods.join(", ")
}

/// The statuses of the errors with what they mean, ascending.
fn refusals(operation: &Operation) -> Vec<(StatusCode, Vec<Entry>)> {
    let mut refusals: Vec<(StatusCode, Vec<Entry>)> = Vec::new();
    for entry in operation.errors() {
        let status = status_of(&entry);
        match refusals.iter_mut().find(|(known, _)| *known == status) {
            Some((_, entries)) => entries.push(entry),
            None => refusals.push((status, vec![entry])),
        }
    }
    refusals.sort_by_key(|(status, _)| *status);
    refusals
}

#[cfg(test)]
mod tests {
    use super::super::route::Route;
    use super::*;

    #[test]
    fn every_operation_has_its_route() {
        for operation in operations() {
            let path: Vec<&str> =
                operation.path.split('/').map(|part| if part.starts_with('{') { "x" } else { part }).collect();
            let route = Route::of(&path.join("/")).map(|route| route.template());
            assert_eq!(route, Some(operation.path), "{}", operation.id);
        }
    }

    #[test]
    fn operations_have_names_of_their_own() {
        let mut ids: Vec<&str> = operations().map(|operation| operation.id).collect();
        ids.sort_unstable();
        assert!(ids.is_sorted_by(|a, b| a < b), "{ids:?}");
        for operation in operations() {
            let same = operations().filter(|other| other.path == operation.path && other.verb == operation.verb);
            assert_eq!(same.count(), 1, "{}", operation.id);
        }
    }

    #[test]
    fn a_path_tells_its_methods() {
        assert_eq!(methods("/api/jobs"), "GET, HEAD, POST");
        assert_eq!(methods("/api/jobs/{id}/cancel"), "POST");
        assert_eq!(find("/api/jobs", &Method::HEAD).map(|operation| operation.id), Some("listJobs"));
        assert!(find("/api/jobs", &Method::PUT).is_none());
    }
}
