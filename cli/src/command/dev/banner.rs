//! The first lines of `atlasctl dev`: only what exists.

use std::time::Duration;

use atlas_dev::Cluster;

use crate::api::Node;
use crate::arguments::SERVER_DEFAULT;
use crate::command::dev::{Options, shown};
use crate::command::node::describe;
use crate::context::Context;

/// Says where everything is; `took` counts from the start of the process.
pub(super) fn print(
    context: &Context,
    options: &Options,
    cluster: &Cluster,
    node: &Node,
    agents: usize,
    took: Duration,
) {
    let http = format!("http://{}", cluster.http());
    let data = if options.ephemeral {
        format!("{}  (thrown away at the end)", cluster.data_dir().display())
    } else {
        format!("{}  (kept between runs; --ephemeral to throw away)", shown(&options.data_dir))
    };
    let known = if agents == 0 { "none yet".to_owned() } else { agents.to_string() };
    let api = format!("{http}/api");
    let server = if http == SERVER_DEFAULT { String::new() } else { format!(" --server {http}") };
    context.note(&format!(
        "Atlas {} · DEVELOPMENT MODE — no authentication, loopback only\n\n\
         \x20 API         {api:<35} workers {}\n\
         \x20 Metrics     {http}/metrics\n\n\
         \x20 Data        {data}\n\
         \x20 Node        {}\n\
         \x20 Agents      {known}; watching {}\n\n\
         Ready in {:.1} s.  Next, in another terminal:  atlasctl{server} agent list",
        env!("CARGO_PKG_VERSION"),
        cluster.workers(),
        describe(node),
        shown(&options.agents),
        took.as_secs_f64(),
    ));
}
