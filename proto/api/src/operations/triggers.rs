//! Triggers and their addresses.

use atlas_access::Right;

use super::operation::{Body, Content, Kind, Operation, Parameter, ParameterLocation};
use super::parts::{
    BODY, CONSISTENCY, IDEMPOTENCY_KEY, IF_NONE_MATCH, READ, STORED, STRICT, VIEW, WRITE, created, delete, get,
    in_namespace, ok, post, put, query,
};
use crate::catalogue::{
    BAD_SIGNATURE, CLUSTER_FULL, LIMIT_REACHED, NAMESPACE_FULL, NAMESPACE_LIMIT, NO_SECRETS_KEY, OBJECT_CHANGED,
    OBJECT_REFUSED, POLICY_DENIED, QUEUE_FULL, UNKNOWN_OBJECT,
};
use crate::types::{
    Backfill, BackfillRequest, Call, Deletion, Deliveries, FiredJob, HookGreeting, NextFirings, Trigger,
    TriggerRequest, TriggerTest, TriggerTested,
};

operation_ids! {
    /// Triggers and their addresses.
    Triggers {
        CreateTrigger = "createTrigger",
        ListTriggers = "listTriggers",
        GetTrigger = "getTrigger",
        ChangeTrigger = "changeTrigger",
        DeleteTrigger = "deleteTrigger",
        FireTrigger = "fireTrigger",
        NextFirings = "nextFirings",
        TriggerDeliveries = "triggerDeliveries",
        TestTrigger = "testTrigger",
        BackfillTrigger = "backfillTrigger",
        CallHook = "callHook",
    }
}

pub(super) const OPERATIONS: &[Operation] = &[
    post(
        Triggers::CreateTrigger.id(),
        in_namespace(Right::ObjectsWrite),
        "/api/triggers",
        "Makes a trigger, or replaces the one with this id. The members may be under `trigger`.",
    )
    .compatible()
    .takes(&[STRICT, IF_NONE_MATCH, IDEMPOTENCY_KEY])
    .body(Body::json::<TriggerRequest>())
    .answers(&[created("the trigger", &[Content::json::<Trigger>()])])
    .refuses(&[WRITE, BODY, &[NO_SECRETS_KEY, OBJECT_CHANGED, OBJECT_REFUSED, LIMIT_REACHED, CLUSTER_FULL, UNKNOWN_OBJECT]]),
    get(Triggers::ListTriggers.id(), in_namespace(Right::ObjectsRead), "/api/triggers", "Triggers, newest first.")
        .compatible()
        .takes(&[
            query("type", Kind::Text, "only triggers of this type"),
            query("enabled", Kind::Text, "`true`, `1` and `yes`: only enabled ones; anything else: only disabled ones"),
            query("limit", Kind::Lenient, "maximum number; 100 without it"),
            VIEW,
            CONSISTENCY,
        ])
        .answers(&[ok("the triggers", &[Content::list::<Trigger>()])])
        .refuses(&[READ]),
    get(Triggers::GetTrigger.id(), in_namespace(Right::ObjectsRead), "/api/triggers/{id}", "One trigger.")
        .compatible()
        .takes(&[VIEW, CONSISTENCY])
        .answers(&[ok("the trigger", &[Content::json::<Trigger>()])])
        .refuses(&[READ, &[UNKNOWN_OBJECT]]),
    put(Triggers::ChangeTrigger.id(), in_namespace(Right::ObjectsWrite), "/api/triggers/{id}", "Changes members of a trigger, and computes its next time.")
        .compatible()
        .takes(&[STRICT, IDEMPOTENCY_KEY])
        .body(Body::json::<TriggerRequest>())
        .answers(&[ok("the trigger", &[Content::json::<Trigger>()])])
        .refuses(&[WRITE, BODY, &[NO_SECRETS_KEY, UNKNOWN_OBJECT, OBJECT_CHANGED, OBJECT_REFUSED, LIMIT_REACHED, CLUSTER_FULL]]),
    delete(Triggers::DeleteTrigger.id(), in_namespace(Right::ObjectsWrite), "/api/triggers/{id}", "Deletes a trigger.")
        .compatible()
        .takes(&[IDEMPOTENCY_KEY])
        .answers(&[ok("the trigger is deleted", &[Content::json::<Deletion>()])])
        .refuses(&[WRITE, &[UNKNOWN_OBJECT]]),
    post(Triggers::FireTrigger.id(), in_namespace(Right::JobsSubmit), "/api/triggers/{id}/fire", "Fires a trigger now, also a disabled one.")
        .compatible()
        .takes(&[IDEMPOTENCY_KEY])
        .answers(&[created("the job", &[Content::json::<FiredJob>()])])
        .refuses(&[WRITE, STORED, &[UNKNOWN_OBJECT, POLICY_DENIED, QUEUE_FULL, LIMIT_REACHED, CLUSTER_FULL, NAMESPACE_LIMIT, NAMESPACE_FULL, OBJECT_CHANGED]]),
    get(Triggers::NextFirings.id(), in_namespace(Right::ObjectsRead), "/api/triggers/{id}/next", "The next times at which a trigger fires.")
        .takes(&[query("count", Kind::Whole, "how many, at most 100; defaults to 5")])
        .answers(&[ok("the times", &[Content::json::<NextFirings>()])])
        .refuses(&[READ, &[UNKNOWN_OBJECT]]),
    get(
        Triggers::TriggerDeliveries.id(),
        in_namespace(Right::ObjectsRead),
        "/api/triggers/{id}/deliveries",
        "The latest calls of a webhook that reached this controller, newest first.",
    )
    .takes(&[query("limit", Kind::Whole, "how many, at most 100; defaults to 20")])
    .answers(&[ok("the calls", &[Content::json::<Deliveries>()])])
    .refuses(&[READ, &[UNKNOWN_OBJECT]]),
    post(Triggers::TestTrigger.id(), in_namespace(Right::ObjectsWrite), "/api/triggers/{id}/test", "What a call would start. Nothing is started.")
        .body(Body::maybe_json::<TriggerTest>())
        .answers(&[ok("the job that would be submitted", &[Content::json::<TriggerTested>()])])
        .refuses(&[READ, BODY, STORED, &[UNKNOWN_OBJECT]]),
    post(Triggers::BackfillTrigger.id(), in_namespace(Right::JobsSubmit), "/api/triggers/{id}/backfill", "Fires a trigger for times that have passed, each once.")
        .body(Body::json::<BackfillRequest>())
        .answers(&[ok("the times, with their jobs", &[Content::json::<Backfill>()])])
        .refuses(&[WRITE, BODY, STORED, &[UNKNOWN_OBJECT, POLICY_DENIED, QUEUE_FULL, LIMIT_REACHED, CLUSTER_FULL, NAMESPACE_LIMIT, NAMESPACE_FULL, OBJECT_CHANGED]]),
    post(Triggers::CallHook.id(), in_namespace(Right::Public), "/api/hooks/{id}", "Fires a webhook. The members of the body replace those of its input.")
        .compatible()
        .takes(&[
            Parameter {
                name: "X-Atlas-Signature",
                place: ParameterLocation::Header,
                says: "the HMAC-SHA256 of the body with the secret of the trigger, if it has one: 64 hexadecimal digits, also after `sha256=`, or several \
                    with commas between them; other schemes have headers of their own",
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
        .body(Body::maybe_json::<Call>())
        .answers(&[
            created("the job", &[Content::json::<FiredJob>()]),
            ok("nothing was started: the sender asked whether somebody is here", &[Content::json::<HookGreeting>()]),
        ])
        .refuses(&[
            WRITE,
            BODY,
            STORED,
            &[
                UNKNOWN_OBJECT, BAD_SIGNATURE, POLICY_DENIED, NO_SECRETS_KEY, QUEUE_FULL, LIMIT_REACHED, CLUSTER_FULL, NAMESPACE_LIMIT, NAMESPACE_FULL, OBJECT_CHANGED,
            ],
        ]),
];
