//! Nodes and the health of the cluster (`nodes`), the demand for workers (`work`), models: whether they can be reached and how often they may
//! be called (`model_health`, `model_limits`), statistics of agents (`stats`), and metrics from events (`observe`).

mod circuit;
pub mod labels;
pub mod model_health;
mod model_limits;
mod nodes;
mod observe;
mod stats;
mod totals;
mod work;

pub use circuit::shown as shown_circuit;
pub use model_limits::{ModelLimits, grant_models, model_wait, model_wait_here};
pub use nodes::{NodeAction, act_on_node, health, label_node, node, nodes, ready, render_metrics, rival};
pub use observe::record as record_metrics;
pub use stats::{Stats, Transition};
pub use totals::keep as keep_totals;
pub use work::{WorkFilter, jobs_for_workers};
