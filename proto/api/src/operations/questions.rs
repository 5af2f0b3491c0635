//! Questions of jobs.

use atlas_access::Right;

use super::operation::{Body, Content, Kind, Operation};
use super::parts::{
    AFTER, BODY, CONSISTENCY, DELTAS, IDEMPOTENCY_KEY, JOB, LIMIT, READ, STORED, UPGRADED, VIEW, WRITE, get,
    in_namespace, ok, post, query, word,
};
use crate::catalogue::{
    AMBIGUOUS_JOB, ANSWER_REFUSED, CLUSTER_FULL, EVENTS_GONE, LIMIT_REACHED, NOT_ANSWERER, QUESTION_CLOSED,
    UNKNOWN_QUESTION, UNKNOWN_TRACE,
};
use crate::types::{JobChange, JobQuestion, Line, QuestionAnswer, Trace};

operation_ids! {
    /// Questions of jobs.
    Questions {
        ListQuestions = "listQuestions",
        GetQuestion = "getQuestion",
        AnswerQuestion = "answerQuestion",
        FollowJob = "followJob",
        JobLogs = "jobLogs",
        ListTraces = "listTraces",
        GetTrace = "getTrace",
    }
}

pub(super) const OPERATIONS: &[Operation] = &[
    get(
        Questions::ListQuestions.id(),
        in_namespace(Right::JobsRead),
        "/api/questions",
        "The questions of jobs to people, the oldest first.",
    )
    .takes(&[
        word("status", &["open", "all"], "`all` adds questions that have ended; defaults to `open`"),
        query("job", Kind::Text, "only those of this job and of the jobs below it"),
        query("after", Kind::Whole, "only those with a number after this one"),
        LIMIT,
        CONSISTENCY,
    ])
    .answers(&[ok("the questions", &[Content::list::<JobQuestion>()])])
    .refuses(&[READ, STORED, JOB]),
    get(Questions::GetQuestion.id(), in_namespace(Right::JobsRead), "/api/questions/{id}", "One question.")
        .takes(&[CONSISTENCY])
        .answers(&[ok("the question", &[Content::json::<JobQuestion>()])])
        .refuses(&[READ, &[UNKNOWN_QUESTION]]),
    post(
        Questions::AnswerQuestion.id(),
        in_namespace(Right::QuestionsAnswer),
        "/api/questions/{id}/answer",
        "Answers a question. The first answer stands.",
    )
    .takes(&[IDEMPOTENCY_KEY])
    .body(Body::json::<QuestionAnswer>())
    .answers(&[ok("the question with its answer", &[Content::json::<JobQuestion>()])])
    .refuses(&[
        WRITE,
        BODY,
        &[UNKNOWN_QUESTION, QUESTION_CLOSED, NOT_ANSWERER, ANSWER_REFUSED, LIMIT_REACHED, CLUSTER_FULL],
    ]),
    get(
        Questions::FollowJob.id(),
        in_namespace(Right::JobsRead),
        "/api/jobs/{id}/events",
        "The changes of one job, until it has ended.",
    )
    .compatible()
    .takes(&[word("follow", &["true", "false"], "`false` ends the stream after the past events"), AFTER, VIEW, DELTAS])
    .answers(&[ok("past and future changes", &[Content::events::<JobChange>()]), UPGRADED])
    .refuses(&[READ, STORED, JOB, &[EVENTS_GONE]]),
    get(
        Questions::JobLogs.id(),
        in_namespace(Right::JobsRead),
        "/api/jobs/{id}/logs",
        "Log lines and progress of a job.",
    )
    .takes(&[AFTER, DELTAS])
    .answers(&[ok("the lines so far, or a stream of lines", &[Content::list::<Line>(), Content::events::<Line>()])])
    .refuses(&[READ, STORED, JOB]),
    get(
        Questions::ListTraces.id(),
        in_namespace(Right::JobsRead),
        "/api/traces",
        "What completed and failed jobs did, the latest first.",
    )
    .compatible()
    .takes(&[query("agent", Kind::Text, "only traces of this agent"), LIMIT, CONSISTENCY])
    .answers(&[ok("the traces", &[Content::list::<Trace>()])])
    .refuses(&[READ, STORED]),
    get(
        Questions::GetTrace.id(),
        in_namespace(Right::JobsRead),
        "/api/traces/{id}",
        "What one job did, with the checks of its agent; or what the jobs of one run of a chain did.",
    )
    .compatible()
    .takes(&[CONSISTENCY])
    .answers(&[ok(
        "the trace; that of a run has its sums and the traces of its jobs in `steps`",
        &[Content::json::<Trace>()],
    )])
    .refuses(&[READ, STORED, &[AMBIGUOUS_JOB, UNKNOWN_TRACE]]),
];
