//! Bounds of the HTTP door.

use std::time::Duration;

/// The limits of the door. Each is an option of the controller.
#[derive(Debug, Clone)]
pub struct HttpLimits {
    /// The largest body of a request, except packages.
    pub body_bytes_max: usize,
    /// The largest package.
    pub package_bytes_max: usize,
    /// The most connections at once.
    pub connections_max: usize,
    /// The time limit for receiving a request's headers.
    pub header_timeout: Duration,
    /// The time limit for receiving a request's body.
    pub body_timeout: Duration,
    /// The longest wait that a client may request.
    pub wait_max: Duration,
}
