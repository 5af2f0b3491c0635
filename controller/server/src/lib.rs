//! The controller program: HTTP, gRPC, wiring.
