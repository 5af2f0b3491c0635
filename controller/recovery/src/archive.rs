//! A backup: one tar file whose parts are named by a manifest at its end.
//!
//! The parts, in this order: `about.json`, `state.snapshot` (the state as a snapshot), `history.sqlite` (cut at the
//! state's last event), `artifacts/<digest>` for each package and large payload, `manifest.json` with size and SHA-256
//! of each earlier part, and `manifest.sha256` with the same sums in the format of sha256sum. The manifest comes last
//! because the archive is sent as it is made; an archive without it is incomplete. A person can read one with only tar
//! and sha256sum.

mod encode;
mod read;

use std::io;

use atlas_format::SnapshotError;
use atlas_types::{Digest, StateImage};
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

pub use encode::{Encoder, WrongLength};
pub use read::{ArchiveContents, read};

/// The format that this program writes.
pub const FORMAT: u32 = 1;

/// The part that describes the backup.
pub const ABOUT: &str = "about.json";
/// The part with the state.
pub const STATE: &str = "state.snapshot";
/// The part with the history.
pub const HISTORY: &str = "history.sqlite";
/// The folder of the parts that are artifacts, each named by its digest.
pub const ARTIFACTS: &str = "artifacts/";
const MANIFEST: &str = "manifest.json";
const MANIFEST_SUM: &str = "manifest.sha256";

/// Why an archive cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum ArchiveError {
    /// The file cannot be read, or is not a tar file.
    #[error("could not read the archive")]
    Io(#[source] io::Error),
    /// The archive contains something that does not belong in a backup.
    #[error("\"{part}\" is not a part of a backup at this place")]
    Foreign {
        /// The name found.
        part: String,
    },
    /// The archive ends before its manifest.
    #[error("it is truncated: its manifest is missing")]
    Cut,
    /// A part does not match the manifest.
    #[error("\"{part}\" does not match the manifest")]
    Damaged { part: String },
    /// A document in it cannot be read.
    #[error("\"{part}\" could not be read")]
    Document {
        /// The part.
        part: &'static str,
        /// Why not.
        source: serde_json::Error,
    },
    /// A newer program wrote the archive.
    #[error("it has format {found}, this program reads up to {FORMAT}")]
    NewerFormat {
        /// Its format.
        found: u32,
    },
    /// The state in the archive cannot be read.
    #[error("its state could not be read")]
    State(#[source] SnapshotError),
}

/// The description of a backup.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct About {
    /// The format of the archive.
    pub format: u32,
    /// The version of the program that made it.
    pub version: String,
    /// When the backup was made, in seconds since 1970.
    pub taken_at: u64,
    /// The cluster's id, 32 hex digits.
    pub cluster_id: String,
    /// The feature level that was active.
    pub level: u32,
    /// The number of entries that the state has applied.
    pub seq: u64,
    /// The last event in state and history.
    pub event_seq: u64,
    /// The last issued fencing token.
    pub grant_seq: u64,
    /// The number of jobs in the state, ended or not.
    pub jobs: u64,
    /// The number of registered agent versions.
    pub agents: u64,
    /// The number of known nodes.
    pub nodes: u64,
}

impl About {
    /// Describes a state.
    pub fn of(image: &StateImage, version: &str, taken_at: u64) -> Self {
        Self {
            format: FORMAT,
            version: version.to_owned(),
            taken_at,
            cluster_id: format!("{:032x}", image.cluster_id),
            level: image.level.0,
            seq: image.seq.0,
            event_seq: image.event_seq.0,
            grant_seq: image.grant_seq.0,
            jobs: image.jobs.len() as u64,
            agents: image.agents.len() as u64,
            nodes: image.nodes.len() as u64,
        }
    }
}

/// The list of all parts, and of missing artifacts.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Manifest {
    /// The parts in order.
    pub parts: Vec<Part>,
    /// Digests of artifacts that the state or the history refers to and that no controller had completely.
    pub missing: Vec<String>,
}

/// One part of an archive.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Part {
    pub name: String,
    /// Its size.
    pub bytes: u64,
    /// Its SHA-256, 64 hex digits.
    pub sha256: String,
}

/// The name of an artifact's part.
pub fn artifact_part(digest: &Digest) -> String {
    format!("{ARTIFACTS}{}", digest.hex())
}

/// The digest in the name of a part; none for a part that is not an artifact.
pub fn artifact_of(part: &str) -> Option<Digest> {
    part.strip_prefix(ARTIFACTS)?.parse().ok()
}

/// The input of `sha256sum --check`: a line for each part, and one for the manifest.
fn sums(parts: &[Part], manifest: &[u8]) -> String {
    let parts: String = parts.iter().map(|part| format!("{}  {}\n", part.sha256, part.name)).collect();
    format!("{parts}{}  {MANIFEST}\n", hex(&Sha256::digest(manifest)))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
