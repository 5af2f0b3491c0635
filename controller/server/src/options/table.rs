//! The table of options: name, form, default and sentence together. The reference page and the commented file come from it.

use std::fmt::Write as _;

use super::value::Form;

/// One option.
#[derive(Debug, Clone, Copy)]
pub struct OptionRow {
    /// The dotted key as in the file: `http.listen`.
    pub key: &'static str,
    /// Its flag without the leading dashes.
    pub flag: &'static str,
    /// Its environment variable.
    pub variable: &'static str,
    /// The form of its value.
    pub form: Form,
    /// The default as text; empty for none.
    pub default: &'static str,
    /// The version that introduced it.
    pub since: &'static str,
    /// The description for the documentation.
    pub doc: &'static str,
}

const fn row(
    key: &'static str,
    flag: &'static str,
    variable: &'static str,
    form: Form,
    default: &'static str,
    doc: &'static str,
) -> OptionRow {
    OptionRow { key, flag, variable, form, default, since: "0.1.0", doc }
}

/// All options of the controller.
pub const OPTIONS: &[OptionRow] = &[
    row(
        "data-dir",
        "data-dir",
        "ATLAS_DATA_DIR",
        Form::Text,
        "atlas-data",
        "Directory for the log, snapshots, history and artifacts.",
    ),
    row(
        "http.listen",
        "http-listen",
        "ATLAS_HTTP_LISTEN",
        Form::Address,
        "127.0.0.1:7400",
        "HTTP address: API, events, metrics. Port 0 selects a free port.",
    ),
    row(
        "http.body-max",
        "http-body-max",
        "ATLAS_HTTP_BODY_MAX",
        Form::Size,
        "1MiB",
        "Maximum size of a request body, except packages.",
    ),
    row(
        "http.connections-max",
        "http-connections-max",
        "ATLAS_HTTP_CONNECTIONS_MAX",
        Form::Count,
        "10000",
        "Maximum number of open HTTP connections; further connections wait to be accepted.",
    ),
    row(
        "http.header-timeout",
        "http-header-timeout",
        "ATLAS_HTTP_HEADER_TIMEOUT",
        Form::Duration,
        "10s",
        "Maximum time to receive the headers of a request.",
    ),
    row(
        "http.body-timeout",
        "http-body-timeout",
        "ATLAS_HTTP_BODY_TIMEOUT",
        Form::Duration,
        "30s",
        "Maximum time to receive the body of a request.",
    ),
    row(
        "http.wait-max",
        "http-wait-max",
        "ATLAS_HTTP_WAIT_MAX",
        Form::Duration,
        "1h",
        "Maximum time that a client may wait for a job in one request.",
    ),
    row(
        "mcp.wait",
        "mcp-wait",
        "ATLAS_MCP_WAIT",
        Form::Duration,
        "45s",
        "Maximum time that an MCP tool call waits for a job before it answers with the job's id.",
    ),
    row(
        "mcp.sessions-max",
        "mcp-sessions-max",
        "ATLAS_MCP_SESSIONS_MAX",
        Form::Count,
        "10000",
        "Maximum number of open MCP sessions; further ones are refused.",
    ),
    row(
        "mcp.session-idle",
        "mcp-session-idle",
        "ATLAS_MCP_SESSION_IDLE",
        Form::Duration,
        "5m",
        "Idle time after which an MCP session ends.",
    ),
    row(
        "scaler.listen",
        "scaler-listen",
        "ATLAS_SCALER_LISTEN",
        Form::Address,
        "",
        "Address at which KEDA asks how many jobs need workers, over gRPC and without a token; without one it cannot.",
    ),
    row(
        "mcp.compatible-listen",
        "mcp-compatible-listen",
        "ATLAS_MCP_COMPATIBLE_LISTEN",
        Form::Address,
        "",
        "Address of an MCP server with the tools and the transport of Atlas for Python; without one there is none.",
    ),
    row(
        "mcp.compatible-token",
        "mcp-compatible-token",
        "ATLAS_MCP_COMPATIBLE_TOKEN",
        Form::Secret,
        "",
        "Bearer token that clients of the compatible MCP server must send; without one everyone may call.",
    ),
    row(
        "mcp.all-agents",
        "mcp-all-agents",
        "ATLAS_MCP_ALL_AGENTS",
        Form::Flag,
        "false",
        "Offers each agent as a tool of the compatible MCP server.",
    ),
    row(
        "mcp.agent-listen",
        "mcp-agent-listen",
        "ATLAS_MCP_AGENT_LISTEN",
        Form::Agents,
        "",
        "Addresses at which single agents are served as well: `research=127.0.0.1:8201`, separated by commas.",
    ),
    row(
        "mcp.registry-listen",
        "mcp-registry-listen",
        "ATLAS_MCP_REGISTRY_LISTEN",
        Form::Address,
        "",
        "Another address of the HTTP interface, for clients that look for the MCP registry document at a port of its own.",
    ),
    row(
        "mcp.registry-namespace",
        "mcp-registry-namespace",
        "ATLAS_MCP_REGISTRY_NAMESPACE",
        Form::Text,
        "local.atlas",
        "Prefix of the names of agents in the MCP registry document.",
    ),
    row(
        "mcp.public-url",
        "mcp-public-url",
        "ATLAS_MCP_PUBLIC_URL",
        Form::Text,
        "",
        "Address of this controller in the MCP registry document; without one, that of the request.",
    ),
    row(
        "metrics.pallas-names",
        "metrics-pallas-names",
        "ATLAS_METRICS_PALLAS_NAMES",
        Form::Flag,
        "false",
        "Shows the metrics that Pallas has under its names as well, with the prefix `pallas_`.",
    ),
    row(
        "worker.listen",
        "worker-listen",
        "ATLAS_WORKER_LISTEN",
        Form::Address,
        "127.0.0.1:7401",
        "Address for workers. Port 0 selects a free port.",
    ),
    row(
        "worker.session-ttl",
        "worker-session-ttl",
        "ATLAS_WORKER_SESSION_TTL",
        Form::Duration,
        "10s",
        "Time until a worker's session expires after its last renewal; its jobs then run elsewhere.",
    ),
    row(
        "worker.forget-after",
        "worker-forget-after",
        "ATLAS_WORKER_FORGET_AFTER",
        Form::Duration,
        "24h",
        "Time after which a node that is down is removed. Cordoned nodes are kept; 0s keeps all nodes.",
    ),
    row(
        "node.failures-max",
        "node-failures-max",
        "ATLAS_NODE_FAILURES_MAX",
        Form::Count,
        "",
        "Failed attempts in a row, of more than one agent version and caused by the worker, after which a node takes no jobs for a pause; 0 is never. If unset, the cluster's value stays; it starts at 20.",
    ),
    row(
        "retired-agents.keep",
        "retired-agents-keep",
        "ATLAS_RETIRED_AGENTS_KEEP",
        Form::Duration,
        "7d",
        "Minimum time to keep a retired agent version. It is then deleted when it has no waiting or running job; 0s keeps all versions.",
    ),
    row(
        "peer.listen",
        "peer-listen",
        "ATLAS_PEER_LISTEN",
        Form::Address,
        "127.0.0.1:7402",
        "Address for other controllers: members of the cluster, and controllers that join. Port 0 selects a free port.",
    ),
    row(
        "auth",
        "auth",
        "ATLAS_AUTH",
        Form::Auth,
        "off",
        "`tokens`: requests need a token, and a principal may do what bindings grant it. `off`: everybody may do everything, so the controller listens on loopback only. `open`: the same on all addresses, for a network that nobody else reaches.",
    ),
    row(
        "auth.root-token-file",
        "root-token-file",
        "ATLAS_ROOT_TOKEN_FILE",
        Form::Text,
        "",
        "File with the token of the principal `root`, who may do everything; to make the first tokens, and for emergencies.",
    ),
    row(
        "audit.max",
        "audit-max",
        "ATLAS_AUDIT_MAX",
        Form::Size,
        "1GiB",
        "Size of the records of who did what, which a controller keeps where tokens are checked; the oldest are removed. 0 keeps none.",
    ),
    row(
        "tls.dir",
        "tls-dir",
        "ATLAS_TLS_DIR",
        Form::Text,
        "",
        "Directory with `ca.pem` and `ca.key`, from `atlasctl operator init` and the same on all controllers. Switches TLS on: HTTPS for clients, certificates for workers and controllers. Not in the data directory.",
    ),
    row(
        "tls.group-token-file",
        "tls-group-token-file",
        "ATLAS_TLS_GROUP_TOKEN_FILE",
        Form::Text,
        "",
        "File with the join token of a group of nodes, from `atlasctl operator secret` and the same on all controllers: workers that have it join under any name that is free.",
    ),
    row(
        "tls.names",
        "tls-names",
        "ATLAS_TLS_NAMES",
        Form::Text,
        "",
        "Further host names and addresses by which clients reach this controller over HTTPS, separated by commas, such as that of a load balancer.",
    ),
    row(
        "tls.life",
        "tls-life",
        "ATLAS_TLS_LIFE",
        Form::Life,
        "24h",
        "Time for which certificates of controllers and nodes are valid. They are renewed after two thirds of it, without a restart.",
    ),
    row(
        "plain-ports",
        "plain-ports",
        "ATLAS_PLAIN_PORTS",
        Form::Flag,
        "false",
        "Whether ports that other machines can reach may be without TLS: for a private network, or behind a proxy with TLS. Whoever reaches the ports for workers and controllers can then act as one.",
    ),
    row(
        "secrets.key",
        "secrets-key",
        "ATLAS_SECRETS_KEY",
        Form::Text,
        "",
        "File with the keys that seal secrets, 32 bytes in base64 per line; the first one seals. Not in the data directory, and the same on all controllers.",
    ),
    row(
        "triggers.path",
        "triggers-path",
        "ATLAS_TRIGGERS_PATH",
        Form::Text,
        "",
        "Folder of trigger files, `*.yaml`. At the start, each makes a trigger with an id from its name, or replaces it.",
    ),
    row(
        "advertise",
        "advertise",
        "ATLAS_ADVERTISE",
        Form::Text,
        "",
        "Host name or address at which other machines reach this controller. If unset, the listen address.",
    ),
    row(
        "name",
        "name",
        "ATLAS_NAME",
        Form::Text,
        "",
        "Name of the controller when it starts or joins a cluster. If unset, `c` and its number.",
    ),
    row(
        "join",
        "join",
        "ATLAS_JOIN",
        Form::Text,
        "",
        "Join a cluster: peer addresses of its members, separated by commas. Ignored once the controller belongs to a cluster.",
    ),
    row(
        "join.bootstrap",
        "join-bootstrap",
        "ATLAS_JOIN_BOOTSTRAP",
        Form::Flag,
        "false",
        "Form a new cluster if the data directory is empty and nothing listens at the addresses of `join` for ten seconds. For one controller, the first.",
    ),
    row(
        "token",
        "token",
        "ATLAS_JOIN_TOKEN",
        Form::Secret,
        "",
        "Join token, from `atlasctl cluster join-token`. Without one, the root token admits this controller as well.",
    ),
    row("token-file", "token-file", "ATLAS_JOIN_TOKEN_FILE", Form::Text, "", "File that contains the join token."),
    row(
        "level-max",
        "level-max",
        "ATLAS_LEVEL_MAX",
        Form::Count,
        "",
        "Maximum feature level of the cluster. If unset, the level of the program; at the level of the previous program, an upgrade can still be reverted.",
    ),
    row("package.max", "package-max", "ATLAS_PACKAGE_MAX", Form::Size, "10MiB", "Maximum size of an agent package."),
    row(
        "artifact.max",
        "artifact-max",
        "ATLAS_ARTIFACT_MAX",
        Form::Size,
        "64MiB",
        "Maximum size of an artifact: a package, or a payload that is too large for the log.",
    ),
    row(
        "artifact.hold",
        "artifact-hold",
        "ATLAS_ARTIFACT_HOLD",
        Form::Duration,
        "1h",
        "Time to keep an unreferenced artifact. It must be longer than the longest upload.",
    ),
    row(
        "queue.max-size",
        "queue-max-size",
        "ATLAS_QUEUE_MAX_SIZE",
        Form::Count,
        "",
        "Maximum number of waiting and running jobs; more are refused. If unset, the cluster's value stays; it starts at 1000.",
    ),
    row(
        "idempotency.keep",
        "idempotency-keep",
        "ATLAS_IDEMPOTENCY_KEEP",
        Form::Duration,
        "",
        "Time for which a repeat with the same Idempotency-Key gets the first answer. If unset, the cluster's value stays; it starts at 24h.",
    ),
    row(
        "idempotency.keys-max",
        "idempotency-keys-max",
        "ATLAS_IDEMPOTENCY_KEYS_MAX",
        Form::Count,
        "",
        "Maximum number of remembered keys; beyond it, the oldest are dropped early. If unset, the cluster's value stays; it starts at 1000000.",
    ),
    row(
        "spawn.depth-max",
        "spawn-depth-max",
        "ATLAS_SPAWN_DEPTH_MAX",
        Form::Depth,
        "",
        "Maximum spawn depth, at most 64; a job at this depth cannot spawn. If unset, the cluster's value stays; it starts at 3.",
    ),
    row(
        "retry.deterministic",
        "retry-deterministic",
        "ATLAS_RETRY_DETERMINISTIC",
        Form::Flag,
        "",
        "Whether to retry failures that the same input causes again: schema violations, missing agents, rejections. If unset, the cluster's value stays; it starts as true.",
    ),
    row(
        "retry.backoff-max",
        "retry-backoff-max",
        "ATLAS_RETRY_BACKOFF_MAX",
        Form::Duration,
        "",
        "Maximum backoff before a retry, regardless of the contract. If unset, the cluster's value stays; initially there is no limit.",
    ),
    row(
        "journal.max",
        "journal-max",
        "ATLAS_JOURNAL_MAX",
        Form::Size,
        "",
        "Space for the journals of all jobs that have not ended, of which each journal reserves 32 KiB with its first step; a job without room for it fails after half a minute. If unset, the cluster's value stays; it starts at 312.5MiB.",
    ),
    row(
        "model.probe-every",
        "model-probe-every",
        "ATLAS_MODEL_PROBE_EVERY",
        Form::Duration,
        "5m",
        "Time after which a model that no job called is asked whether it can be reached; 0s disables this.",
    ),
    row(
        "conversation.keep",
        "conversation-keep",
        "ATLAS_CONVERSATION_KEEP",
        Form::Duration,
        "30d",
        "Time after the last turn for which a conversation is kept; 0s keeps it until it is deleted. One of an MCP session is kept for a day at most.",
    ),
    row(
        "history.events-kept",
        "history-events-kept",
        "ATLAS_HISTORY_EVENTS_KEPT",
        Form::Count,
        "1000000",
        "Number of recent events to keep for reading.",
    ),
    row(
        "history.keep",
        "history-keep",
        "ATLAS_HISTORY_KEEP",
        Form::Duration,
        "",
        "Time to keep ended jobs and their payloads. If unset, they are kept forever.",
    ),
    row(
        "history.database",
        "history",
        "ATLAS_HISTORY",
        Form::Secret,
        "",
        "PostgreSQL database to export the history to: postgres://user:password@host/name. Other users of the machine can see options of a program; use the variable or the file for a password.",
    ),
    row(
        "history.database-file",
        "history-file",
        "ATLAS_HISTORY_FILE",
        Form::Text,
        "",
        "File with the address for `--history`.",
    ),
    row(
        "history.database-keep",
        "history-database-keep",
        "ATLAS_HISTORY_DATABASE_KEEP",
        Form::Duration,
        "",
        "Time that the database keeps ended jobs, by whole months. If unset, they are kept forever.",
    ),
    row(
        "otlp",
        "otlp",
        "ATLAS_OTLP",
        Form::Text,
        "",
        "Address of a receiver of OTLP for traces, metrics and logs, such as http://127.0.0.1:4317. The variables of OpenTelemetry set the rest.",
    ),
    row(
        "disk.reserve",
        "disk-reserve",
        "ATLAS_DISK_RESERVE",
        Form::Size,
        "64MiB",
        "Minimum free disk space. Below it, new work is refused (507); at twice the value, it is accepted again.",
    ),
    row(
        "disk.ballast",
        "disk-ballast",
        "ATLAS_DISK_BALLAST",
        Form::Size,
        "64MiB",
        "Disk space reserved in a file and freed when the disk gets full, so that running work can finish.",
    ),
    row(
        "digest.every",
        "digest-every",
        "ATLAS_DIGEST_EVERY",
        Form::Count,
        "65536",
        "Number of log entries between comparisons of the controllers' state digests; a controller that differs stops. 0 disables this.",
    ),
    row(
        "snapshot.log",
        "snapshot-log",
        "ATLAS_SNAPSHOT_LOG",
        Form::Size,
        "256MiB",
        "Size of the log between snapshots; this much is also kept for controllers that were offline.",
    ),
    row(
        "log",
        "log",
        "ATLAS_LOG",
        Form::Text,
        "info",
        "Log filter: a level, or levels by module such as `warn,atlas_raft=debug`.",
    ),
];

/// The reference page in Markdown.
pub fn reference() -> String {
    let mut page = String::from(
        "# Options of the controller\n\n\
         Flags take precedence over the environment, the environment over the file (`--config FILE` or\n\
         `ATLAS_CONTROLLER_CONFIG`, TOML), the file over the default. Durations are written `30s`, sizes `8GiB`. `--print-config` shows the result, `--check-config` only checks it.\n\n\
         | file | flag | environment | default | since | |\n|---|---|---|---|---|---|\n",
    );
    for option in OPTIONS {
        let default = if option.default.is_empty() { "–".to_owned() } else { format!("`{}`", option.default) };
        let _ = writeln!(
            page,
            "| `{}` | `--{}` | `{}` | {default} | {} | {} |",
            option.key, option.flag, option.variable, option.since, option.doc
        );
    }
    page
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use super::*;

    #[test]
    fn generated_reference_of_options_is_fresh() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/controller-options.md");
        if std::env::var_os("UPDATE_EXPECT").is_some() {
            fs::write(&path, reference()).expect("writable");
        }
        let page = fs::read_to_string(&path).unwrap_or_default();
        assert!(page == reference(), "docs/reference/controller-options.md is stale: run with UPDATE_EXPECT=1");
    }

    /// Options whose names differ from their keys: a table of the file needs a longer key, or a name is taken.
    const OTHER: [(&str, &str, &str); 5] = [
        ("auth.root-token-file", "root-token-file", "ATLAS_ROOT_TOKEN_FILE"),
        ("history.database", "history", "ATLAS_HISTORY"),
        ("history.database-file", "history-file", "ATLAS_HISTORY_FILE"),
        ("token", "token", "ATLAS_JOIN_TOKEN"),
        ("token-file", "token-file", "ATLAS_JOIN_TOKEN_FILE"),
    ];

    #[test]
    fn flags_and_variables_follow_from_keys() {
        for option in OPTIONS.iter().filter(|option| !OTHER.contains(&(option.key, option.flag, option.variable))) {
            assert_eq!(option.flag, option.key.replace('.', "-"));
            assert_eq!(option.variable, format!("ATLAS_{}", option.key.replace(['.', '-'], "_").to_uppercase()));
        }
    }

    #[test]
    fn every_default_has_its_form() {
        for option in OPTIONS.iter().filter(|option| !option.default.is_empty()) {
            assert!(option.form.check(option.default).is_ok(), "{}", option.key);
            assert!(option.doc.ends_with('.'), "{}", option.key);
        }
    }
}
