//! Walks the catalogue: every error has a hint that can help.

use std::collections::BTreeSet;

use atlas_types::{JobId, Principal};

use super::*;

/// An error of each kind that a door can answer with.
fn samples() -> Vec<Error> {
    let agent = || AgentName::new("hello").expect("a name");
    let version = || "1.0.0".parse::<Version>().expect("a version");
    let full = |what| Rejection::LimitReached { what, limit: 1 };
    let mut all = vec![
        Error::UnknownAgent { name: "a".into(), version: None, versions: Vec::new(), suggestion: None },
        Error::AgentGone,
        Error::Foreign("x".into()),
        Error::UnknownOrchestrator("x".into()),
        Error::NotAnOrchestrator("x".into()),
        Error::ChainCycle("x".into()),
        Error::NoFigures("x".into()),
        Error::InputRefused { agent: agent(), version: version(), violations: Vec::new() },
        Error::DependencyMissing { agent: agent(), version: version(), missing: Vec::new() },
        Error::ContractRefused { text: String::new(), violations: Vec::new() },
        Error::Malformed("x".into()),
        Error::UnknownPath,
        Error::NoMethod("GET".into()),
        Error::NotConfigured("x"),
        Error::NotPrivate,
        Error::LoginFailed { owner: "x".into(), why: "y".into(), passes: true },
        Error::LoginFailed { owner: "x".into(), why: "y".into(), passes: false },
        Error::NoSecretsKey,
        Error::Unauthenticated("x"),
        Error::Forbidden {
            principal: Principal::new("anonymous").expect("a name"),
            right: Right::ObjectsRead,
            place: Place::Cluster,
        },
        Error::PolicyDenied { policy: "p".into(), rule: None, why: None },
        Error::ApprovalNeeded { policy: "p".into(), rule: "r".into(), what: "it" },
        Error::Unapproved,
        Error::Late,
        Error::PackageRefused("x".into()),
        Error::UnknownJob,
        Error::UnknownRun,
        Error::UnknownTrace,
        Error::AmbiguousJob { prefix: "job-".into(), first: JobId(1), second: JobId(2) },
        Error::QueueFull { rejection: Rejection::QueueFull { active: 1 } },
        Error::RequestConflict,
        Error::WrongStatus { status: JobStatus::Failed },
        Error::JournalGone,
        Error::NoSuchStep { steps: 1, recorded: 0 },
        Error::NoSuchStep { steps: 2, recorded: 1 },
        Error::ForkDiffers("x".into()),
        Error::NotInDoubt { status: JobStatus::Failed },
        Error::OutputRefused { agent: agent(), version: version(), violations: Vec::new() },
        Error::SpawnRefused(Rejection::SpawnForbidden),
        Error::LevelTooLow(Rejection::LevelTooLow { needed: Level(9) }),
        Error::BadSignature,
        Error::CallTooLarge,
        Error::EventsGone { earliest: EventSeq(1) },
        Error::HistoryBehind,
        Error::Behind,
        Error::NoLeader,
        Error::OutcomeUnknown,
        Error::AuditFailing,
        Error::Unrecorded,
        Error::NoSpace,
        Error::Overloaded,
        Error::UnknownNode("n".into()),
        Error::NodeBusy { leases: 1 },
        Error::NodeTaken { node: "n".parse().expect("a name"), holder: "a:1".into(), address: "b:1".into() },
        Error::AgentInUse(Rejection::AgentInService),
        Error::AgentInUse(Rejection::AgentInUse { jobs: 1 }),
        Error::LabelOfWorker(Rejection::LabelOfWorker { key: "k".into() }),
        Error::UnknownObject("x".into()),
        Error::SegmentUnreadable("x".into()),
        Error::BaseFull("x".into()),
        Error::ModelFailed { entry: catalogue::MODEL_CALL, why: "x".into() },
        Error::StoreFailed("x".into()),
        Error::ObjectChanged { revision: EventSeq(1) },
        Error::MemoryChanged,
        Error::UnknownObjectKind("x".into()),
        Error::ObjectRefused { what: "x".into(), violations: Vec::new() },
        Error::ConversationBusy("c".into()),
        Error::ObjectInUse(Rejection::ObjectInUse { what: "jobs" }),
        Error::TokenRefused(Rejection::TokenRefused),
        Error::NodeTokenRefused,
        Error::NodeNameTaken("n".into()),
        Error::GroupFull { max: 1 },
        Error::NotEnrolled("n".into()),
        Error::NoTls,
        Error::UnknownMember("c".into()),
        Error::TooOld { needed: Level(2), known: Level(1) },
        Error::NameTaken("c".into()),
        Error::NoBackup("x"),
        Error::UnknownQuestion,
        Error::QuestionClosed("closed"),
        Error::NotAnswerer,
        Error::AnswerRefused("x".into()),
        Error::Internal,
    ];
    all.extend(Rejection::LIMITS.map(|what| Error::LimitReached(full(what))));
    let bounded = ["pending jobs", "bytes of inputs", "agent versions"];
    all.extend(bounded.map(|what| Error::NamespaceLimit(Rejection::NamespaceLimit { what, limit: 1 })));
    let sized = ["the package", "the body", "the payload", "the answer"];
    all.extend(sized.map(|what| Error::TooLarge { what, limit: 1 }));
    all
}

#[test]
fn only_what_passes_by_itself_is_tried_again() {
    for error in samples() {
        let (entry, hint) = (error.entry(), error.hint());
        let waits =
            ["try again", "try it again", "in a moment", "wait until jobs"].iter().any(|words| hint.contains(words));
        assert!(!waits || entry.passes(), "{}: {error}: {hint}", entry.code);
        assert!(error.retry_after().is_none() || entry.passes(), "{}: {error}", entry.code);
        if matches!(entry.kind, ErrorKind::Denied) && entry.title.contains("limit") {
            assert!(!hint.is_empty(), "{}: {error}: nobody knows what to remove", entry.code);
        }
    }
}

#[test]
fn a_hint_is_a_clause_that_is_no_sentence() {
    for hint in samples().iter().map(Error::hint).filter(|hint| !hint.is_empty()) {
        assert!(!hint.ends_with('.') && !hint.contains('\n'), "{hint:?}");
        assert!(hint.starts_with(|c: char| c.is_lowercase() || c == 'X'), "{hint:?}");
    }
}

#[test]
fn every_code_of_the_doors_has_a_sample() {
    // Those of jobs, of the command line, and of what one controller answers another.
    let elsewhere = [
        "E1112", "E1127", "E1128", "E2113", "E3013", "E3014", "E3015", "E3017", "E3018", "E3020", "E3044", "E3106",
        "E3107", "E3108", "E3202", "E3203", "E3204", "E3205", "E3206", "E3208", "E3209", "E3210", "E3211", "E3301",
        "E3302", "E4006", "E3010", "E6002", "E6003",
    ];
    let told: BTreeSet<&str> = samples().iter().map(|error| error.entry().code).chain(elsewhere).collect();
    let missing: Vec<&str> =
        catalogue::ENTRIES.iter().map(|entry| entry.code).filter(|code| !told.contains(code)).collect();
    assert!(missing.is_empty(), "no error of these codes is looked at: {missing:?}");
}
