//! Requests to other servers: how connections are opened, whom they trust, and how much of an answer is read.
//!
//! All programs of a cluster that ask other servers stand on this crate, and say with [`ConnectOptions`] where they differ on purpose. Only
//! the operator for Kubernetes (`k8s/operator`) has clients of its own: it asks Kubernetes with the crate `kube`, and a cluster beside it.
//!
//! | who asks | connections by | proxies | trusts | HTTP | redirects |
//! |---|---|---|---|---|---|
//! | models | the network of the worker | the model's setting, or the environment | the system, and a file | 1 and 2 | none: a key reaches no other server |
//! | MCP servers | the network of the worker | the environment | the system, and a file | 1 and 2 | on the same origin, with method and body |
//! | webhooks, issuers of tokens as controllers ask them | the network of the controller, which refuses addresses that are no receivers | none | the system | 1 | none |
//! | receivers of OTLP | the machine | none | the system, or a file alone | 1, or 2 for gRPC | none |
//! | sources of document bases | the machine, to public addresses and those that the operator allows, as they were resolved | none: they would resolve names themselves | the system, and a file | 1 and 2 | to addresses that are checked likewise |
//! | the command line, also its logins | the machine | none: they could not reach a controller on this machine | the system, or a file alone | 1 | none |
//!
//! * [`Connector`] opens connections; [`pool`] keeps them between requests;
//! * [`Proxy`] and [`Trust`] say how and whom;
//! * [`body`] reads bounded bodies, and [`sse`] server-sent events.

pub mod address;
pub mod body;
mod connect;
mod proxy;
mod secret;
pub mod sse;
mod trust;
mod tunnel;

use std::time::Duration;

use atlas_env::Clock;

pub use connect::{Check, ConnectOptions, Connector, Dial, Stream, Versions, is_lasting, pool, resolved};
pub use proxy::{Proxy, ProxyError};
pub use secret::Secret;
pub use trust::{Trust, TrustError};

/// How this program names itself in requests.
pub const USER_AGENT: http::HeaderValue = http::HeaderValue::from_static(concat!("atlas/", env!("CARGO_PKG_VERSION")));

/// What `future` returns, if it does so within `limit`.
pub async fn limited<F: Future>(clock: &dyn Clock, limit: Duration, future: F) -> Option<F::Output> {
    let sleep = clock.sleep(limit);
    tokio::select! {
        biased;
        output = future => Some(output),
        () = sleep => None,
    }
}
