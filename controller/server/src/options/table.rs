//! The table of options: name, form, default and sentence together. The reference page and the commented file come from it.

use std::fmt::Write as _;

use super::value::Form;

/// One option.
#[derive(Debug, Clone, Copy)]
pub struct OptionRow {
    /// Dotted, as in the file: `http.listen`.
    pub key: &'static str,
    /// Its flag without the dashes in front.
    pub flag: &'static str,
    /// Its environment variable.
    pub variable: &'static str,
    /// The form of its value.
    pub form: Form,
    /// The default, as it is written; empty is none.
    pub default: &'static str,
    /// The version that it came with.
    pub since: &'static str,
    /// What it does, in sentences.
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
        "Where the log, snapshots, history and artifacts are kept.",
    ),
    row(
        "http.listen",
        "http-listen",
        "ATLAS_HTTP_LISTEN",
        Form::Address,
        "127.0.0.1:7400",
        "Where HTTP is served: API, events, metrics. Port 0 takes a free one.",
    ),
    row(
        "http.body-max",
        "http-body-max",
        "ATLAS_HTTP_BODY_MAX",
        Form::Size,
        "1MiB",
        "The largest body of a request, packages excepted.",
    ),
    row(
        "http.connections-max",
        "http-connections-max",
        "ATLAS_HTTP_CONNECTIONS_MAX",
        Form::Count,
        "10000",
        "How many HTTP connections may be open; more wait to be accepted.",
    ),
    row(
        "http.header-timeout",
        "http-header-timeout",
        "ATLAS_HTTP_HEADER_TIMEOUT",
        Form::Duration,
        "10s",
        "How long the headers of a request may take to arrive.",
    ),
    row(
        "http.body-timeout",
        "http-body-timeout",
        "ATLAS_HTTP_BODY_TIMEOUT",
        Form::Duration,
        "30s",
        "How long the body of a request may take to arrive.",
    ),
    row(
        "http.wait-max",
        "http-wait-max",
        "ATLAS_HTTP_WAIT_MAX",
        Form::Duration,
        "1h",
        "The longest time that a client may wait for a job in one request.",
    ),
    row(
        "worker.listen",
        "worker-listen",
        "ATLAS_WORKER_LISTEN",
        Form::Address,
        "127.0.0.1:7401",
        "Where workers connect. Port 0 takes a free one.",
    ),
    row(
        "worker.session-ttl",
        "worker-session-ttl",
        "ATLAS_WORKER_SESSION_TTL",
        Form::Duration,
        "10s",
        "How long a worker's session lives after its last renewal; then its jobs run elsewhere.",
    ),
    row(
        "worker.forget-after",
        "worker-forget-after",
        "ATLAS_WORKER_FORGET_AFTER",
        Form::Duration,
        "24h",
        "How long a node may be down until it is forgotten. One that is cordoned is kept; 0s keeps all.",
    ),
    row(
        "retired-agents.keep",
        "retired-agents-keep",
        "ATLAS_RETIRED_AGENTS_KEEP",
        Form::Duration,
        "7d",
        "How long a retired agent version is kept at least. Then it is deleted once no job of it waits or runs; 0s keeps all.",
    ),
    row(
        "peer.listen",
        "peer-listen",
        "ATLAS_PEER_LISTEN",
        Form::Address,
        "127.0.0.1:7402",
        "Where other controllers connect: the members of the cluster, and those that join. Port 0 takes a free one.",
    ),
    row(
        "advertise",
        "advertise",
        "ATLAS_ADVERTISE",
        Form::Text,
        "",
        "The host name or address at which other machines reach this controller. Unset is the address that it listens on.",
    ),
    row(
        "name",
        "name",
        "ATLAS_NAME",
        Form::Text,
        "",
        "What the controller is called when it starts a cluster or joins one. Unset is `c` and its number.",
    ),
    row(
        "join",
        "join",
        "ATLAS_JOIN",
        Form::Text,
        "",
        "Joins a cluster: peer addresses of its members, separated by commas. Without effect once it belongs to one.",
    ),
    row(
        "token",
        "token",
        "ATLAS_TOKEN",
        Form::Secret,
        "",
        "The token to join with, from `atlasctl cluster join-token`.",
    ),
    row("token-file", "token-file", "ATLAS_TOKEN_FILE", Form::Text, "", "A file that holds the token to join with."),
    row(
        "level-max",
        "level-max",
        "ATLAS_LEVEL_MAX",
        Form::Count,
        "",
        "The highest feature level of a cluster that this controller belongs to. Unset is that of the program; at the level of the program before, an upgrade can still be undone.",
    ),
    row(
        "package.max",
        "package-max",
        "ATLAS_PACKAGE_MAX",
        Form::Size,
        "10MiB",
        "The largest agent package that may be registered.",
    ),
    row(
        "artifact.max",
        "artifact-max",
        "ATLAS_ARTIFACT_MAX",
        Form::Size,
        "64MiB",
        "The largest artifact: a package, or a payload that is too large for the log.",
    ),
    row(
        "artifact.hold",
        "artifact-hold",
        "ATLAS_ARTIFACT_HOLD",
        Form::Duration,
        "1h",
        "How long an artifact is kept that nothing refers to yet, or any more. It is to be longer than any upload takes.",
    ),
    row(
        "queue.max-size",
        "queue-max-size",
        "ATLAS_QUEUE_MAX_SIZE",
        Form::Count,
        "",
        "How many jobs may wait or run; more are refused. Unset leaves what the cluster has, at first 1000.",
    ),
    row(
        "idempotency.keep",
        "idempotency-keep",
        "ATLAS_IDEMPOTENCY_KEEP",
        Form::Duration,
        "",
        "How long a repeat with the same Idempotency-Key gets the first answer. Unset leaves what the cluster has, at first 24h.",
    ),
    row(
        "idempotency.keys-max",
        "idempotency-keys-max",
        "ATLAS_IDEMPOTENCY_KEYS_MAX",
        Form::Count,
        "",
        "How many keys are remembered; beyond it the oldest are forgotten early. Unset leaves what the cluster has, at first \
         1000000.",
    ),
    row(
        "spawn.depth-max",
        "spawn-depth-max",
        "ATLAS_SPAWN_DEPTH_MAX",
        Form::Depth,
        "",
        "How deep jobs may spawn others, at most 64: one of this depth may not. Unset leaves what the cluster has, at first 3.",
    ),
    row(
        "retry.deterministic",
        "retry-deterministic",
        "ATLAS_RETRY_DETERMINISTIC",
        Form::Flag,
        "",
        "Whether a failure is retried that the same input brings again: a breach of the schemas, a missing agent, a reject. \
         Unset leaves what the cluster has, at first true.",
    ),
    row(
        "retry.backoff-max",
        "retry-backoff-max",
        "ATLAS_RETRY_BACKOFF_MAX",
        Form::Duration,
        "",
        "The longest back-off before a retry, whatever a contract says. Unset leaves what the cluster has, at first none.",
    ),
    row(
        "history.events-kept",
        "history-events-kept",
        "ATLAS_HISTORY_EVENTS_KEPT",
        Form::Count,
        "1000000",
        "How many of the latest events can be read again.",
    ),
    row(
        "history.keep",
        "history-keep",
        "ATLAS_HISTORY_KEEP",
        Form::Duration,
        "",
        "How long an ended job and its payloads are kept. Unset is for ever.",
    ),
    row(
        "disk.reserve",
        "disk-reserve",
        "ATLAS_DISK_RESERVE",
        Form::Size,
        "64MiB",
        "With less room than this on the disk new work is refused (507); with twice as much it is taken again.",
    ),
    row(
        "disk.ballast",
        "disk-ballast",
        "ATLAS_DISK_BALLAST",
        Form::Size,
        "64MiB",
        "Room that is set aside in a file and given back when the disk gets full, so that what is under way can end.",
    ),
    row(
        "digest.every",
        "digest-every",
        "ATLAS_DIGEST_EVERY",
        Form::Count,
        "65536",
        "After so many entries the controllers compare digests of their states; one that differs stops. 0 is never.",
    ),
    row(
        "snapshot.log",
        "snapshot-log",
        "ATLAS_SNAPSHOT_LOG",
        Form::Size,
        "256MiB",
        "How much log is written before the next snapshot, and kept for controllers that were away.",
    ),
    row(
        "log",
        "log",
        "ATLAS_LOG",
        Form::Text,
        "info",
        "What is logged: a level, or levels by module such as `warn,atlas_raft=debug`.",
    ),
];

/// The reference page, Markdown.
pub fn reference() -> String {
    let mut page = String::from(
        "# Options of the controller\n\n\
         A flag goes over the environment, the environment over the file (`--config FILE`, TOML), the file over the default.\n\
         Durations read `30s`, sizes `8GiB`. `--print-config` shows the result, `--check-config` only checks it.\n\n\
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

    #[test]
    fn flags_and_variables_follow_from_keys() {
        for option in OPTIONS {
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
