//! Events.

use atlas_access::Right;

use super::operation::{Content, Kind, Operation};
use super::parts::{AFTER, READ, STORED, UPGRADED, VIEW, get, in_namespace, ok, query};
use crate::catalogue::EVENTS_GONE;
use crate::types::{ClusterEvent, JobChange};

operation_ids! {
    /// Events.
    Events {
        FollowAll = "followAll",
        FollowAllAtWs = "followAllAtWs",
        FollowEvents = "followEvents",
    }
}

pub(super) const OPERATIONS: &[Operation] = &[
    get(Events::FollowAll.id(), in_namespace(Right::JobsRead), "/api/events", "The changes of all jobs.")
        .compatible()
        .takes(&[AFTER, VIEW])
        .answers(&[ok("the changes from now on, or after an event", &[Content::events::<JobChange>()]), UPGRADED])
        .refuses(&[READ, STORED, &[EVENTS_GONE]]),
    get(Events::FollowAllAtWs.id(), in_namespace(Right::JobsRead), "/ws", "The same as `/api/events`.")
    .plain_errors()
        .takes(&[AFTER, VIEW])
        .answers(&[ok("the changes from now on, or after an event", &[Content::events::<JobChange>()]), UPGRADED])
        .refuses(&[READ, STORED, &[EVENTS_GONE]]),
    get(
        Events::FollowEvents.id(),
        in_namespace(Right::ClusterRead),
        "/api/cluster/events",
        "Events of every kind: jobs, agents, nodes, the configuration.",
    )
    .takes(&[
        query(
            "kind",
            Kind::Text,
            "only events of these kinds, with commas between: job, agent, node, object, run, cluster",
        ),
        query("name", Kind::Text, "only events about what has this name: a job's id, an agent or a node"),
        query("after", Kind::Whole, "the last event seen, for clients that cannot send `Last-Event-ID`"),
    ])
    .answers(&[ok("the events from now on, or after an event", &[Content::events::<ClusterEvent>()])])
    .refuses(&[READ, STORED, &[EVENTS_GONE]]),
];
