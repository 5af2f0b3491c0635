//! Jobs, their steps, logs and traces.

use atlas_access::Right;
use http::StatusCode;

use super::operation::{Body, Content, Kind, Operation, Parameter, Success};
use super::parts::{
    BODY, CONSISTENCY, FAMILY, IDEMPOTENCY_KEY, JOB, LIMIT, OFFSET, OWN_OR_CONTROL, READ, STORED, STRICT, VIEW, WRITE,
    created, delete, get, in_namespace, ok, post, query, word,
};
use crate::catalogue::{
    APPROVAL_NEEDED, CLUSTER_FULL, CONVERSATION_BUSY, DEPENDENCY_MISSING, INPUT_REFUSED, JOURNAL_GONE, LIMIT_REACHED,
    NAMESPACE_FULL, NAMESPACE_LIMIT, NO_SUCH_STEP, NOT_APPROVED, NOT_IN_DOUBT, OUTPUT_REFUSED, POLICY_DENIED,
    QUEUE_FULL, STEP_DIFFERS, TOO_LARGE, UNKNOWN_AGENT, UNKNOWN_OBJECT, WRONG_STATUS,
};
use crate::types::{
    Batch, BatchResults, Cancellation, DoubtDecision, Erasure, Explanation, Fork, Id, Job, JobMessage, JobStep,
    JobTree, LeftPermissions, Receipt, Resolution, SentMessage, Submission,
};

operation_ids! {
    /// Jobs, their steps, logs and traces.
    Jobs {
        SubmitJob = "submitJob",
        SubmitJobs = "submitJobs",
        ListJobs = "listJobs",
        GetJob = "getJob",
        DeleteJob = "deleteJob",
        WaitForJob = "waitForJob",
        GetJobTree = "getJobTree",
        GetJobPolicies = "getJobPolicies",
        ExplainJob = "explainJob",
        ListSteps = "listSteps",
        GetReceipt = "getReceipt",
        CancelJob = "cancelJob",
        RetryJob = "retryJob",
        EraseJob = "eraseJob",
        EraseJobs = "eraseJobs",
        ForkJob = "forkJob",
        ResolveJob = "resolveJob",
        SendMessage = "sendMessage",
    }
}

pub(super) const OPERATIONS: &[Operation] = &[
    post(
        Jobs::SubmitJob.id(),
        in_namespace(Right::JobsSubmit),
        "/api/jobs",
        "Submits a job. The answer is sent once the job is durable.",
    )
    .compatible()
    .takes(&[
        word(
            "validate",
            &["refuse"],
            "`refuse` refuses jobs that cannot run, instead of accepting them and letting them fail",
        ),
        word("only", &["agent"], "with `validate=refuse`: `agent` refuses the name of a stored chain as well"),
        query("wait", Kind::Number, "seconds to wait for the end of the job; the answer is then the job"),
        FAMILY,
        VIEW,
        STRICT,
        IDEMPOTENCY_KEY,
    ])
    .body(Body::json::<Submission>())
    .answers(&[
        created("the job is queued, or waits for an approval", &[Content::json::<Id>()]),
        ok("with `wait`: the job after it has ended or the time has passed", &[Content::json::<Job>()]),
    ])
    .refuses(&[
        WRITE,
        BODY,
        STORED,
        &[
            UNKNOWN_AGENT,
            INPUT_REFUSED,
            DEPENDENCY_MISSING,
            POLICY_DENIED,
            CONVERSATION_BUSY,
            QUEUE_FULL,
            LIMIT_REACHED,
            CLUSTER_FULL,
            NAMESPACE_LIMIT,
            NAMESPACE_FULL,
        ],
    ]),
    post(
        Jobs::SubmitJobs.id(),
        in_namespace(Right::JobsSubmit),
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
    .body(Body::json::<Batch>())
    .answers(&[
        created("all jobs are queued", &[Content::json::<BatchResults>()]),
        Success {
            status: StatusCode::MULTI_STATUS,
            says: "some or all jobs were refused; `Retry-After` is present if repeating some of them may succeed",
            contents: &[Content::json::<BatchResults>()],
        },
    ])
    .refuses(&[BODY]),
    get(Jobs::ListJobs.id(), in_namespace(Right::JobsRead), "/api/jobs", "Jobs, newest first.")
        .compatible()
        .takes(&[
            query("status", Kind::Text, "only jobs with this status"),
            query("agent", Kind::Text, "only jobs of this agent"),
            query("label", Kind::Text, "only jobs with this label, as `KEY=VALUE`; repeatable"),
            query("text", Kind::Text, "only jobs with these words in their error or labels"),
            query(
                "before",
                Kind::Text,
                "only jobs submitted before this job: the id of the last job of a page gets the next page",
            ),
            query("since", Kind::Number, "submitted at or after this time, Unix seconds"),
            query("until", Kind::Number, "submitted at or before this time, Unix seconds"),
            LIMIT,
            OFFSET,
            VIEW,
            CONSISTENCY,
        ])
        .answers(&[ok("the jobs; large payloads of a long list are null", &[Content::list::<Job>()])])
        .refuses(&[READ, STORED, JOB]),
    get(Jobs::GetJob.id(), in_namespace(Right::JobsRead), "/api/jobs/{id}", "One job.")
        .compatible()
        .takes(&[
            query("wait", Kind::Number, "seconds to wait for the job's end, as `/api/jobs/{id}/wait` does"),
            FAMILY,
            VIEW,
            CONSISTENCY,
        ])
        .answers(&[ok("the job", &[Content::json::<Job>()])])
        .refuses(&[READ, STORED, JOB]),
    delete(
        Jobs::DeleteJob.id(),
        OWN_OR_CONTROL,
        "/api/jobs/{id}",
        "Cancels a pending job; false for every other and for an unknown job.",
    )
    .compatible()
    .takes(&[IDEMPOTENCY_KEY])
    .answers(&[ok("whether it was cancelled", &[Content::json::<Cancellation>()])])
    .refuses(&[WRITE, STORED, JOB]),
    get(
        Jobs::WaitForJob.id(),
        in_namespace(Right::JobsRead),
        "/api/jobs/{id}/wait",
        "Waits for a job; returns it after it has ended or the timeout has passed.",
    )
    .plain_errors()
    .takes(&[
        query("timeout", Kind::Number, "maximum seconds to wait; defaults to 60"),
        FAMILY,
        word("questions", &["true", "false"], "`true` also returns a job that has an open question, or a job below it"),
        VIEW,
    ])
    .answers(&[ok("the job", &[Content::json::<Job>()])])
    .refuses(&[READ, STORED, JOB]),
    get(
        Jobs::GetJobTree.id(),
        in_namespace(Right::JobsRead),
        "/api/jobs/{id}/tree",
        "A job with the jobs that it spawned, except those that have left the state.",
    )
    .takes(&[CONSISTENCY])
    .answers(&[ok("the job in its full view, with its children", &[Content::json::<JobTree>()])])
    .refuses(&[READ, STORED, JOB]),
    get(
        Jobs::GetJobPolicies.id(),
        in_namespace(Right::JobsRead),
        "/api/jobs/{id}/policies",
        "The permissions that policies leave the agent of a job.",
    )
    .answers(&[ok("the permissions and the policies", &[Content::json::<LeftPermissions>()])])
    .refuses(&[READ, STORED, JOB]),
    get(
        Jobs::ExplainJob.id(),
        in_namespace(Right::JobsRead),
        "/api/jobs/{id}/explain",
        "Why a job waits, since when, and what would start it.",
    )
    .takes(&[CONSISTENCY])
    .answers(&[ok("the reason, the estimate and the changes that start the job", &[Content::json::<Explanation>()])])
    .refuses(&[READ, STORED, JOB]),
    get(
        Jobs::ListSteps.id(),
        in_namespace(Right::JobsRead),
        "/api/jobs/{id}/steps",
        "The recorded steps of a job, in order.",
    )
    .takes(&[query("after", Kind::Whole, "only the steps after this number"), LIMIT, CONSISTENCY])
    .answers(&[ok("the steps; large outcomes of a long list are null", &[Content::list::<JobStep>()])])
    .refuses(&[READ, STORED, JOB]),
    get(
        Jobs::GetReceipt.id(),
        in_namespace(Right::JobsRead),
        "/api/jobs/{id}/receipt",
        "A receipt of a job that has ended, which can be verified anywhere.",
    )
    .takes(&[CONSISTENCY])
    .answers(&[ok("the entries of the receipt", &[Content::json::<Receipt>()])])
    .refuses(&[READ, STORED, JOB, &[WRONG_STATUS]]),
    post(
        Jobs::CancelJob.id(),
        OWN_OR_CONTROL,
        "/api/jobs/{id}/cancel",
        "Cancels a pending or running job and the jobs that it spawned.",
    )
    .takes(&[IDEMPOTENCY_KEY])
    .answers(&[ok("whether it was cancelled", &[Content::json::<Cancellation>()])])
    .refuses(&[WRITE, STORED, JOB]),
    post(Jobs::RetryJob.id(), OWN_OR_CONTROL, "/api/jobs/{id}/retry", "Runs an ended job again as a new job.")
        .takes(&[
            word("resume", &["true", "false"], "`true` copies the recorded steps, which the new job does not repeat"),
            query(
                "questions",
                Kind::Text,
                "what happens to the questions of the new job: `fail`, `wait`, or `answer:` and a text; defaults to what happens to those of \
                 the ended one",
            ),
            IDEMPOTENCY_KEY,
        ])
        .answers(&[created("the new job is queued", &[Content::json::<Id>()])])
        .refuses(&[
            WRITE,
            STORED,
            JOB,
            &[
                WRONG_STATUS,
                UNKNOWN_AGENT,
                POLICY_DENIED,
                APPROVAL_NEEDED,
                NOT_APPROVED,
                QUEUE_FULL,
                LIMIT_REACHED,
                CLUSTER_FULL,
                NAMESPACE_LIMIT,
                NAMESPACE_FULL,
                TOO_LARGE,
                JOURNAL_GONE,
            ],
        ]),
    post(
        Jobs::EraseJob.id(),
        in_namespace(Right::JobsControl),
        "/api/jobs/{id}/erase",
        "Erases the input, output, log, steps and error text of an ended job.",
    )
    .takes(&[IDEMPOTENCY_KEY])
    .answers(&[ok("it is erased", &[Content::json::<Erasure>()])])
    .refuses(&[WRITE, STORED, JOB, &[WRONG_STATUS]]),
    post(
        Jobs::EraseJobs.id(),
        in_namespace(Right::JobsControl),
        "/api/jobs:erase",
        "Erases all jobs of a namespace, and its ended runs. All must have ended.",
    )
    .takes(&[IDEMPOTENCY_KEY])
    .answers(&[ok("they are erased", &[Content::json::<Erasure>()])])
    .refuses(&[WRITE, &[WRONG_STATUS]]),
    post(
        Jobs::ForkJob.id(),
        OWN_OR_CONTROL,
        "/api/jobs/{id}/fork",
        "Begins a new job with the first recorded steps of another one.",
    )
    .takes(&[IDEMPOTENCY_KEY])
    .body(Body::json::<Fork>())
    .answers(&[created("the new job is queued", &[Content::json::<Id>()])])
    .refuses(&[
        WRITE,
        BODY,
        STORED,
        JOB,
        &[
            NO_SUCH_STEP,
            STEP_DIFFERS,
            POLICY_DENIED,
            APPROVAL_NEEDED,
            NOT_APPROVED,
            UNKNOWN_AGENT,
            UNKNOWN_OBJECT,
            INPUT_REFUSED,
            QUEUE_FULL,
            LIMIT_REACHED,
            CLUSTER_FULL,
            NAMESPACE_LIMIT,
            NAMESPACE_FULL,
            TOO_LARGE,
            JOURNAL_GONE,
        ],
    ]),
    post(Jobs::ResolveJob.id(), in_namespace(Right::JobsControl), "/api/jobs/{id}/resolve", "Resolves a job in doubt.")
        .takes(&[IDEMPOTENCY_KEY])
        .body(Body::json::<DoubtDecision>())
        .answers(&[ok("the new status", &[Content::json::<Resolution>()])])
        .refuses(&[WRITE, BODY, STORED, JOB, &[NOT_IN_DOUBT, WRONG_STATUS, OUTPUT_REFUSED]]),
    post(
        Jobs::SendMessage.id(),
        OWN_OR_CONTROL,
        "/api/jobs/{id}/messages",
        "Sends a message to a job that has not ended.",
    )
    .takes(&[IDEMPOTENCY_KEY])
    .body(Body::json::<JobMessage>())
    .answers(&[ok("the job has the message in its inbox", &[Content::json::<SentMessage>()])])
    .refuses(&[WRITE, BODY, STORED, JOB, &[WRONG_STATUS, LIMIT_REACHED, CLUSTER_FULL]]),
];
