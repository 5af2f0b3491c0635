//! What operations have in common: their errors, their parameters, and the functions that make one.

use atlas_access::Right;
use http::StatusCode;

use super::operation::{Body, Content, Kind, Operation, Ownership, Parameter, ParameterLocation, Success, Verb};
use super::{Access, OperationId};
use crate::catalogue::Entry;
use crate::catalogue::{
    AMBIGUOUS_JOB, ARTIFACT_MISSING, AUDIT_FAILING, HISTORY_BEHIND, LATE, LEVEL_TOO_LOW, MALFORMED, NO_LEADER,
    NO_SPACE, OUTCOME_UNKNOWN, OVERLOADED, PEERS_AWAY, REQUEST_CONFLICT, TOO_LARGE, UNKNOWN_JOB,
};

/// What a read needs besides what it reads.
pub(super) const READ: &[Entry] = &[MALFORMED, NO_LEADER, OVERLOADED];
/// What is read may have moved to history or to an artifact.
pub(super) const STORED: &[Entry] = &[HISTORY_BEHIND, ARTIFACT_MISSING, PEERS_AWAY];
/// What a change needs.
pub(super) const WRITE: &[Entry] =
    &[MALFORMED, NO_LEADER, OVERLOADED, OUTCOME_UNKNOWN, NO_SPACE, AUDIT_FAILING, REQUEST_CONFLICT, LEVEL_TOO_LOW];
/// What goes wrong with a body.
pub(super) const BODY: &[Entry] = &[MALFORMED, TOO_LARGE, LATE];
/// A job that is named.
pub(super) const JOB: &[Entry] = &[UNKNOWN_JOB, AMBIGUOUS_JOB];

pub(super) const VIEW: Parameter =
    word("view", &["full", "plain"], "`full` adds the members that Atlas for Python does not have");
pub(super) const CONSISTENCY: Parameter = word(
    "consistency",
    &["stale", "linearizable"],
    "`stale` answers from the state of this controller, without asking the others",
);
pub(super) const LIMIT: Parameter = query("limit", Kind::Limit, "maximum number, 1 to 1000; 50 if it is not a number");
pub(super) const LIMIT_OF_ALL: Parameter = query("limit", Kind::Limit, "maximum number, 1 to 1000; defaults to all");
pub(super) const OFFSET: Parameter = query("offset", Kind::Whole, "number to skip");
pub(super) const IDEMPOTENCY_KEY: Parameter = Parameter {
    name: "Idempotency-Key",
    place: ParameterLocation::Header,
    says: "up to 255 characters; a repeat with the same key gets the first answer",
    kind: Kind::Key,
};
pub(super) const IF_MATCH: Parameter = Parameter {
    name: "If-Match",
    place: ParameterLocation::Header,
    says: "the revision that the object must have, in quotation marks",
    kind: Kind::Text,
};
pub(super) const IF_NONE_MATCH: Parameter = Parameter {
    name: "If-None-Match",
    place: ParameterLocation::Header,
    says: "`*`: there must be no such object",
    kind: Kind::Text,
};
pub(super) const DRY_RUN: Parameter =
    word("dry_run", &["true", "false"], "`true` checks the request and changes nothing");
/// What operations on things in a namespace take besides their own parameters.
pub(crate) const NAMESPACE: Parameter = query("namespace", Kind::Text, "the namespace; defaults to `default`");
pub(super) const DELTAS: Parameter = word(
    "deltas",
    &["true", "false"],
    "`true` adds pieces of models' answers to the stream: events `delta`, `gap`, `reset`",
);
pub(super) const STRICT: Parameter =
    word("strict", &["true", "false"], "`true` refuses what is accepted with a header `Warning` otherwise");
pub(super) const FAMILY: Parameter = word(
    "family",
    &["true", "false"],
    "`true` also waits for the retries of a failed job and returns the last of them",
);
pub(super) const AFTER: Parameter =
    query("after", Kind::Lenient, "the last event seen, for clients that cannot send `Last-Event-ID`");

pub(super) const fn query(name: &'static str, kind: Kind, says: &'static str) -> Parameter {
    Parameter { name, place: ParameterLocation::Query, says, kind }
}

pub(super) const fn word(name: &'static str, words: &'static [&'static str], says: &'static str) -> Parameter {
    query(name, Kind::Word(words), says)
}

/// Who may use an operation, and on what.
#[derive(Debug, Clone, Copy)]
pub(super) struct Rule {
    right: Right,
    ownership: Ownership,
    in_namespace: bool,
}

/// A row that opens nothing.
pub(super) const fn forgotten() -> Operation {
    operation(Verb::Get, Access::CreateToken.id(), in_cluster(Right::AccessManage), "", "")
}

/// What belongs to one namespace.
pub(super) const fn in_namespace(right: Right) -> Rule {
    Rule { right, ownership: Ownership::Any, in_namespace: true }
}

/// What belongs to the cluster.
pub(super) const fn in_cluster(right: Right) -> Rule {
    Rule { right, ownership: Ownership::Any, in_namespace: false }
}

/// A change of what the caller began itself, or of anything in the namespace with the right to control jobs.
pub(super) const OWN_OR_CONTROL: Rule =
    Rule { right: Right::JobsControl, ownership: Ownership::OwnOrControl, in_namespace: true };

pub(super) const fn get(id: OperationId, rule: Rule, path: &'static str, says: &'static str) -> Operation {
    operation(Verb::Get, id, rule, path, says)
}

pub(super) const fn post(id: OperationId, rule: Rule, path: &'static str, says: &'static str) -> Operation {
    operation(Verb::Post, id, rule, path, says)
}

pub(super) const fn put(id: OperationId, rule: Rule, path: &'static str, says: &'static str) -> Operation {
    operation(Verb::Put, id, rule, path, says)
}

pub(super) const fn delete(id: OperationId, rule: Rule, path: &'static str, says: &'static str) -> Operation {
    operation(Verb::Delete, id, rule, path, says)
}

const fn operation(verb: Verb, id: OperationId, rule: Rule, path: &'static str, says: &'static str) -> Operation {
    let Rule { right, ownership, in_namespace } = rule;
    Operation {
        id,
        verb,
        path,
        says,
        right,
        ownership,
        in_namespace,
        compatible: false,
        plain_errors: false,
        beside_the_log: false,
        query: &[],
        body: Body::None,
        successes: &[],
        errors: &[],
    }
}

impl Operation {
    pub(super) const fn takes(mut self, query: &'static [Parameter]) -> Self {
        self.query = query;
        self
    }

    pub(super) const fn body(mut self, body: Body) -> Self {
        self.body = body;
        self
    }

    pub(super) const fn answers(mut self, successes: &'static [Success]) -> Self {
        self.successes = successes;
        self
    }

    /// One that Atlas for Python has.
    pub(super) const fn compatible(mut self) -> Self {
        (self.compatible, self.plain_errors) = (true, true);
        self
    }

    /// One on a path of Atlas for Python that is not lenient about names.
    pub(super) const fn plain_errors(mut self) -> Self {
        self.plain_errors = true;
        self
    }

    /// One that changes what no command of the log changes.
    pub(super) const fn beside_the_log(mut self) -> Self {
        self.beside_the_log = true;
        self
    }

    pub(super) const fn refuses(mut self, errors: &'static [&'static [Entry]]) -> Self {
        self.errors = errors;
        self
    }
}

pub(super) const fn ok(says: &'static str, contents: &'static [Content]) -> Success {
    Success { status: StatusCode::OK, says, contents }
}

pub(super) const fn created(says: &'static str, contents: &'static [Content]) -> Success {
    Success { status: StatusCode::CREATED, says, contents }
}

/// The form of the instruments.
pub(super) const METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

pub(super) const UPGRADED: Success =
    Success { status: StatusCode::SWITCHING_PROTOCOLS, says: "a WebSocket with the same frames", contents: &[] };
