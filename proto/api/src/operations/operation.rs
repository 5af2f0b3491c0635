//! What a row of the table says.

use atlas_access::Right;
use http::{Method, StatusCode};
use schemars::JsonSchema;

use super::{NAMESPACE, OperationId};
use crate::catalogue::{BEHIND, Entry, FORBIDDEN, FOREIGN, INTERNAL, LATE, NO_METHOD, UNAUTHENTICATED, UNKNOWN_PATH};
use crate::types::{Shape, of};

/// One method of one path.
#[derive(Debug)]
pub struct Operation {
    /// Which one it is.
    pub id: OperationId,
    /// Its method.
    pub verb: Verb,
    /// Its path, with the parameters in braces.
    pub path: &'static str,
    /// One sentence on what it does.
    pub says: &'static str,
    /// The right that it needs.
    pub right: Right,
    /// Who else may use it.
    pub ownership: Ownership,
    /// Whether it is about things of one namespace; others are about the cluster.
    pub in_namespace: bool,
    /// Whether it is one of Atlas for Python. Names that such an operation does not know are ignored, as Atlas for Python ignores them; elsewhere
    /// they are refused.
    pub compatible: bool,
    /// Whether errors on its path are `{"error": …}`, as those of Atlas for Python are, unless a client asks for problem documents. One such
    /// operation of a path is enough.
    pub plain_errors: bool,
    /// Whether it changes what no command of the log changes.
    pub beside_the_log: bool,
    pub(crate) query: &'static [Parameter],
    /// What a request carries.
    pub body: Body,
    pub(crate) successes: &'static [Success],
    pub(crate) errors: &'static [&'static [Entry]],
}

/// Who may use an operation besides those who have its right.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ownership {
    /// Nobody.
    Any,
    /// Whoever began what it changes, with the right to submit jobs.
    OwnOrControl,
}

/// The methods of the interface.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verb {
    /// GET, and HEAD, which is GET without the body of the answer.
    Get,
    /// POST.
    Post,
    /// PUT.
    Put,
    /// DELETE.
    Delete,
}

/// A member of the query string, or a header of the request.
#[derive(Debug)]
pub struct Parameter {
    /// Its name.
    pub name: &'static str,
    /// Where it is.
    pub place: ParameterLocation,
    /// What it means.
    pub says: &'static str,
    /// Its values.
    pub kind: Kind,
}

/// Where a parameter is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ParameterLocation {
    /// In the query string.
    Query,
    /// Among the headers.
    Header,
}

/// The values of a parameter.
#[derive(Debug, Clone, Copy)]
pub enum Kind {
    /// Any text.
    Text,
    /// What a repeat is known by.
    Key,
    /// A number that is not negative and has no fraction.
    Whole,
    /// A number.
    Number,
    /// One of these. Something else is refused; where names are not, it counts as absent.
    Word(&'static [&'static str]),
    /// Anything; what is not a number counts as absent.
    Lenient,
    /// A number from 1 to [`LIMIT_MAX`](crate::LIMIT_MAX). In operations of Atlas for Python any text is accepted.
    Limit,
}

/// What a request carries.
#[derive(Debug, Clone, Copy)]
pub enum Body {
    /// Nothing.
    None,
    /// JSON of this type.
    Json(Shape),
    /// The same, or nothing.
    MaybeJson(Shape),
    /// A package: a tar archive, compressed with gzip.
    Package,
}

/// An answer to a request that is carried out.
#[derive(Debug)]
pub struct Success {
    pub(crate) status: StatusCode,
    pub(crate) says: &'static str,
    pub(crate) contents: &'static [Content],
}

/// The body of an answer.
#[derive(Debug, Clone, Copy)]
pub enum Content {
    /// JSON of this type.
    Json(Shape),
    /// A JSON array of it.
    List(Shape),
    /// Server-sent events whose data are JSON of this type.
    Events(Shape),
    /// Text or bytes of another type.
    Other(&'static str),
}

impl Body {
    /// JSON of this type.
    pub(crate) const fn json<T: JsonSchema>() -> Self {
        Self::Json(of::<T>())
    }

    /// The same, or nothing.
    pub(crate) const fn maybe_json<T: JsonSchema>() -> Self {
        Self::MaybeJson(of::<T>())
    }
}

impl Content {
    /// JSON of this type.
    pub(crate) const fn json<T: JsonSchema>() -> Self {
        Self::Json(of::<T>())
    }

    /// A JSON array of it.
    pub(crate) const fn list<T: JsonSchema>() -> Self {
        Self::List(of::<T>())
    }

    /// Server-sent events whose data are JSON of this type.
    pub(crate) const fn events<T: JsonSchema>() -> Self {
        Self::Events(of::<T>())
    }
}

/// What begins the paths of OpenAI's interface.
pub const OPENAI: &str = "/v1/";

/// What every operation may be refused with.
pub(crate) const ALWAYS: &[Entry] = &[FOREIGN, BEHIND, INTERNAL];
/// What those that need a right may be refused with.
const GUARDED: &[Entry] = &[UNAUTHENTICATED, FORBIDDEN];
/// What those with a parameter in their path may be: a name that is not a text names nothing.
const NAMED: &[Entry] = &[UNKNOWN_PATH];

impl Operation {
    /// The errors, each once, by code.
    pub fn errors(&self) -> Vec<Entry> {
        let named = if self.path.contains('{') { NAMED } else { &[] };
        let guarded = if self.right == Right::Public { &[] } else { GUARDED };
        let mut errors: Vec<Entry> =
            self.errors.iter().chain(&[ALWAYS, named, guarded]).copied().flatten().copied().collect();
        errors.sort_by_key(|entry| entry.code);
        errors.dedup();
        errors
    }

    /// What an answer with this status may be; nothing if the operation has no such success.
    pub fn contents(&self, status: StatusCode) -> impl Iterator<Item = &'static Content> {
        self.successes.iter().filter(move |success| success.status == status).flat_map(|success| success.contents)
    }

    /// Whether errors on its path have the form of OpenAI's.
    pub fn has_openai_errors(&self) -> bool {
        self.path.starts_with(OPENAI)
    }

    /// Its parameters outside the path.
    pub fn parameters(&self) -> impl Iterator<Item = &'static Parameter> {
        self.query.iter().chain(self.in_namespace.then_some(&NAMESPACE))
    }

    /// The names in braces.
    pub(crate) fn path_parameters(&self) -> impl Iterator<Item = &'static str> {
        self.path.split('/').filter_map(|segment| segment.strip_prefix('{')?.strip_suffix('}'))
    }

    /// The statuses of the errors with what they mean, ascending.
    pub(crate) fn refusals(&self) -> Vec<(StatusCode, Vec<Entry>)> {
        let mut refusals: Vec<(StatusCode, Vec<Entry>)> = Vec::new();
        for entry in self.errors() {
            let status = status_of(&entry);
            match refusals.iter_mut().find(|(known, _)| *known == status) {
                Some((_, entries)) => entries.push(entry),
                None => refusals.push((status, vec![entry])),
            }
        }
        refusals.sort_by_key(|(status, _)| *status);
        refusals
    }
}

impl Verb {
    /// The word of the method.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Get => "GET",
            Self::Post => "POST",
            Self::Put => "PUT",
            Self::Delete => "DELETE",
        }
    }

    /// The method of a request.
    pub fn method(self) -> Method {
        match self {
            Self::Get => Method::GET,
            Self::Post => Method::POST,
            Self::Put => Method::PUT,
            Self::Delete => Method::DELETE,
        }
    }

    /// Whether a request with this method is one of it.
    pub(crate) fn takes(self, method: &Method) -> bool {
        self.method() == *method || self == Self::Get && *method == Method::HEAD
    }
}

/// The HTTP status of an error: that of its kind, unless HTTP has a more specific one.
pub fn status_of(entry: &Entry) -> StatusCode {
    match *entry {
        NO_METHOD => StatusCode::METHOD_NOT_ALLOWED,
        LATE => StatusCode::REQUEST_TIMEOUT,
        UNAUTHENTICATED => StatusCode::UNAUTHORIZED,
        Entry { kind, .. } => StatusCode::from_u16(kind.http_status()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR),
    }
}
