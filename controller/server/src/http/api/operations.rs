//! The table itself.

mod parts;

use atlas_service::catalogue::{
    AGENT_IN_USE, AMBIGUOUS_JOB, ANSWER_REFUSED, BAD_SIGNATURE, CONTRACT_REFUSED, DEPENDENCY_MISSING, EVENTS_GONE,
    INPUT_REFUSED, JOURNAL_GONE, LABEL_OF_WORKER, LIMIT_REACHED, MALFORMED, MEMBER_BEHIND, MEMBERSHIP_REFUSED,
    NAMESPACE_LIMIT, NO_BACKUP, NO_SECRETS_KEY, NO_SUCH_STEP, NODE_BUSY, NOT_ANSWERER, NOT_CONFIGURED, NOT_IN_DOUBT,
    NOT_PRIVATE, OBJECT_CHANGED, OBJECT_IN_USE, OBJECT_REFUSED, OUTPUT_REFUSED, PACKAGE_REFUSED, PEERS_AWAY,
    QUESTION_CLOSED, QUEUE_FULL, STEP_DIFFERS, TOO_LARGE, UNKNOWN_AGENT, UNKNOWN_MEMBER, UNKNOWN_NODE, UNKNOWN_OBJECT,
    UNKNOWN_OBJECT_KIND, UNKNOWN_QUESTION, UNKNOWN_RUN, UNKNOWN_TRACE, WRONG_STATUS,
};
use http::StatusCode;

use super::{Body, Content, Kind, Operation, Parameter, ParameterLocation, Success};
pub(super) use parts::NAMESPACE;
use parts::{
    AFTER, BODY, CONSISTENCY, DELTAS, DRY_RUN, FAMILY, IDEMPOTENCY_KEY, IF_MATCH, IF_NONE_MATCH, JOB, LIMIT,
    LIMIT_OF_ALL, OFFSET, READ, STORED, UPGRADED, VIEW, WRITE, created, delete, get, ok, post, put, query, word,
};

/// Every operation, by subject.
pub(crate) const OPERATIONS: &[Operation] = &[
    // Jobs.
    post("submitJob", "/api/jobs", "Submits a job. The answer is sent once the job is durable.")
        .lenient()
        .takes(&[
            word(
                "validate",
                &["refuse"],
                "`refuse` refuses jobs that cannot run, instead of accepting them and letting them fail",
            ),
            query("wait", Kind::Number, "seconds to wait for the end of the job; the answer is then the job"),
            FAMILY,
            VIEW,
            IDEMPOTENCY_KEY,
        ])
        .body(Body::Json("Submission"))
        .answers(&[
            created("the job is queued", &[Content::Json("Id")]),
            ok("with `wait`: the job after it has ended or the time has passed", &[Content::Json("Job")]),
        ])
        .refuses(&[
            WRITE,
            BODY,
            STORED,
            &[UNKNOWN_AGENT, INPUT_REFUSED, DEPENDENCY_MISSING, QUEUE_FULL, LIMIT_REACHED, NAMESPACE_LIMIT],
        ]),
    post(
        "submitJobs",
        "/api/jobs:batch",
        "Submits many jobs, each with its own result. The answer is sent once the accepted jobs are durable.",
    )
    .takes(&[
        word(
            "validate",
            &["refuse"],
            "`refuse` refuses jobs that cannot run, instead of accepting them and letting them fail",
        ),
        query("queue_wait", Kind::Number, "seconds to wait for space in a full queue; defaults to 0"),
        Parameter {
            says: "gives each job that has no `idempotency_key` the key `KEY.INDEX`, its index in the list from 0",
            ..IDEMPOTENCY_KEY
        },
    ])
    .body(Body::Json("Batch"))
    .answers(&[
        created("all jobs are queued", &[Content::Json("BatchResults")]),
        Success {
            status: StatusCode::MULTI_STATUS,
            says: "some or all jobs were refused; `Retry-After` is present if repeating some of them may succeed",
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
    delete("deleteJob", "/api/jobs/{id}", "Cancels a pending job; false for every other and for an unknown job.")
        .lenient()
        .takes(&[IDEMPOTENCY_KEY])
        .answers(&[ok("whether it was cancelled", &[Content::Json("Cancelled")])])
        .refuses(&[WRITE, STORED, JOB]),
    get(
        "waitForJob",
        "/api/jobs/{id}/wait",
        "Waits for a job; returns it after it has ended or the timeout has passed.",
    )
    .takes(&[
        query("timeout", Kind::Number, "maximum seconds to wait; defaults to 60"),
        FAMILY,
        word("questions", &["true", "false"], "`true` also returns a job that has an open question, or a job below it"),
        VIEW,
    ])
    .answers(&[ok("the job", &[Content::Json("Job")])])
    .refuses(&[READ, STORED, JOB]),
    get(
        "getJobTree",
        "/api/jobs/{id}/tree",
        "A job with the jobs that it spawned, except those that have left the state.",
    )
    .takes(&[CONSISTENCY])
    .answers(&[ok("the job in its full view, with its children", &[Content::Json("JobTree")])])
    .refuses(&[READ, STORED, JOB]),
    get("listSteps", "/api/jobs/{id}/steps", "The recorded steps of a job, in order.")
        .takes(&[query("after", Kind::Whole, "only the steps after this number"), LIMIT, CONSISTENCY])
        .answers(&[ok("the steps; large outcomes of a long list are null", &[Content::List("Step")])])
        .refuses(&[READ, STORED, JOB]),
    post("cancelJob", "/api/jobs/{id}/cancel", "Cancels a pending or running job and the jobs that it spawned.")
        .takes(&[IDEMPOTENCY_KEY])
        .answers(&[ok("whether it was cancelled", &[Content::Json("Cancelled")])])
        .refuses(&[WRITE, STORED, JOB]),
    post("retryJob", "/api/jobs/{id}/retry", "Runs an ended job again as a new job.")
        .takes(&[
            word("resume", &["true", "false"], "`true` copies the recorded steps, which the new job does not repeat"),
            IDEMPOTENCY_KEY,
        ])
        .answers(&[created("the new job is queued", &[Content::Json("Id")])])
        .refuses(&[
            WRITE,
            STORED,
            JOB,
            &[WRONG_STATUS, UNKNOWN_AGENT, QUEUE_FULL, LIMIT_REACHED, NAMESPACE_LIMIT, TOO_LARGE, JOURNAL_GONE],
        ]),
    post("forkJob", "/api/jobs/{id}/fork", "Begins a new job with the first recorded steps of another one.")
        .takes(&[IDEMPOTENCY_KEY])
        .body(Body::Json("Fork"))
        .answers(&[created("the new job is queued", &[Content::Json("Id")])])
        .refuses(&[
            WRITE,
            BODY,
            STORED,
            JOB,
            &[
                NO_SUCH_STEP,
                STEP_DIFFERS,
                UNKNOWN_AGENT,
                UNKNOWN_OBJECT,
                INPUT_REFUSED,
                QUEUE_FULL,
                LIMIT_REACHED,
                NAMESPACE_LIMIT,
                TOO_LARGE,
                JOURNAL_GONE,
            ],
        ]),
    post("resolveJob", "/api/jobs/{id}/resolve", "Resolves a job in doubt.")
        .takes(&[IDEMPOTENCY_KEY])
        .body(Body::Json("Decision"))
        .answers(&[ok("the new status", &[Content::Json("Resolved")])])
        .refuses(&[WRITE, BODY, STORED, JOB, &[NOT_IN_DOUBT, WRONG_STATUS, OUTPUT_REFUSED]]),
    post("sendMessage", "/api/jobs/{id}/messages", "Sends a message to a job that has not ended.")
        .takes(&[IDEMPOTENCY_KEY])
        .body(Body::Json("Message"))
        .answers(&[ok("the job has the message in its inbox", &[Content::Json("Sent")])])
        .refuses(&[WRITE, BODY, STORED, JOB, &[WRONG_STATUS, LIMIT_REACHED]]),
    // Questions.
    get("listQuestions", "/api/questions", "The questions of jobs to people, the oldest first.")
        .takes(&[
            word("status", &["open", "all"], "`all` adds questions that have ended; defaults to `open`"),
            query("job", Kind::Text, "only those of this job and of the jobs below it"),
            query("after", Kind::Whole, "only those with a number after this one"),
            LIMIT,
            CONSISTENCY,
        ])
        .answers(&[ok("the questions", &[Content::List("Question")])])
        .refuses(&[READ, STORED, JOB]),
    get("getQuestion", "/api/questions/{id}", "One question.")
        .takes(&[CONSISTENCY])
        .answers(&[ok("the question", &[Content::Json("Question")])])
        .refuses(&[READ, &[UNKNOWN_QUESTION]]),
    post("answerQuestion", "/api/questions/{id}/answer", "Answers a question. The first answer stands.")
        .takes(&[IDEMPOTENCY_KEY])
        .body(Body::Json("QuestionAnswer"))
        .answers(&[ok("the question with its answer", &[Content::Json("Question")])])
        .refuses(&[
            WRITE,
            BODY,
            &[UNKNOWN_QUESTION, QUESTION_CLOSED, NOT_ANSWERER, ANSWER_REFUSED, LIMIT_REACHED],
        ]),
    get("followJob", "/api/jobs/{id}/events", "The changes of one job, until it has ended.")
        .lenient()
        .takes(&[
            word("follow", &["true", "false"], "`false` ends the stream after the past events"),
            AFTER,
            VIEW,
            DELTAS,
        ])
        .answers(&[ok("past and future changes", &[Content::Events("Change")]), UPGRADED])
        .refuses(&[READ, STORED, JOB, &[EVENTS_GONE]]),
    get("jobLogs", "/api/jobs/{id}/logs", "Log lines and progress of a job.")
        .takes(&[AFTER, DELTAS])
        .answers(&[ok("the lines so far, or a stream of lines", &[Content::List("Line"), Content::Events("Line")])])
        .refuses(&[READ, STORED, JOB]),
    get("listTraces", "/api/traces", "What completed and failed jobs did, the latest first.")
        .lenient()
        .takes(&[query("agent", Kind::Text, "only traces of this agent"), LIMIT, CONSISTENCY])
        .answers(&[ok("the traces", &[Content::List("Trace")])])
        .refuses(&[READ, STORED]),
    get("getTrace", "/api/traces/{id}", "What one job did, with the checks of its agent.")
        .lenient()
        .takes(&[CONSISTENCY])
        .answers(&[ok("the trace", &[Content::Json("Trace")])])
        .refuses(&[READ, STORED, &[AMBIGUOUS_JOB, UNKNOWN_TRACE]]),
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
    get("followEvents", "/api/cluster/events", "Events of every kind: jobs, agents, nodes, the configuration.")
        .takes(&[
            query(
                "kind",
                Kind::Text,
                "only events of these kinds, with commas between: job, agent, node, object, run, cluster",
            ),
            query("name", Kind::Text, "only events about what has this name: a job's id, an agent or a node"),
            query("after", Kind::Whole, "the last event seen, for clients that cannot send `Last-Event-ID`"),
        ])
        .answers(&[ok("the events from now on, or after an event", &[Content::Events("ClusterEvent")])])
        .refuses(&[READ, STORED, &[EVENTS_GONE]]),
    // Chains.
    post("startChain", "/api/chains", "Runs a chain. The answer is sent once the execution is durable.")
        .lenient()
        .takes(&[
            query("wait", Kind::Number, "seconds to wait for the end of the execution, which is then the answer"),
            VIEW,
            IDEMPOTENCY_KEY,
        ])
        .body(Body::Json("ChainStart"))
        .answers(&[
            created("the execution is pending", &[Content::Json("ChainId")]),
            ok("with `wait`: the execution", &[Content::Json("ChainRun")]),
        ])
        .refuses(&[WRITE, BODY, STORED, &[UNKNOWN_OBJECT, LIMIT_REACHED, UNKNOWN_RUN]]),
    post("checkChain", "/api/chains/check", "Shows how each step of a chain gets its input from the step before. Nothing runs.")
        .body(Body::Json("ChainStart"))
        .answers(&[ok("the steps and the joins between them", &[Content::Json("ChainCheck")])])
        .refuses(&[READ, BODY, STORED, &[UNKNOWN_OBJECT, UNKNOWN_OBJECT_KIND]]),
    get("listChainRuns", "/api/chains", "Executions of chains, newest first. Those that ended last are kept.")
        .lenient()
        .takes(&[query("status", Kind::Text, "only executions with this status"), LIMIT, VIEW, CONSISTENCY])
        .answers(&[ok("the executions", &[Content::List("ChainRun")])])
        .refuses(&[READ, STORED]),
    get("getChainRun", "/api/chains/{id}", "One execution of a chain.")
        .lenient()
        .takes(&[query("wait", Kind::Number, "seconds to wait for the end of the execution"), VIEW, CONSISTENCY])
        .answers(&[ok("the execution", &[Content::Json("ChainRun")])])
        .refuses(&[READ, STORED, &[UNKNOWN_RUN]]),
    post("cancelChainRun", "/api/chains/{id}/cancel", "Cancels an execution and the job of its current step.")
        .takes(&[IDEMPOTENCY_KEY])
        .answers(&[ok("whether it was cancelled; false if it had ended", &[Content::Json("Cancelled")])])
        .refuses(&[WRITE, &[UNKNOWN_RUN]]),
    // Agents.
    get("listAgents", "/api/agents", "Agent versions by name and version.")
        .takes(&[
            word(
                "all",
                &["true", "false"],
                "`true` for all versions including retired ones, `false` for only the latest of each name",
            ),
            query("name", Kind::Text, "only versions of this agent"),
            query("capability", Kind::Text, "only versions with exactly this capability"),
            query("q", Kind::Text, "only versions with this text in name, description or capabilities, ignoring case"),
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
        .answers(&[created("the version is registered", &[Content::Json("Registered")])])
        .refuses(&[WRITE, BODY, &[PACKAGE_REFUSED, CONTRACT_REFUSED, LIMIT_REACHED, NAMESPACE_LIMIT, PEERS_AWAY]]),
    get("getAgent", "/api/agents/{name}", "One version with its schemas and its contract.")
        .takes(&[query("version", Kind::Text, "a requirement such as `^1.2.0`; defaults to the latest"), CONSISTENCY])
        .answers(&[ok("the version", &[Content::Json("AgentDetails")])])
        .refuses(&[READ, STORED, &[UNKNOWN_AGENT]]),
    get("listVersions", "/api/agents/{name}/versions", "The versions of one agent, including retired ones.")
        .takes(&[CONSISTENCY])
        .answers(&[ok("the versions", &[Content::List("AgentVersion")])])
        .refuses(&[READ, STORED, &[UNKNOWN_AGENT]]),
    get("getVersion", "/api/agents/{name}/versions/{version}", "One version, retired or not.")
        .takes(&[CONSISTENCY])
        .answers(&[ok("the version", &[Content::Json("AgentDetails")])])
        .refuses(&[READ, STORED, &[UNKNOWN_AGENT]]),
    delete(
        "retireAgent",
        "/api/agents/{name}/versions/{version}",
        "Retires a version: it accepts no new jobs; its existing jobs finish.",
    )
    .takes(&[IDEMPOTENCY_KEY])
    .answers(&[ok("the version is retired", &[Content::Json("Retired")])])
    .refuses(&[WRITE, &[UNKNOWN_AGENT]]),
    post(
        "deleteAgent",
        "/api/agents/{name}/versions/{version}/delete",
        "Deletes a retired version that no waiting or running job uses.",
    )
    .takes(&[IDEMPOTENCY_KEY])
    .answers(&[ok("the version is deleted", &[Content::Json("Deleted")])])
    .refuses(&[WRITE, &[UNKNOWN_AGENT, AGENT_IN_USE]]),
    post(
        "deprecateAgent",
        "/api/agents/{name}/versions/{version}/deprecate",
        "Marks a version as deprecated; it still accepts jobs.",
    )
    .takes(&[IDEMPOTENCY_KEY])
    .body(Body::MaybeJson("DeprecateRequest"))
    .answers(&[ok("the version is marked", &[Content::Json("Deprecated")])])
    .refuses(&[WRITE, BODY, &[UNKNOWN_AGENT]]),
    // Nodes.
    get("listNodes", "/api/nodes", "Nodes by name, with their hardware and free resources.")
        .takes(&[LIMIT_OF_ALL, OFFSET, CONSISTENCY])
        .answers(&[ok("the nodes", &[Content::List("Node")])])
        .refuses(&[READ]),
    get("getNode", "/api/nodes/{name}", "One node.")
        .takes(&[CONSISTENCY])
        .answers(&[ok("the node", &[Content::Json("Node")])])
        .refuses(&[READ, &[UNKNOWN_NODE]]),
    delete("removeNode", "/api/nodes/{name}", "Removes a node that holds no lease.")
        .takes(&[IDEMPOTENCY_KEY])
        .answers(&[ok("the node is removed", &[Content::Json("Removed")])])
        .refuses(&[WRITE, &[UNKNOWN_NODE, NODE_BUSY]]),
    post("drainNode", "/api/nodes/{name}/drain", "Drains a node: no new leases until it is empty.")
        .takes(&[IDEMPOTENCY_KEY])
        .body(Body::MaybeJson("DrainRequest"))
        .answers(&[ok("it drains", &[Content::Json("Accepted")])])
        .refuses(&[WRITE, BODY, &[UNKNOWN_NODE]]),
    post("cordonNode", "/api/nodes/{name}/cordon", "Stops new leases on a node.")
        .takes(&[IDEMPOTENCY_KEY])
        .answers(&[ok("it is cordoned", &[Content::Json("Accepted")])])
        .refuses(&[WRITE, &[UNKNOWN_NODE]]),
    post("uncordonNode", "/api/nodes/{name}/uncordon", "Allows new leases on a node again; ends a drain.")
        .takes(&[IDEMPOTENCY_KEY])
        .answers(&[ok("the node accepts leases", &[Content::Json("Accepted")])])
        .refuses(&[WRITE, &[UNKNOWN_NODE]]),
    post(
        "labelNode",
        "/api/nodes/{name}/labels",
        "Sets or removes labels of a node; they override those of its worker.",
    )
    .takes(&[IDEMPOTENCY_KEY])
    .body(Body::Json("LabelRequest"))
    .answers(&[ok("the labels are changed", &[Content::Json("Accepted")])])
    .refuses(&[WRITE, BODY, &[UNKNOWN_NODE, LABEL_OF_WORKER, LIMIT_REACHED]]),
    // Objects.
    get("listObjectKinds", "/api/objects", "The kinds of objects, with the JSON Schema of each.")
        .answers(&[ok("the kinds", &[Content::List("ObjectKind")])])
        .refuses(&[&[MALFORMED]]),
    get("listObjects", "/api/objects/{kind}", "Objects of a kind by name.")
        .takes(&[
            query("label", Kind::Text, "only objects with this label, `KEY` or `KEY=VALUE`"),
            query("after", Kind::Text, "the name after which the page begins, `next` of the page before"),
            LIMIT,
            CONSISTENCY,
        ])
        .answers(&[ok("one page", &[Content::Json("Objects")])])
        .refuses(&[READ, &[UNKNOWN_OBJECT_KIND]]),
    get("getObject", "/api/objects/{kind}/{name}", "One object. `ETag` is its revision.")
        .takes(&[CONSISTENCY])
        .answers(&[ok("the object", &[Content::Json("Object")])])
        .refuses(&[READ, &[UNKNOWN_OBJECT_KIND, UNKNOWN_OBJECT]]),
    put(
        "putObject",
        "/api/objects/{kind}/{name}",
        "Makes an object, or replaces its labels and its spec. The same document again changes nothing.",
    )
    .takes(&[IF_MATCH, IF_NONE_MATCH, DRY_RUN, IDEMPOTENCY_KEY])
    .body(Body::Json("ObjectRequest"))
    .answers(&[ok("the object as it is now, or would be", &[Content::Json("Object")])])
    .refuses(&[WRITE, BODY, &[UNKNOWN_OBJECT_KIND, UNKNOWN_OBJECT, OBJECT_CHANGED, OBJECT_REFUSED, LIMIT_REACHED]]),
    delete("deleteObject", "/api/objects/{kind}/{name}", "Deletes an object that nothing uses.")
        .takes(&[IF_MATCH, IF_NONE_MATCH, DRY_RUN, IDEMPOTENCY_KEY])
        .answers(&[ok("the object is deleted", &[Content::Json("Deleted")])])
        .refuses(&[WRITE, &[UNKNOWN_OBJECT_KIND, UNKNOWN_OBJECT, OBJECT_CHANGED, OBJECT_IN_USE]]),
    put(
        "setSecret",
        "/api/secrets/{name}",
        "Sets the value of a secret as a new version. No answer contains a value; everything else about a secret is the object of the kind `secret`.",
    )
    .body(Body::Json("SecretRequest"))
    .answers(&[ok("the secret as it is now, without values", &[Content::Json("Object")])])
    .refuses(&[WRITE, BODY, &[NO_SECRETS_KEY, NOT_PRIVATE, UNKNOWN_OBJECT, OBJECT_CHANGED, OBJECT_REFUSED, LIMIT_REACHED]]),
    // Triggers.
    post(
        "createTrigger",
        "/api/triggers",
        "Makes a trigger, or replaces the one with this id. The members may be under `trigger`.",
    )
    .lenient()
    .takes(&[IF_NONE_MATCH, IDEMPOTENCY_KEY])
    .body(Body::Json("TriggerRequest"))
    .answers(&[created("the trigger", &[Content::Json("Trigger")])])
    .refuses(&[WRITE, BODY, &[NO_SECRETS_KEY, OBJECT_CHANGED, OBJECT_REFUSED, LIMIT_REACHED, UNKNOWN_OBJECT]]),
    get("listTriggers", "/api/triggers", "Triggers, newest first.")
        .lenient()
        .takes(&[
            query("type", Kind::Text, "only triggers of this type"),
            query("enabled", Kind::Text, "`true`, `1` and `yes`: only enabled ones; anything else: only disabled ones"),
            query("limit", Kind::Lenient, "maximum number; 100 without it"),
            VIEW,
            CONSISTENCY,
        ])
        .answers(&[ok("the triggers", &[Content::List("Trigger")])])
        .refuses(&[READ]),
    get("getTrigger", "/api/triggers/{id}", "One trigger.")
        .lenient()
        .takes(&[VIEW, CONSISTENCY])
        .answers(&[ok("the trigger", &[Content::Json("Trigger")])])
        .refuses(&[READ, &[UNKNOWN_OBJECT]]),
    put("changeTrigger", "/api/triggers/{id}", "Changes members of a trigger, and computes its next time.")
        .lenient()
        .takes(&[IDEMPOTENCY_KEY])
        .body(Body::Json("TriggerRequest"))
        .answers(&[ok("the trigger", &[Content::Json("Trigger")])])
        .refuses(&[WRITE, BODY, &[NO_SECRETS_KEY, UNKNOWN_OBJECT, OBJECT_CHANGED, OBJECT_REFUSED, LIMIT_REACHED]]),
    delete("deleteTrigger", "/api/triggers/{id}", "Deletes a trigger.")
        .lenient()
        .takes(&[IDEMPOTENCY_KEY])
        .answers(&[ok("the trigger is deleted", &[Content::Json("Deleted")])])
        .refuses(&[WRITE, &[UNKNOWN_OBJECT]]),
    post("fireTrigger", "/api/triggers/{id}/fire", "Fires a trigger now, also a disabled one.")
        .lenient()
        .takes(&[IDEMPOTENCY_KEY])
        .answers(&[created("the job", &[Content::Json("Fired")])])
        .refuses(&[WRITE, STORED, &[UNKNOWN_OBJECT, QUEUE_FULL, LIMIT_REACHED, NAMESPACE_LIMIT, OBJECT_CHANGED]]),
    get("nextFirings", "/api/triggers/{id}/next", "The next times at which a trigger fires.")
        .takes(&[query("count", Kind::Whole, "how many, at most 100; defaults to 5")])
        .answers(&[ok("the times", &[Content::Json("NextFirings")])])
        .refuses(&[READ, &[UNKNOWN_OBJECT]]),
    post("testTrigger", "/api/triggers/{id}/test", "What a call would start. Nothing is started.")
        .body(Body::MaybeJson("TriggerTest"))
        .answers(&[ok("the job that would be submitted", &[Content::Json("TriggerTested")])])
        .refuses(&[READ, BODY, STORED, &[UNKNOWN_OBJECT]]),
    post("backfillTrigger", "/api/triggers/{id}/backfill", "Fires a trigger for times that have passed, each once.")
        .body(Body::Json("BackfillRequest"))
        .answers(&[ok("the times, with their jobs", &[Content::Json("Backfilled")])])
        .refuses(&[WRITE, BODY, STORED, &[UNKNOWN_OBJECT, QUEUE_FULL, LIMIT_REACHED, NAMESPACE_LIMIT, OBJECT_CHANGED]]),
    post("callHook", "/api/hooks/{id}", "Fires a webhook. The members of the body replace those of its input.")
        .lenient()
        .takes(&[
            Parameter {
                name: "X-Atlas-Signature",
                place: ParameterLocation::Header,
                says: "the HMAC-SHA256 of the body with the secret of the trigger, if it has one: 64 hexadecimal digits, also after `sha256=`",
                kind: Kind::Text,
            },
            Parameter {
                name: "X-Atlas-Timestamp",
                place: ParameterLocation::Header,
                says: "the time of the call in whole seconds since 1970, if the trigger has a replay window; it is signed before the body",
                kind: Kind::Text,
            },
            Parameter {
                name: "X-Atlas-Delivery",
                place: ParameterLocation::Header,
                says: "the sender's name for this delivery; a repeat gets the first answer",
                kind: Kind::Key,
            },
            IDEMPOTENCY_KEY,
        ])
        .body(Body::MaybeJson("Call"))
        .answers(&[created("the job", &[Content::Json("Fired")])])
        .refuses(&[
            WRITE,
            BODY,
            STORED,
            &[
                UNKNOWN_OBJECT, BAD_SIGNATURE, NO_SECRETS_KEY, QUEUE_FULL, LIMIT_REACHED, NAMESPACE_LIMIT, OBJECT_CHANGED,
            ],
        ]),
    // Figures.
    get("health", "/api/health", "Numbers of waiting and running jobs, and declared hardware.")
        .lenient()
        .takes(&[CONSISTENCY])
        .answers(&[ok("the controller is healthy", &[Content::Json("Health")])])
        .refuses(&[READ]),
    get("ready", "/api/ready", "Whether this controller can serve requests.")
        .answers(&[ok("it can", &[Content::Json("Ready")])])
        .refuses(&[READ]),
    get("version", "/api/version", "The program and the cluster.")
        .answers(&[ok("the versions", &[Content::Json("Version")])])
        .refuses(&[&[MALFORMED]]),
    get("figures", "/api/metrics", "Statistics of all agents.")
        .lenient()
        .answers(&[ok("the figures", &[Content::Json("Figures")])])
        .refuses(&[&[MALFORMED]]),
    get("figuresOfAgent", "/api/metrics/{agent}", "Statistics of one agent.")
        .lenient()
        .answers(&[ok("the figures", &[Content::Json("AgentFigures")])])
        .refuses(&[&[MALFORMED, UNKNOWN_AGENT]]),
    get("metrics", "/metrics", "All instruments in the OpenMetrics text form.")
        .answers(&[ok("the instruments", &[Content::Other(atlas_telemetry::CONTENT_TYPE)])])
        .refuses(&[&[MALFORMED]]),
    get(
        "errorPage",
        "/errors/{code}",
        "The page of an error code: cause and what to try. The `type` of a problem document is its path.",
    )
    .answers(&[ok("the page, Markdown", &[Content::Other("text/plain")])])
    .refuses(&[&[MALFORMED]]),
    get("openApi", "/api/openapi.json", "This interface as an OpenAPI document.")
        .answers(&[ok("the document", &[Content::Json("Document")])])
        .refuses(&[&[MALFORMED]]),
    get("skills", "/api/skills", "The skills, the oldest first, then the platform's tools. Without any skill, they count as not configured.")
        .lenient()
        .takes(&[CONSISTENCY])
        .answers(&[ok("the skills", &[Content::List("Skill")])])
        .refuses(&[READ, &[NOT_CONFIGURED]]),
    post("deploySkill", "/api/skills", "Deploys a skill from its package. It replaces one of the same name.")
        .body(Body::Package)
        .answers(&[created("the skill is deployed", &[Content::Json("Registered")])])
        .refuses(&[
            WRITE,
            BODY,
            &[PACKAGE_REFUSED, UNKNOWN_OBJECT_KIND, UNKNOWN_OBJECT, OBJECT_CHANGED, OBJECT_REFUSED, LIMIT_REACHED, PEERS_AWAY],
        ]),
    get("getSkill", "/api/skills/{name}", "One skill.")
        .takes(&[CONSISTENCY])
        .answers(&[ok("the skill", &[Content::Json("Skill")])])
        .refuses(&[READ, &[UNKNOWN_OBJECT]]),
    delete("removeSkill", "/api/skills/{name}", "Removes a skill. Its package is kept as long as something uses it.")
        .takes(&[IF_MATCH, IF_NONE_MATCH, DRY_RUN, IDEMPOTENCY_KEY])
        .answers(&[ok("the skill is removed", &[Content::Json("Deleted")])])
        .refuses(&[WRITE, &[UNKNOWN_OBJECT_KIND, UNKNOWN_OBJECT, OBJECT_CHANGED, OBJECT_IN_USE]]),
    get("listConversations", "/api/conversations", "The conversations with agents, by id, without their messages.")
        .takes(&[CONSISTENCY])
        .answers(&[ok("the conversations", &[Content::List("Conversation")])])
        .refuses(&[READ]),
    get("getConversation", "/api/conversations/{id}", "A conversation with its messages, the oldest first.")
        .takes(&[CONSISTENCY])
        .answers(&[ok("the conversation", &[Content::Json("Conversation")])])
        .refuses(&[READ, &[UNKNOWN_OBJECT]]),
    delete("deleteConversation", "/api/conversations/{id}", "Deletes a conversation. The answer of a turn under way is not kept.")
        .answers(&[ok("the conversation is deleted", &[Content::Json("Deleted")])])
        .refuses(&[WRITE, &[UNKNOWN_OBJECT_KIND, UNKNOWN_OBJECT, OBJECT_CHANGED, OBJECT_IN_USE]]),
    get("mcpRegistry", "/.well-known/mcp/server.json", "The agents as MCP servers: names, titles, addresses and models.")
        .answers(&[ok("the servers", &[Content::Json("McpServers")])])
        .refuses(&[READ]),
    // A further path of Atlas for Python; nothing can be configured yet.
    get("securityPolicy", "/api/security/policy", "The security policy of the cluster.")
        .lenient()
        .answers(&[ok("the policy", &[Content::Json("Policy")])])
        .refuses(&[&[MALFORMED, NOT_CONFIGURED]]),
    // The cluster.
    get("cluster", "/api/cluster", "Leader, log positions, reachable voters and members of the cluster.")
        .answers(&[ok("the cluster as this controller sees it", &[Content::Json("Cluster")])])
        .refuses(&[&[MALFORMED]]),
    get("listMembers", "/api/cluster/members", "The members by number, with their state.")
        .takes(&[LIMIT_OF_ALL, OFFSET])
        .answers(&[ok("the members", &[Content::List("Member")])])
        .refuses(&[&[MALFORMED]]),
    delete(
        "removeMember",
        "/api/cluster/members/{member}",
        "Removes a member permanently; refused if no quorum would remain.",
    )
    .takes(&[IDEMPOTENCY_KEY])
    .answers(&[ok("it is removed", &[Content::Json("Removed")])])
    .refuses(&[WRITE, &[UNKNOWN_MEMBER, MEMBERSHIP_REFUSED, MEMBER_BEHIND]]),
    post("createJoinToken", "/api/cluster/join-tokens", "Creates a token with which a controller can join.")
        .takes(&[IDEMPOTENCY_KEY])
        .body(Body::MaybeJson("TokenRequest"))
        .answers(&[created("the token, shown this once", &[Content::Json("Token")])])
        .refuses(&[WRITE, BODY, &[LIMIT_REACHED]]),
    post("revokeJoinToken", "/api/cluster/join-tokens/revoke", "Revokes a join token.")
        .takes(&[IDEMPOTENCY_KEY])
        .body(Body::Json("RevokeRequest"))
        .answers(&[ok("the token is revoked", &[Content::Json("Revoked")])])
        .refuses(&[WRITE, BODY]),
    post("transferLeader", "/api/cluster/transfer-leader", "Makes another member the leader.")
        .takes(&[IDEMPOTENCY_KEY])
        .body(Body::MaybeJson("TransferRequest"))
        .answers(&[ok("the new leader", &[Content::Json("Transferred")])])
        .refuses(&[WRITE, BODY, &[UNKNOWN_MEMBER, MEMBERSHIP_REFUSED, MEMBER_BEHIND]]),
    get("snapshot", "/api/cluster/snapshot", "A backup of the cluster, streamed.")
        .answers(&[ok("a tar archive", &[Content::Other("application/x-tar")])])
        .refuses(&[READ, &[NO_BACKUP]]),
];
