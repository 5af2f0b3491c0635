//! The table itself.

use atlas_service::Entry;
use atlas_service::catalogue::{
    AGENT_IN_USE, AMBIGUOUS_JOB, ARTIFACT_MISSING, CONTRACT_REFUSED, DEPENDENCY_MISSING, EVENTS_GONE, HISTORY_BEHIND,
    INPUT_REFUSED, LABEL_OF_WORKER, LATE, LEVEL_TOO_LOW, LIMIT_REACHED, MALFORMED, MEMBER_BEHIND, MEMBERSHIP_REFUSED,
    NO_BACKUP, NO_LEADER, NO_SPACE, NODE_BUSY, NOT_CONFIGURED, NOT_IN_DOUBT, OUTCOME_UNKNOWN, OUTPUT_REFUSED,
    OVERLOADED, PACKAGE_REFUSED, PEERS_AWAY, QUEUE_FULL, REQUEST_CONFLICT, TOO_LARGE, UNKNOWN_AGENT, UNKNOWN_JOB,
    UNKNOWN_MEMBER, UNKNOWN_NODE, WRONG_STATUS,
};
use http::StatusCode;

use super::{Body, Content, Kind, Operation, Parameter, Place, Success, Verb};

/// What a read needs besides what it reads.
const READ: &[Entry] = &[MALFORMED, NO_LEADER, OVERLOADED];
/// What is read may have moved to history or to an artifact.
const STORED: &[Entry] = &[HISTORY_BEHIND, ARTIFACT_MISSING, PEERS_AWAY];
/// What a change needs.
const WRITE: &[Entry] = &[MALFORMED, NO_LEADER, OVERLOADED, OUTCOME_UNKNOWN, NO_SPACE, REQUEST_CONFLICT, LEVEL_TOO_LOW];
/// What goes wrong with a body.
const BODY: &[Entry] = &[MALFORMED, TOO_LARGE, LATE];
/// A job that is named.
const JOB: &[Entry] = &[UNKNOWN_JOB, AMBIGUOUS_JOB];

const VIEW: Parameter = word("view", &["full", "plain"], "`full` adds the members that are ours");
const CONSISTENCY: Parameter = word(
    "consistency",
    &["stale", "linearizable"],
    "`stale` answers from what this controller has, without asking the others",
);
const LIMIT: Parameter = query("limit", Kind::Lenient, "how many, 1 to 1000; 50 unless it is a number");
const LIMIT_OF_ALL: Parameter = query("limit", Kind::Lenient, "how many, 1 to 1000; all unless given");
const OFFSET: Parameter = query("offset", Kind::Whole, "how many to skip");
const IDEMPOTENCY_KEY: Parameter = Parameter {
    name: "Idempotency-Key",
    place: Place::Header,
    says: "up to 255 characters; a repeat with the same key gets the first answer",
    kind: Kind::Key,
};
const FAMILY: Parameter = word(
    "family",
    &["true", "false"],
    "`true` goes on waiting while a failed job is retried; then the answer is the last of its retries",
);
const AFTER: Parameter =
    query("after", Kind::Lenient, "the last event seen, for those who cannot send `Last-Event-ID`");

const fn query(name: &'static str, kind: Kind, says: &'static str) -> Parameter {
    Parameter { name, place: Place::Query, says, kind }
}

const fn word(name: &'static str, words: &'static [&'static str], says: &'static str) -> Parameter {
    query(name, Kind::Word(words), says)
}

const fn operation(verb: Verb, id: &'static str, path: &'static str, says: &'static str) -> Operation {
    Operation { id, verb, path, says, query: &[], body: Body::None, successes: &[], errors: &[], lenient: false }
}

const fn get(id: &'static str, path: &'static str, says: &'static str) -> Operation {
    operation(Verb::Get, id, path, says)
}

const fn post(id: &'static str, path: &'static str, says: &'static str) -> Operation {
    operation(Verb::Post, id, path, says)
}

const fn delete(id: &'static str, path: &'static str, says: &'static str) -> Operation {
    operation(Verb::Delete, id, path, says)
}

impl Operation {
    const fn takes(mut self, query: &'static [Parameter]) -> Self {
        self.query = query;
        self
    }

    const fn body(mut self, body: Body) -> Self {
        self.body = body;
        self
    }

    const fn answers(mut self, successes: &'static [Success]) -> Self {
        self.successes = successes;
        self
    }

    /// One that Atlas for Python has.
    const fn lenient(mut self) -> Self {
        self.lenient = true;
        self
    }

    const fn refuses(mut self, errors: &'static [&'static [Entry]]) -> Self {
        self.errors = errors;
        self
    }
}

const fn ok(says: &'static str, contents: &'static [Content]) -> Success {
    Success { status: StatusCode::OK, says, contents }
}

const fn created(says: &'static str, contents: &'static [Content]) -> Success {
    Success { status: StatusCode::CREATED, says, contents }
}

const UPGRADED: Success =
    Success { status: StatusCode::SWITCHING_PROTOCOLS, says: "a WebSocket of the same frames", contents: &[] };

/// Every operation, by subject.
pub(crate) const OPERATIONS: &[Operation] = &[
    // Jobs.
    post("submitJob", "/api/jobs", "Submits a job; it is durable when the answer comes.")
        .lenient()
        .takes(&[
            word(
                "validate",
                &["refuse"],
                "`refuse` refuses what cannot run, instead of accepting it and letting it fail",
            ),
            query("wait", Kind::Number, "seconds to wait for the job's end; then the answer is the job"),
            FAMILY,
            VIEW,
            IDEMPOTENCY_KEY,
        ])
        .body(Body::Json("Submission"))
        .answers(&[
            created("the job is queued", &[Content::Json("Id")]),
            ok("with `wait`: the job when it has ended, or as it then stands", &[Content::Json("Job")]),
        ])
        .refuses(&[
            WRITE,
            BODY,
            STORED,
            &[UNKNOWN_AGENT, INPUT_REFUSED, DEPENDENCY_MISSING, QUEUE_FULL, LIMIT_REACHED],
        ]),
    post(
        "submitJobs",
        "/api/jobs:batch",
        "Submits many jobs, each with an answer of its own; taken jobs are durable then.",
    )
    .takes(&[
        word("validate", &["refuse"], "`refuse` refuses what cannot run, instead of accepting it and letting it fail"),
        query("queue_wait", Kind::Number, "seconds to wait for room while the queue is full; 0 unless given"),
        Parameter {
            says: "gives each job that has no `idempotency_key` the key `KEY.INDEX`, its index in the list from 0",
            ..IDEMPOTENCY_KEY
        },
    ])
    .body(Body::Json("Batch"))
    .answers(&[
        created("every job is queued", &[Content::Json("BatchResults")]),
        Success {
            status: StatusCode::MULTI_STATUS,
            says: "some jobs, or all, were refused; `Retry-After` is there if a repeat of some may succeed",
            contents: &[Content::Json("BatchResults")],
        },
    ])
    .refuses(&[BODY]),
    get("listJobs", "/api/jobs", "Jobs, newest first.")
        .lenient()
        .takes(&[
            query("status", Kind::Text, "only jobs with this status"),
            query("agent", Kind::Text, "only jobs of this agent"),
            query("since", Kind::Number, "submitted at or after this time, Unix seconds"),
            query("until", Kind::Number, "submitted at or before this time, Unix seconds"),
            LIMIT,
            OFFSET,
            VIEW,
            CONSISTENCY,
        ])
        .answers(&[ok("the jobs; large payloads of a long list are null", &[Content::List("Job")])])
        .refuses(&[READ, STORED]),
    get("getJob", "/api/jobs/{id}", "One job.")
        .lenient()
        .takes(&[
            query("wait", Kind::Number, "seconds to wait for the job's end, as `/api/jobs/{id}/wait` does"),
            FAMILY,
            VIEW,
            CONSISTENCY,
        ])
        .answers(&[ok("the job", &[Content::Json("Job")])])
        .refuses(&[READ, STORED, JOB]),
    delete(
        "deleteJob",
        "/api/jobs/{id}",
        "Cancels a pending job; false for every other, also for one that is not known.",
    )
    .lenient()
    .takes(&[IDEMPOTENCY_KEY])
    .answers(&[ok("whether it was cancelled", &[Content::Json("Cancelled")])])
    .refuses(&[WRITE, STORED, JOB]),
    get("waitForJob", "/api/jobs/{id}/wait", "The job when it has ended, or as it then stands.")
        .takes(&[query("timeout", Kind::Number, "seconds to wait at most; 60 unless given"), FAMILY, VIEW])
        .answers(&[ok("the job", &[Content::Json("Job")])])
        .refuses(&[READ, STORED, JOB]),
    get(
        "getJobTree",
        "/api/jobs/{id}/tree",
        "A job with the jobs that it spawned, as far as they have not left the state.",
    )
    .takes(&[CONSISTENCY])
    .answers(&[ok("the job in its full view, with its children", &[Content::Json("JobTree")])])
    .refuses(&[READ, STORED, JOB]),
    post("cancelJob", "/api/jobs/{id}/cancel", "Cancels a job, also one that runs, and the jobs that it spawned.")
        .takes(&[IDEMPOTENCY_KEY])
        .answers(&[ok("whether it was cancelled", &[Content::Json("Cancelled")])])
        .refuses(&[WRITE, STORED, JOB]),
    post("retryJob", "/api/jobs/{id}/retry", "Runs an ended job again, as a new one.")
        .takes(&[IDEMPOTENCY_KEY])
        .answers(&[created("the new job is queued", &[Content::Json("Id")])])
        .refuses(&[WRITE, STORED, JOB, &[WRONG_STATUS, UNKNOWN_AGENT, QUEUE_FULL, LIMIT_REACHED, TOO_LARGE]]),
    post("resolveJob", "/api/jobs/{id}/resolve", "Decides on a job in doubt.")
        .takes(&[IDEMPOTENCY_KEY])
        .body(Body::Json("Decision"))
        .answers(&[ok("the status after it", &[Content::Json("Resolved")])])
        .refuses(&[WRITE, BODY, STORED, JOB, &[NOT_IN_DOUBT, WRONG_STATUS, OUTPUT_REFUSED]]),
    get("followJob", "/api/jobs/{id}/events", "The changes of one job, until it has ended.")
        .lenient()
        .takes(&[
            word("follow", &["true", "false"], "`false` ends the stream with what has happened so far"),
            AFTER,
            VIEW,
        ])
        .answers(&[ok("the changes so far and those to come", &[Content::Events("Change")]), UPGRADED])
        .refuses(&[READ, STORED, JOB, &[EVENTS_GONE]]),
    get("jobLogs", "/api/jobs/{id}/logs", "Log lines, progress and tokens of a job.")
        .takes(&[AFTER])
        .answers(&[ok("the lines so far, or a stream of them", &[Content::List("Line"), Content::Events("Line")])])
        .refuses(&[READ, STORED, JOB]),
    // Events.
    get("followAll", "/api/events", "The changes of all jobs.")
        .lenient()
        .takes(&[AFTER, VIEW])
        .answers(&[ok("the changes from now on, or after an event", &[Content::Events("Change")]), UPGRADED])
        .refuses(&[READ, STORED, &[EVENTS_GONE]]),
    get("followAllAtWs", "/ws", "The same as `/api/events`.")
        .takes(&[AFTER, VIEW])
        .answers(&[ok("the changes from now on, or after an event", &[Content::Events("Change")]), UPGRADED])
        .refuses(&[READ, STORED, &[EVENTS_GONE]]),
    // Agents.
    get("listAgents", "/api/agents", "Agent versions by name and version.")
        .takes(&[
            word("all", &["true", "false"], "`true` retired versions too, `false` only the latest of each name"),
            query("name", Kind::Text, "only versions of this agent"),
            query("capability", Kind::Text, "only versions that list exactly this capability"),
            query(
                "q",
                Kind::Text,
                "only versions with this text in name, description or a capability, whatever its case",
            ),
            LIMIT_OF_ALL,
            OFFSET,
            VIEW,
            CONSISTENCY,
        ])
        .answers(&[ok("the versions", &[Content::List("Agent")])])
        .refuses(&[READ, STORED]),
    post("registerAgent", "/api/agents", "Registers an agent from its package.")
        .takes(&[IDEMPOTENCY_KEY])
        .body(Body::Package)
        .answers(&[created("the version takes jobs", &[Content::Json("Registered")])])
        .refuses(&[WRITE, BODY, &[PACKAGE_REFUSED, CONTRACT_REFUSED, LIMIT_REACHED, PEERS_AWAY]]),
    get("getAgent", "/api/agents/{name}", "One version with its schemas and its contract.")
        .takes(&[query("version", Kind::Text, "a requirement such as `^1.2.0`; the latest unless given"), CONSISTENCY])
        .answers(&[ok("the version", &[Content::Json("AgentDetails")])])
        .refuses(&[READ, STORED, &[UNKNOWN_AGENT]]),
    get("listVersions", "/api/agents/{name}/versions", "The versions of one agent, retired ones included.")
        .takes(&[CONSISTENCY])
        .answers(&[ok("the versions", &[Content::List("AgentVersion")])])
        .refuses(&[READ, STORED, &[UNKNOWN_AGENT]]),
    get("getVersion", "/api/agents/{name}/versions/{version}", "One version, retired or not.")
        .takes(&[CONSISTENCY])
        .answers(&[ok("the version", &[Content::Json("AgentDetails")])])
        .refuses(&[READ, STORED, &[UNKNOWN_AGENT]]),
    delete("retireAgent", "/api/agents/{name}/versions/{version}", "Takes a version out of service; its jobs finish.")
        .takes(&[IDEMPOTENCY_KEY])
        .answers(&[ok("it takes no jobs any more", &[Content::Json("Retired")])])
        .refuses(&[WRITE, &[UNKNOWN_AGENT]]),
    post(
        "deleteAgent",
        "/api/agents/{name}/versions/{version}/delete",
        "Forgets a retired version that no job needs any more.",
    )
    .takes(&[IDEMPOTENCY_KEY])
    .answers(&[ok("it is forgotten", &[Content::Json("Deleted")])])
    .refuses(&[WRITE, &[UNKNOWN_AGENT, AGENT_IN_USE]]),
    post(
        "deprecateAgent",
        "/api/agents/{name}/versions/{version}/deprecate",
        "Says that new jobs had better not use a version, which goes on taking them.",
    )
    .takes(&[IDEMPOTENCY_KEY])
    .body(Body::MaybeJson("DeprecateRequest"))
    .answers(&[ok("it is told in lists", &[Content::Json("Deprecated")])])
    .refuses(&[WRITE, BODY, &[UNKNOWN_AGENT]]),
    // Nodes.
    get("listNodes", "/api/nodes", "Nodes by name, with their hardware and what of it is free.")
        .takes(&[LIMIT_OF_ALL, OFFSET, CONSISTENCY])
        .answers(&[ok("the nodes", &[Content::List("Node")])])
        .refuses(&[READ]),
    get("getNode", "/api/nodes/{name}", "One node.")
        .takes(&[CONSISTENCY])
        .answers(&[ok("the node", &[Content::Json("Node")])])
        .refuses(&[READ, &[UNKNOWN_NODE]]),
    delete("removeNode", "/api/nodes/{name}", "Forgets a node that holds no lease.")
        .takes(&[IDEMPOTENCY_KEY])
        .answers(&[ok("it is forgotten", &[Content::Json("Removed")])])
        .refuses(&[WRITE, &[UNKNOWN_NODE, NODE_BUSY]]),
    post("drainNode", "/api/nodes/{name}/drain", "No new leases for the node until it is empty.")
        .takes(&[IDEMPOTENCY_KEY])
        .body(Body::MaybeJson("DrainRequest"))
        .answers(&[ok("it drains", &[Content::Json("Accepted")])])
        .refuses(&[WRITE, BODY, &[UNKNOWN_NODE]]),
    post("cordonNode", "/api/nodes/{name}/cordon", "No new leases for the node.")
        .takes(&[IDEMPOTENCY_KEY])
        .answers(&[ok("it is cordoned", &[Content::Json("Accepted")])])
        .refuses(&[WRITE, &[UNKNOWN_NODE]]),
    post("uncordonNode", "/api/nodes/{name}/uncordon", "New leases again; ends a drain.")
        .takes(&[IDEMPOTENCY_KEY])
        .answers(&[ok("it takes leases", &[Content::Json("Accepted")])])
        .refuses(&[WRITE, &[UNKNOWN_NODE]]),
    post("labelNode", "/api/nodes/{name}/labels", "Gives the node labels over its worker's, or takes them away.")
        .takes(&[IDEMPOTENCY_KEY])
        .body(Body::Json("LabelRequest"))
        .answers(&[ok("it is labelled", &[Content::Json("Accepted")])])
        .refuses(&[WRITE, BODY, &[UNKNOWN_NODE, LABEL_OF_WORKER, LIMIT_REACHED]]),
    // Figures.
    get("health", "/api/health", "How many jobs wait and run, and the hardware that was declared.")
        .lenient()
        .takes(&[CONSISTENCY])
        .answers(&[ok("it serves", &[Content::Json("Health")])])
        .refuses(&[READ]),
    get("ready", "/api/ready", "Whether this controller can serve.")
        .answers(&[ok("it can", &[Content::Json("Ready")])])
        .refuses(&[READ]),
    get("version", "/api/version", "The program and the cluster.")
        .answers(&[ok("what answers", &[Content::Json("Version")])])
        .refuses(&[&[MALFORMED]]),
    get("figures", "/api/metrics", "Figures of all agents.")
        .lenient()
        .answers(&[ok("the figures", &[Content::Json("Figures")])])
        .refuses(&[&[MALFORMED]]),
    get("figuresOfAgent", "/api/metrics/{agent}", "Figures of one agent.")
        .lenient()
        .answers(&[ok("the figures", &[Content::Json("AgentFigures")])])
        .refuses(&[&[MALFORMED, UNKNOWN_AGENT]]),
    get("metrics", "/metrics", "All instruments in the OpenMetrics text form.")
        .answers(&[ok("the instruments", &[Content::Other(atlas_telemetry::CONTENT_TYPE)])])
        .refuses(&[&[MALFORMED]]),
    get(
        "errorPage",
        "/errors/{code}",
        "What an error means and what to try; the `type` of a problem document names it.",
    )
    .answers(&[ok("the page, Markdown", &[Content::Other("text/plain")])])
    .refuses(&[&[MALFORMED]]),
    get("openApi", "/api/openapi.json", "This interface as an OpenAPI document.")
        .answers(&[ok("the document", &[Content::Json("Document")])])
        .refuses(&[&[MALFORMED]]),
    // What the source system has besides; nothing can be set up yet.
    get("skills", "/api/skills", "The skills of the cluster.")
        .lenient()
        .answers(&[ok("the skills", &[Content::List("Skill")])])
        .refuses(&[&[MALFORMED, NOT_CONFIGURED]]),
    get("securityPolicy", "/api/security/policy", "The security policy of the cluster.")
        .lenient()
        .answers(&[ok("the policy", &[Content::Json("Policy")])])
        .refuses(&[&[MALFORMED, NOT_CONFIGURED]]),
    // The cluster.
    get("cluster", "/api/cluster", "Who leads, how far, how many voters answer, and the members.")
        .answers(&[ok("the cluster as this controller sees it", &[Content::Json("Cluster")])])
        .refuses(&[&[MALFORMED]]),
    get("listMembers", "/api/cluster/members", "The members by number, and how each is.")
        .takes(&[LIMIT_OF_ALL, OFFSET])
        .answers(&[ok("the members", &[Content::List("Member")])])
        .refuses(&[&[MALFORMED]]),
    delete(
        "removeMember",
        "/api/cluster/members/{member}",
        "Removes a member for good; refused if no quorum would be left.",
    )
    .takes(&[IDEMPOTENCY_KEY])
    .answers(&[ok("it is removed", &[Content::Json("Removed")])])
    .refuses(&[WRITE, &[UNKNOWN_MEMBER, MEMBERSHIP_REFUSED, MEMBER_BEHIND]]),
    post("createJoinToken", "/api/cluster/join-tokens", "Makes a token with which a controller or a worker joins.")
        .takes(&[IDEMPOTENCY_KEY])
        .body(Body::MaybeJson("TokenRequest"))
        .answers(&[created("the token, shown this once", &[Content::Json("Token")])])
        .refuses(&[WRITE, BODY, &[LIMIT_REACHED]]),
    post("revokeJoinToken", "/api/cluster/join-tokens/revoke", "Takes a token back.")
        .takes(&[IDEMPOTENCY_KEY])
        .body(Body::Json("RevokeRequest"))
        .answers(&[ok("it lets nobody in", &[Content::Json("Revoked")])])
        .refuses(&[WRITE, BODY]),
    post("transferLeader", "/api/cluster/transfer-leader", "Makes another member the leader.")
        .takes(&[IDEMPOTENCY_KEY])
        .body(Body::MaybeJson("TransferRequest"))
        .answers(&[ok("who leads now", &[Content::Json("Transferred")])])
        .refuses(&[WRITE, BODY, &[UNKNOWN_MEMBER, MEMBERSHIP_REFUSED, MEMBER_BEHIND]]),
    get("snapshot", "/api/cluster/snapshot", "A backup of the cluster, streamed.")
        .answers(&[ok("a tar archive", &[Content::Other("application/x-tar")])])
        .refuses(&[READ, &[NO_BACKUP]]),
];
