//! Compiles the wire contracts without `protoc`.

use std::error::Error;
use std::path::Path;

const FILES: [&str; 10] = [
    "atlas/worker/v1/worker_service.proto",
    "atlas/worker/v1/enrollment_service.proto",
    "atlas/peer/v1/peer_service.proto",
    "atlas/peer/v1/member_service.proto",
    "atlas/peer/v1/store_service.proto",
    "atlas/peer/v1/line_service.proto",
    "atlas/peer/v1/credential_service.proto",
    "atlas/error/v1/error_detail.proto",
    "atlas/orchestrator/v1/orchestrator_service.proto",
    "externalscaler/external_scaler.proto",
];

/// Messages with values of secrets. `convert/attachment.rs` has a `Debug` for them that shows none.
const WITHOUT_DEBUG: [&str; 4] = [
    ".atlas.worker.v1.Attachments",
    ".atlas.worker.v1.AttachedSecret",
    ".atlas.worker.v1.EnrollRequest",
    ".atlas.peer.v1.HoldCredentialRequest",
];

fn main() -> Result<(), Box<dyn Error>> {
    let root = Path::new("..");
    for folder in ["atlas/worker", "atlas/peer", "atlas/error", "atlas/orchestrator", "externalscaler"] {
        println!("cargo:rerun-if-changed={}", root.join(folder).display());
    }
    let files = protox::Compiler::new([root])?.include_imports(true).open_files(FILES)?.file_descriptor_set();
    tonic_prost_build::configure()
        .bytes(".")
        .skip_debug(WITHOUT_DEBUG)
        .emit_rerun_if_changed(false)
        .compile_fds(files)?;
    Ok(())
}
