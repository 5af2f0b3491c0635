//! gRPC between controller, worker and peers.
