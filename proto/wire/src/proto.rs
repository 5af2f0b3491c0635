//! The generated messages, clients and servers, one module per package. Only this crate's conversions read the messages.

/// The stream between a worker and the leader.
#[expect(
    clippy::large_enum_variant,
    unused_qualifications,
    clippy::allow_attributes,
    clippy::allow_attributes_without_reason,
    reason = "generated"
)]
pub mod worker {
    /// Version 1.
    pub mod v1 {
        tonic::include_proto!("atlas.worker.v1");
    }
}

/// Raft between controllers.
#[expect(
    unused_qualifications,
    clippy::allow_attributes,
    clippy::allow_attributes_without_reason,
    reason = "generated"
)]
pub mod peer {
    /// Version 1.
    pub mod v1 {
        tonic::include_proto!("atlas.peer.v1");
    }
}

/// Orchestrators outside of the cluster.
#[expect(
    unused_qualifications,
    clippy::allow_attributes,
    clippy::allow_attributes_without_reason,
    reason = "generated"
)]
pub mod orchestrator {
    /// Version 1.
    pub mod v1 {
        tonic::include_proto!("atlas.orchestrator.v1");
    }
}

/// Autoscalers of Kubernetes.
#[expect(
    unused_qualifications,
    clippy::allow_attributes,
    clippy::allow_attributes_without_reason,
    reason = "generated"
)]
pub mod scaler {
    /// Version 1. The package is that of KEDA.
    pub mod v1 {
        tonic::include_proto!("externalscaler");
    }
}

/// Details of a status.
pub mod error {
    /// Version 1.
    pub mod v1 {
        tonic::include_proto!("atlas.error.v1");
    }
}
