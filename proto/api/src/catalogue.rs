//! The error catalogue: every code with its kind and title, in one table. Each has a page in `docs/reference/errors/`.

use atlas_types::ErrorKind;

/// An error code and the properties of all errors with this code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Entry {
    /// `E` and four digits. A code is never reused for another meaning.
    pub code: &'static str,
    /// The kind, which determines what a caller can do.
    pub kind: ErrorKind,
    /// The page's title.
    pub title: &'static str,
}

impl Entry {
    /// Whether the cause can pass without a person, so that a repeat may succeed.
    pub fn passes(&self) -> bool {
        let needs_a_person =
            [LEVEL_TOO_LOW, AUDIT_FAILING, UNCONFINED, LOOP_LEVEL, MCP_SERVER, STORE_FAILED].contains(self);
        matches!(self.kind, ErrorKind::Busy | ErrorKind::Unavailable | ErrorKind::NoSpace) && !needs_a_person
    }
}

macro_rules! catalogue {
    ($( $name:ident = $code:literal $kind:ident $title:literal; )*) => {
        $( #[doc = $title] pub const $name: Entry = Entry { code: $code, kind: ErrorKind::$kind, title: $title }; )*

        /// All codes of the controller's doors, ascending.
        pub const ENTRIES: &[Entry] = &[$( $name, )*];

        /// The Markdown page of an error code.
        pub fn page(code: &str) -> Option<&'static str> {
            match code {
                $( $code => Some(include_str!(concat!("../../../docs/reference/errors/", $code, ".md"))), )*
                _ => None,
            }
        }
    };
}

catalogue! {
    UNKNOWN_AGENT = "E1101" NotFound "no such agent";
    INPUT_REFUSED = "E1102" Invalid "the input does not fit the contract";
    CONTRACT_REFUSED = "E1103" Invalid "the contract is not valid";
    MALFORMED = "E1104" Invalid "the request is malformed";
    PACKAGE_REFUSED = "E1105" Invalid "the package cannot be read";
    UNKNOWN_PATH = "E1107" NotFound "no such path";
    NO_METHOD = "E1108" Invalid "method not allowed";
    LATE = "E1109" Timeout "the request body was not received in time";
    OUTPUT_REFUSED = "E1111" Invalid "the output does not fit the contract";
    DEPENDENCY_MISSING = "E1112" NotFound "a required agent is missing";
    NOT_CONFIGURED = "E1113" NotFound "not configured";
    AGENT_IN_USE = "E1114" Conflict "the agent version is in use";
    UNKNOWN_OBJECT = "E1115" NotFound "no such object";
    OBJECT_CHANGED = "E1116" Conflict "the object is not at the expected revision";
    UNKNOWN_OBJECT_KIND = "E1117" NotFound "no such kind of object";
    OBJECT_REFUSED = "E1118" Invalid "the object is refused by its kind";
    OBJECT_IN_USE = "E1119" Conflict "the object is in use";
    CONVERSATION_BUSY = "E1120" Busy "the conversation is answering";
    VERSION_TAKEN = "E1127" Conflict "the version has another package";
    UNKNOWN_REVISION = "E1128" NotFound "no such revision";
    UNKNOWN_ORCHESTRATOR = "E1141" NotFound "no such orchestrator";
    NOT_AN_ORCHESTRATOR = "E1142" Invalid "the agent is no orchestrator";
    CHAIN_CYCLE = "E1143" Invalid "the chain calls itself";
    FOREIGN = "E2101" Denied "the request comes from another site";
    TOKEN_REFUSED = "E2102" Denied "the join token is refused";
    NAMESPACE_LIMIT = "E2103" Busy "a limit of the namespace is reached";
    NOT_PRIVATE = "E2104" Denied "the worker is not sent secrets and credentials";
    NO_SECRETS_KEY = "E2105" Denied "no key of secrets";
    UNAUTHENTICATED = "E2106" Denied "the request has no valid token";
    FORBIDDEN = "E2107" Denied "a right is missing";
    NOT_ENROLLED = "E2108" Denied "the node may not connect";
    NO_TLS = "E2109" Denied "the cluster has no TLS";
    BAD_SIGNATURE = "E2110" Denied "the signature of a call is wrong";
    POLICY_DENIED = "E2111" Denied "a policy does not allow it";
    NOT_APPROVED = "E2112" Denied "the job was not approved";
    APPROVAL_LATE = "E2113" Denied "the job was not approved in time";
    APPROVAL_NEEDED = "E2114" Denied "this needs an approval that it cannot wait for";
    NAMESPACE_FULL = "E2115" Denied "a limit of the namespace needs a person";
    UNKNOWN_JOB = "E3001" NotFound "no such job";
    AMBIGUOUS_JOB = "E3002" Conflict "several jobs match this prefix";
    QUEUE_FULL = "E3003" Busy "the queue is full";
    REQUEST_CONFLICT = "E3004" Conflict "the idempotency key was used with another body";
    WRONG_STATUS = "E3005" Conflict "not possible in the job's status";
    TOO_LARGE = "E3006" TooLarge "the request is too large";
    EVENTS_GONE = "E3007" Gone "the requested events have been dropped";
    LIMIT_REACHED = "E3008" Busy "a limit of the cluster is reached";
    CLUSTER_FULL = "E3009" Denied "a limit of the cluster needs a person";
    ARTIFACT_MISSING = "E3010" Gone "an artifact is missing or damaged";
    NOT_IN_DOUBT = "E3011" Conflict "the job is not in doubt";
    SPAWN_REFUSED = "E3012" Denied "spawning the job is not allowed";
    STEP_DIFFERS = "E3013" Conflict "the step does not match the journal";
    JOURNAL_GONE = "E3014" Gone "the journal of the job can no longer be resumed";
    CREDENTIAL_LOST = "E3015" Gone "the credential of the caller was lost";
    NO_SUCH_STEP = "E3016" Invalid "the job has not recorded this step";
    STEP_IN_DOUBT = "E3017" Conflict "a step of the job is in doubt";
    PROGRAM_TOO_LARGE = "E3018" Conflict "a durable program goes beyond a limit";
    NO_JOURNAL_ROOM = "E3020" Busy "the cluster has no room for another journal";
    UNKNOWN_RUN = "E3030" NotFound "no such chain run";
    UNKNOWN_TRACE = "E3031" NotFound "no such trace";
    UNKNOWN_QUESTION = "E3040" NotFound "no such question";
    QUESTION_CLOSED = "E3041" Conflict "the question is not open any more";
    NOT_ANSWERER = "E3042" Denied "the question is for others to answer";
    ANSWER_REFUSED = "E3043" Invalid "the answer does not fit the question";
    UNATTENDED = "E3044" Denied "nobody is there to answer the job's question";
    UNCONFINED = "E3106" Unavailable "the agent could not be confined";
    OUT_OF_MEMORY = "E3107" Denied "the agent used more memory than its contract permits";
    OUT_OF_CPU = "E3108" Denied "the agent used more processor time than its contract permits";
    MODEL_CALL = "E3201" Unavailable "a model call failed";
    NO_MODEL = "E3202" NotFound "there is no model for the agent";
    BUDGET_SPENT = "E3203" Denied "the budget of the job does not suffice";
    NO_VISION = "E3204" Invalid "the model does not accept images";
    LOOP_LEVEL = "E3205" Unavailable "the worker has another agent loop than the job";
    TOOL_MISSING = "E3206" NotFound "a tool of the agent was not found";
    NO_LOGIN = "E3207" Denied "there is no login";
    MCP_SERVER = "E3208" Unavailable "an MCP server cannot be used";
    MODEL_REFUSED = "E3209" Denied "the model refused to answer";
    MODEL_CUT = "E3210" Invalid "the answer of the model was cut";
    MODEL_SILENT = "E3211" Unavailable "the model gave no answer";
    GRAPH_FAILED = "E3301" Invalid "the run of a graph failed";
    DEFINITION = "E3302" Invalid "the definition of an agent cannot be used";
    NO_LEADER = "E4001" Unavailable "no leader";
    OUTCOME_UNKNOWN = "E4003" Unavailable "the outcome is unknown";
    OVERLOADED = "E4004" Busy "the controller is overloaded";
    PEERS_AWAY = "E4006" Unavailable "too few controllers are reachable";
    LEVEL_TOO_LOW = "E4007" Unavailable "not all controllers support this feature yet";
    HISTORY_BEHIND = "E4008" Unavailable "history is behind";
    NO_SPACE = "E4009" NoSpace "the disk is nearly full";
    BEHIND = "E4010" Unavailable "the controller is behind";
    NO_BACKUP = "E4011" Busy "a backup is not possible at the moment";
    AUDIT_FAILING = "E4012" Unavailable "changes cannot be recorded";
    STORE_FAILED = "E4014" Unavailable "a store of memory or knowledge failed";
    UNKNOWN_NODE = "E5001" NotFound "no such node";
    NODE_BUSY = "E5002" Conflict "the node still has leases";
    LABEL_OF_WORKER = "E5003" Conflict "the label is set by the worker";
    NODE_TAKEN = "E5004" Conflict "another worker has the name of the node";
    UNKNOWN_MEMBER = "E6001" NotFound "no such member";
    MEMBERSHIP_REFUSED = "E6002" Conflict "membership change refused";
    MEMBER_BEHIND = "E6003" Unavailable "the member has not caught up";
    NAME_TAKEN = "E6004" Conflict "another member has this name";
    TOO_OLD = "E6005" Conflict "the program is too old for the cluster";
    INTERNAL = "E9001" Internal "internal error";
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use super::*;

    #[test]
    fn codes_ascend() {
        assert!(ENTRIES.is_sorted_by(|a, b| a.code < b.code));
    }

    #[test]
    fn every_code_has_its_page() {
        let pages = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/errors");
        for Entry { code, title, .. } in ENTRIES {
            let page = fs::read_to_string(pages.join(format!("{code}.md"))).unwrap_or_default();
            assert!(page.starts_with(&format!("# {code}: {title}\n")), "docs/reference/errors/{code}.md");
            for heading in ["\n## Cause\n", "\n## What to try\n"] {
                assert!(page.contains(heading), "{code}: {}", heading.trim());
            }
        }
    }
}
