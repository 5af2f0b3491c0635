//! Events.

use atlas_service::catalogue::EVENTS_GONE;

use super::super::{Content, Kind, Operation};
use super::parts::{AFTER, READ, STORED, UPGRADED, VIEW, get, ok, query};

pub(super) const OPERATIONS: &[Operation] = &[
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
];
