//! Nodes and the health of the cluster (`nodes`), the demand for workers (`work`), statistics of agents (`stats`), and metrics from events
//! (`observe`).

mod circuit;
pub mod labels;
mod nodes;
mod observe;
mod stats;
mod totals;
mod work;

pub use circuit::shown as shown_circuit;
pub use nodes::{NodeAction, act_on_node, health, label_node, node, nodes, ready, render_metrics, rival};
pub use observe::record as record_metrics;
pub use stats::{Stats, Transition};
pub use totals::keep as keep_totals;
pub use work::{WorkFilter, jobs_for_workers};
