//! Options: flags override the environment, which overrides the file, which overrides the defaults. All come from one
//! table.

mod load;
mod reference;
mod row;
mod table;
mod value;

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use atlas_raft::SpaceLimits;
use atlas_service::Limits;
use atlas_stores::StoreOptions;
use atlas_types::Level;

pub use load::{Loaded, OptionsError, command, load};
pub use reference::reference;
pub use row::OptionRow;
pub use table::OPTIONS;

use atlas_gateway::{GatewayOptions, Token};

use crate::http_limits::HttpLimits;
use crate::rules::Rules;

/// The purpose of the cluster.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// A development cluster: loopback only, no authentication.
    Dev,
    /// Any other cluster.
    Production,
}

impl Mode {
    /// The name that `/api/version` shows.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Dev => "dev",
            Self::Production => "production",
        }
    }
}

/// Whether callers are checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Auth {
    /// Everybody may do everything, so only this machine is served.
    Off,
    /// Everybody may do everything, wherever the controller listens.
    Open,
    /// Requests need tokens.
    Tokens,
}

/// The options for starting a controller.
#[derive(Debug, Clone)]
pub struct Options {
    /// The directory of the log, the snapshots, the history and the artifacts.
    pub data_dir: PathBuf,
    /// The address of the HTTP door. Port 0 selects a free one.
    pub http: SocketAddr,
    /// The address of the worker door. Port 0 selects a free one.
    pub grpc: SocketAddr,
    /// The address of the peer door, for other members and controllers that join. None for a controller that stays
    /// alone.
    pub peer: Option<SocketAddr>,
    /// The host at which others reach this controller. None uses the listening address.
    pub advertise: Option<String>,
    /// The name of this controller. None lets the cluster choose one.
    pub name: Option<String>,
    /// Peer addresses of the members of the cluster to join, unless this controller already belongs to one.
    pub join: Vec<String>,
    /// Whether this controller forms a new cluster if nothing listens at these addresses.
    pub bootstrap: bool,
    /// The token to join with.
    pub token: Option<String>,
    /// The mode that the controller reports.
    pub mode: Mode,
    /// The feature level that the controller reports: that of the program, or a lower one.
    pub level: Level,
    /// How long a worker's session lives after its last renewal.
    pub session_ttl: Duration,
    /// Settings of the whole cluster.
    pub rules: Rules,
    /// How many events the history keeps.
    pub events_kept: u64,
    /// The limits of the HTTP door.
    pub http_limits: HttpLimits,
    /// The limits of the MCP gateway.
    pub gateway: GatewayOptions,
    /// Whether metrics are shown under the names of Pallas as well.
    pub pallas_names: bool,
    /// The addresses of agents that are served at ports of their own.
    pub agent_listen: Vec<(String, SocketAddr)>,
    /// A second address of the HTTP interface, for clients that look for the registry document at a port of its own.
    pub registry_listen: Option<SocketAddr>,
    /// The MCP server that is compatible with Atlas for Python.
    pub compatible: CompatibleMcp,
    /// The address of the door for autoscalers; none for no such door.
    pub scaler: Option<SocketAddr>,
    /// The limits of the service functions.
    pub limits: Limits,
    /// The largest artifact.
    pub artifact_bytes_max: u64,
    /// How long an artifact without references is kept.
    pub artifact_hold: Duration,
    /// How long the history keeps an ended job; none for ever.
    pub jobs_kept_for: Option<Duration>,
    /// The database to which the history is exported; none for no export.
    pub history_database: Option<atlas_export::ExportTarget>,
    /// How long the database keeps an ended job; none for ever.
    pub history_database_keep: Option<Duration>,
    /// Where traces, metrics and logs are sent; none if they are not sent.
    pub otlp: Option<atlas_otlp::Otlp>,
    /// The disk space that is kept free.
    pub space: SpaceLimits,
    /// The number of entries between two comparisons of the members' states; 0 for never.
    pub digest_every: u64,
    /// How long a node may be down before it is forgotten; none for never.
    pub forget_nodes_after: Option<Duration>,
    /// How long retired agent versions are kept; none for ever.
    pub retired_agents_keep: Option<Duration>,
    /// The size of the log between two snapshots, and of the log kept after the latest one.
    pub snapshot_log_bytes: u64,
    /// The file with the keys of secrets; none if this controller has none.
    pub secrets_key: Option<PathBuf>,
    /// Who is checked.
    pub auth: Auth,
    /// The file with the root token; none if there is no such token.
    pub root_token_file: Option<PathBuf>,
    /// Most bytes of the audit, which is kept where tokens are checked; 0 for none.
    pub audit_bytes_max: u64,
    /// The directory with the cluster's certificate and its key; none for a controller without TLS.
    pub tls_dir: Option<PathBuf>,
    /// The file with the join token of a group of nodes; none if there is no such group.
    pub tls_group_token_file: Option<PathBuf>,
    /// Further names by which clients reach this controller over HTTPS.
    pub tls_names: Vec<String>,
    /// How long certificates of controllers and nodes are valid.
    pub tls_life: Duration,
    /// Whether ports that other machines can reach may be without TLS.
    pub plain_ports: bool,
    /// Where memory and knowledge are kept, if not in the cluster.
    pub stores: StoreOptions,
    /// The folder of trigger files; none if there are none.
    pub triggers_path: Option<PathBuf>,
    /// The log filter.
    pub log: String,
}

/// The MCP server that is compatible with Atlas for Python.
#[derive(Debug, Clone)]
pub struct CompatibleMcp {
    /// Its address; none for no such server.
    pub listen: Option<SocketAddr>,
    /// What clients must show.
    pub token: Option<Token>,
    /// Whether its clients can submit jobs that they do not wait for, ask for jobs and cancel them.
    pub pool: bool,
    /// Whether each agent is a tool.
    pub all_agents: bool,
}

impl Default for CompatibleMcp {
    fn default() -> Self {
        Self { listen: None, token: None, pool: true, all_agents: false }
    }
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
            bootstrap: false,
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
            gateway: GatewayOptions::default(),
            pallas_names: false,
            agent_listen: Vec::new(),
            registry_listen: None,
            compatible: CompatibleMcp::default(),
            scaler: None,
            limits: Limits::default(),
            artifact_bytes_max: 64 << 20,
            artifact_hold: Duration::from_secs(3_600),
            jobs_kept_for: None,
            history_database: None,
            otlp: None,
            history_database_keep: None,
            space: SpaceLimits { ballast_bytes: 64 << 20, reserve_bytes: 64 << 20 },
            digest_every: 1 << 16,
            forget_nodes_after: Some(Duration::from_secs(24 * 3_600)),
            retired_agents_keep: Some(Duration::from_secs(7 * 24 * 3_600)),
            snapshot_log_bytes: 256 << 20,
            secrets_key: None,
            auth: Auth::Off,
            root_token_file: None,
            audit_bytes_max: 1 << 30,
            tls_dir: None,
            tls_group_token_file: None,
            tls_names: Vec::new(),
            tls_life: Duration::from_secs(24 * 3_600),
            plain_ports: false,
            stores: StoreOptions::default(),
            triggers_path: None,
            log: "info".to_owned(),
        }
    }
}
