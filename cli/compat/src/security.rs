//! `atlas security`: checks a security policy, and shows what it leaves an agent.

use std::error::Error;
use std::path::{Path, PathBuf};

use atlas_contract::Permissions;
use atlas_policy::{Policy, PolicyError};
use serde_json::json;

use super::answer::{Answer, Refusal};
use super::{file, render};

/// Verbs of `atlas security`.
#[derive(Debug, clap::Subcommand)]
pub(super) enum Verb {
    /// Checks a security policy.
    Validate {
        /// The policy, a YAML file.
        file: PathBuf,
    },
    /// Shows the permissions of an agent.
    Check(Check),
}

/// Options of `atlas security check`.
#[derive(Debug, clap::Args)]
pub(super) struct Check {
    /// An `agent.yaml`, or the folder that contains one.
    path: PathBuf,
    /// The policy; without one, the built-in policy counts.
    #[arg(long, short, value_name = "FILE")]
    policy: Option<PathBuf>,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

pub(super) fn run(verb: &Verb) -> Answer {
    match verb {
        Verb::Validate { file } => policy(file).map(|policy| summary(&policy)),
        Verb::Check(options) => check(options),
    }
}

fn policy(path: &Path) -> Result<Policy, Refusal> {
    Policy::parse(&file::read(path)?)
        .map_err(|error| Refusal::new(format!("Invalid security policy: {}", told(&error))))
}

/// The error, and where a parser stopped.
fn told(error: &PolicyError) -> String {
    error.source().map_or_else(|| error.to_string(), |source| format!("{error}: {source}"))
}

fn summary(policy: &Policy) -> String {
    let names = |names: &std::collections::BTreeSet<String>| names.iter().cloned().collect::<Vec<_>>();
    let allowed = match &policy.allowed_secrets {
        None => "not restricted".to_owned(),
        Some(allowed) => listed(&names(allowed)),
    };
    format!(
        "Valid security policy:\n  Container image: {}\n  Container network: {}\n  Secret provider: {}\n  Allowed secrets: {allowed}\n  \
         Max memory: {} MB\n  Max CPU: {} s\n",
        policy.container_image,
        policy.container_network,
        policy.secret_source.as_str(),
        policy.max_memory_mb,
        policy.max_cpu_seconds,
    )
}

fn check(options: &Check) -> Answer {
    let contract = atlas_contract::parse(&file::contract(&options.path)?);
    let contract = contract.map_err(|error| Refusal::new(format!("Invalid: {error}")))?;
    let policy = options.policy.as_deref().map(policy).transpose()?.unwrap_or_default();
    let permissions = policy.permissions_of(&contract);
    let (name, version) = (contract.name.as_str(), contract.version.to_string());
    if options.json {
        return Ok(render::json(&json!({"agent": name, "version": version, "permissions": permissions.to_json()})));
    }
    Ok(format!("Agent: {name} v{version}\n{}", lines(&permissions)))
}

fn lines(permissions: &Permissions) -> String {
    format!(
        "  Filesystem: {}\n  Network: {}\n  Spawn: {}\n  Max memory: {} MB\n  Max CPU: {} s\n  Secrets: {}\n  Isolation: {}\n  \
         Container image: {}\n",
        listed(&permissions.filesystem),
        listed(&permissions.network),
        permissions.spawn,
        permissions.max_memory_mb,
        permissions.max_cpu_seconds,
        listed(&permissions.secrets),
        permissions.isolation,
        permissions.container_image,
    )
}

fn listed(words: &[String]) -> String {
    if words.is_empty() { "none".to_owned() } else { words.join(", ") }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use expect_test::{Expect, expect};

    use super::*;

    /// The output of a verb in a folder with an agent and a policy.
    fn check(contract: &str, policy: &str, verb: impl Fn(&Path) -> Verb, expected: &Expect) {
        let folder = tempfile::tempdir().expect("a folder");
        fs::write(folder.path().join("agent.yaml"), contract).expect("written");
        fs::write(folder.path().join("policy.yaml"), policy).expect("written");
        let text = match run(&verb(folder.path())) {
            Ok(text) => text,
            Err(Refusal(text)) => format!("refused: {text}"),
        };
        expected.assert_eq(&text.replace(&folder.path().display().to_string(), "DIR"));
    }

    fn validate(folder: &Path) -> Verb {
        Verb::Validate { file: folder.join("policy.yaml") }
    }

    fn shown(json: bool) -> impl Fn(&Path) -> Verb {
        move |folder| Verb::Check(Check { path: folder.to_owned(), policy: Some(folder.join("policy.yaml")), json })
    }

    #[test]
    fn a_policy_is_checked() {
        check(
            "",
            "",
            validate,
            &expect![[r#"
            Valid security policy:
              Container image: python:3.12-slim
              Container network: none
              Secret provider: env
              Allowed secrets: not restricted
              Max memory: 1024 MB
              Max CPU: 300 s
        "#]],
        );
        check(
            "",
            "allowed_secrets: [B, A]\nmax_memory_mb: 64",
            validate,
            &expect![[r#"
            Valid security policy:
              Container image: python:3.12-slim
              Container network: none
              Secret provider: env
              Allowed secrets: A, B
              Max memory: 64 MB
              Max CPU: 300 s
        "#]],
        );
        check(
            "",
            "allowed_secrets: []",
            validate,
            &expect![[r#"
            Valid security policy:
              Container image: python:3.12-slim
              Container network: none
              Secret provider: env
              Allowed secrets: none
              Max memory: 1024 MB
              Max CPU: 300 s
        "#]],
        );
        check(
            "",
            "max_memory_mb: much",
            validate,
            &expect!["refused: Invalid security policy: /max_memory_mb: 'much' is not a whole number"],
        );
        check(
            "",
            "a: [",
            validate,
            &expect![
                "refused: Invalid security policy: the policy is not YAML: line 1, column 4: unclosed bracket '['"
            ],
        );
        check(
            "",
            "",
            |folder| Verb::Validate { file: folder.join("none") },
            &expect!["refused: File not found: DIR/none"],
        );
    }

    #[test]
    fn permissions_under_a_policy_are_shown() {
        let contract = "name: a\nversion: 1.0.0\npermissions: {max_memory_mb: 4096, secrets: [S]}";
        check(
            contract,
            "max_memory_mb: 64",
            shown(false),
            &expect![[r#"
            Agent: a v1.0.0
              Filesystem: read
              Network: outbound
              Spawn: false
              Max memory: 64 MB
              Max CPU: 60 s
              Secrets: S
              Isolation: process
              Container image: python:3.12-slim
        "#]],
        );
        check(
            contract,
            "container_image: img",
            shown(true),
            &expect![[r#"
            {
              "agent": "a",
              "version": "1.0.0",
              "permissions": {
                "filesystem": [
                  "read"
                ],
                "network": [
                  "outbound"
                ],
                "spawn": false,
                "max_memory_mb": 1024,
                "max_cpu_seconds": 60,
                "secrets": [
                  "S"
                ],
                "isolation": "process",
                "container_image": "img"
              }
            }
        "#]],
        );
        check(
            contract,
            "[]",
            shown(true),
            &expect!["refused: Invalid security policy: a security policy is a mapping, not list"],
        );
        check(
            "name: a",
            "",
            shown(true),
            &expect!["refused: Invalid: Contract validation failed: 'version' is a required property"],
        );
    }

    #[test]
    fn the_policy_may_be_absent() {
        let verb = |folder: &Path| Verb::Check(Check { path: folder.join("agent.yaml"), policy: None, json: true });
        check(
            "name: a\nversion: 1.0.0",
            "",
            verb,
            &expect![[r#"
            {
              "agent": "a",
              "version": "1.0.0",
              "permissions": {
                "filesystem": [
                  "read"
                ],
                "network": [
                  "outbound"
                ],
                "spawn": false,
                "max_memory_mb": 512,
                "max_cpu_seconds": 60,
                "secrets": [],
                "isolation": "process",
                "container_image": "python:3.12-slim"
              }
            }
        "#]],
        );
    }
}
