//! Questions of jobs.

use atlas_service::catalogue::{
    AMBIGUOUS_JOB, ANSWER_REFUSED, CLUSTER_FULL, EVENTS_GONE, LIMIT_REACHED, NOT_ANSWERER, QUESTION_CLOSED,
    UNKNOWN_QUESTION, UNKNOWN_TRACE,
};

use super::super::{Body, Content, Kind, Operation};
use super::parts::{
    AFTER, BODY, CONSISTENCY, DELTAS, IDEMPOTENCY_KEY, JOB, LIMIT, READ, STORED, UPGRADED, VIEW, WRITE, get, ok, post,
    query, word,
};

pub(super) const OPERATIONS: &[Operation] = &[
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
            &[UNKNOWN_QUESTION, QUESTION_CLOSED, NOT_ANSWERER, ANSWER_REFUSED, LIMIT_REACHED, CLUSTER_FULL],
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
    get(
        "getTrace",
        "/api/traces/{id}",
        "What one job did, with the checks of its agent; or what the jobs of one execution of a chain did.",
    )
    .lenient()
    .takes(&[CONSISTENCY])
    .answers(&[ok(
        "the trace; that of an execution has its sums and the traces of its jobs in `steps`",
        &[Content::Json("Trace")],
    )])
    .refuses(&[READ, STORED, &[AMBIGUOUS_JOB, UNKNOWN_TRACE]]),
];
