//! Health, figures and pages.

use atlas_access::Right;

use super::operation::{Content, Operation};
use super::parts::{CONSISTENCY, METRICS, READ, get, in_cluster, ok, word};
use crate::catalogue::{MALFORMED, UNKNOWN_AGENT};
use crate::types::{AgentFigures, AllFigures, Document, Health, Ready, Version};

operation_ids! {
    /// Health, figures and pages.
    Figures {
        Health = "health",
        Ready = "ready",
        Version = "version",
        Figures = "figures",
        FiguresOfAgent = "figuresOfAgent",
        Metrics = "metrics",
        ErrorPage = "errorPage",
        OpenApi = "openApi",
    }
}

pub(super) const OPERATIONS: &[Operation] = &[
    get(
        Figures::Health.id(),
        in_cluster(Right::Public),
        "/api/health",
        "Numbers of waiting and running jobs, and declared hardware.",
    )
    .compatible()
    .takes(&[CONSISTENCY])
    .answers(&[ok("the controller is healthy", &[Content::json::<Health>()])])
    .refuses(&[READ]),
    get(Figures::Ready.id(), in_cluster(Right::Public), "/api/ready", "Whether this controller can serve requests.")
        .takes(&[word("alone", &["true", "false"], "`true` succeeds as well while no other member runs")])
        .answers(&[ok("it can", &[Content::json::<Ready>()])])
        .refuses(&[READ, &[MALFORMED]]),
    get(Figures::Version.id(), in_cluster(Right::Public), "/api/version", "The program and the cluster.")
        .answers(&[ok("the versions", &[Content::json::<Version>()])])
        .refuses(&[&[MALFORMED]]),
    get(Figures::Figures.id(), in_cluster(Right::MetricsRead), "/api/metrics", "Statistics of all agents.")
        .compatible()
        .answers(&[ok("the figures", &[Content::json::<AllFigures>()])])
        .refuses(&[&[MALFORMED]]),
    get(
        Figures::FiguresOfAgent.id(),
        in_cluster(Right::MetricsRead),
        "/api/metrics/{agent}",
        "Statistics of one agent.",
    )
    .compatible()
    .answers(&[ok("the figures", &[Content::json::<AgentFigures>()])])
    .refuses(&[&[MALFORMED, UNKNOWN_AGENT]]),
    get(
        Figures::Metrics.id(),
        in_cluster(Right::MetricsRead),
        "/metrics",
        "All instruments in the OpenMetrics text form.",
    )
    .answers(&[ok("the instruments", &[Content::Other(METRICS)])])
    .refuses(&[&[MALFORMED]]),
    get(
        Figures::ErrorPage.id(),
        in_cluster(Right::Public),
        "/errors/{code}",
        "The page of an error code: cause and what to try. The `type` of a problem document is its path.",
    )
    .answers(&[ok("the page, Markdown", &[Content::Other("text/plain")])])
    .refuses(&[&[MALFORMED]]),
    get(
        Figures::OpenApi.id(),
        in_cluster(Right::Public),
        "/api/openapi.json",
        "This interface as an OpenAPI document.",
    )
    .answers(&[ok("the document", &[Content::json::<Document>()])])
    .refuses(&[&[MALFORMED]]),
];
