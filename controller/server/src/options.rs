//! Options: flag over environment over file over default, all from one table.

mod load;
mod table;
mod value;

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use atlas_raft::SpaceLimits;
use atlas_service::Limits;
use atlas_types::Level;

pub use load::{Loaded, OptionsError, command, load};
pub use table::{OPTIONS, OptionRow, reference};

use crate::http::HttpLimits;
use crate::rules::Rules;

/// Whether the cluster is for a person's own machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// Loopback only, no authentication.
    Dev,
    /// Everything else.
    Production,
}

impl Mode {
    /// The word that `/api/version` shows.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Dev => "dev",
            Self::Production => "production",
        }
    }
}

/// What a controller needs to start.
#[derive(Debug, Clone)]
pub struct Options {
    /// Log, snapshots, history and artifacts live below it.
    pub data_dir: PathBuf,
    /// Where HTTP is served; port 0 takes a free one.
    pub http: SocketAddr,
    /// Where workers connect; port 0 takes a free one.
    pub grpc: SocketAddr,
    /// Where the other members, and controllers that join, connect; none for a controller that stays alone.
    pub peer: Option<SocketAddr>,
    /// The host at which others reach this controller; none takes the address that is listened on.
    pub advertise: Option<String>,
    /// What this controller is called; none leaves it to the cluster.
    pub name: Option<String>,
    /// Peer addresses of the members of a cluster that this controller joins, unless it belongs to one already.
    pub join: Vec<String>,
    /// The token to join with.
    pub token: Option<String>,
    /// What the controller says of itself.
    pub mode: Mode,
    /// The feature level that the controller says it knows: that of the program, or a lower one.
    pub level: Level,
    /// How long a worker's session lives after its last renewal.
    pub session_ttl: Duration,
    /// Rules of the whole cluster.
    pub rules: Rules,
    /// How many events history keeps.
    pub events_kept: u64,
    /// Bounds of the HTTP door.
    pub http_limits: HttpLimits,
    /// Bounds of the service functions.
    pub limits: Limits,
    /// Largest artifact.
    pub artifact_bytes_max: u64,
    /// How long an artifact is kept that nothing refers to.
    pub artifact_hold: Duration,
    /// How long history keeps an ended job; none is for ever.
    pub jobs_kept_for: Option<Duration>,
    /// Room on the disk that is kept.
    pub space: SpaceLimits,
    /// Entries between two comparisons of the members' states; 0 is never.
    pub digest_every: u64,
    /// A node that is down for so long is forgotten; none is never.
    pub forget_nodes_after: Option<Duration>,
    /// How long retired agent versions are kept; none is for ever.
    pub retired_agents_keep: Option<Duration>,
    /// Log between two snapshots, and behind the latest one.
    pub snapshot_log_bytes: u64,
    /// What is logged.
    pub log: String,
}

impl Options {
    /// The documented defaults with ports 7400 and 7401 on loopback.
    pub fn new(data_dir: PathBuf) -> Self {
        let loopback = IpAddr::V4(Ipv4Addr::LOCALHOST);
        Self {
            data_dir,
            http: SocketAddr::new(loopback, 7400),
            grpc: SocketAddr::new(loopback, 7401),
            peer: None,
            advertise: None,
            name: None,
            join: Vec::new(),
            token: None,
            mode: Mode::Production,
            level: Level::CURRENT,
            session_ttl: Duration::from_secs(10),
            rules: Rules::default(),
            events_kept: 1_000_000,
            http_limits: HttpLimits {
                body_bytes_max: 1 << 20,
                package_bytes_max: 10 << 20,
                connections_max: 10_000,
                header_timeout: Duration::from_secs(10),
                body_timeout: Duration::from_secs(30),
                wait_max: Duration::from_secs(3_600),
            },
            limits: Limits::default(),
            artifact_bytes_max: 64 << 20,
            artifact_hold: Duration::from_secs(3_600),
            jobs_kept_for: None,
            space: SpaceLimits { ballast_bytes: 64 << 20, reserve_bytes: 64 << 20 },
            digest_every: 1 << 16,
            forget_nodes_after: Some(Duration::from_secs(24 * 3_600)),
            retired_agents_keep: Some(Duration::from_secs(7 * 24 * 3_600)),
            snapshot_log_bytes: 256 << 20,
            log: "info".to_owned(),
        }
    }
}
