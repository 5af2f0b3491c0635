//! Security policies: the normalised policy, what it leaves of permissions, and the command of a container.

use atlas_contract::{Permissions, Violation};
use atlas_policy::{Container, Policy};
use serde_json::{Value, json};

use super::contract::only;
use crate::matcher::Captures;
use crate::result::{Judged, Stop, compare};
use crate::row::{Row, items, unknown};

pub(super) fn load(row: &Row) -> Judged {
    let policy = match &row.input["policy"] {
        Value::String(text) => Policy::parse(text.as_bytes()),
        policy => Policy::read(policy),
    };
    let answer = match policy {
        Ok(policy) => policy.to_json(),
        Err(error) => json!({"ok": false, "error": error.to_string()}),
    };
    compare(&row.expect, &only(&row.expect, answer), &Captures::new())
}

/// The permissions of an agent under a policy.
pub(super) fn resolve(row: &Row) -> Judged {
    let contract = json!({"agent": {"name": "a", "version": "1.0.0", "permissions": row.input["permissions"]}});
    let contract = atlas_contract::parse(contract.to_string().as_bytes()).map_err(|error| error.to_string());
    let policy = Policy::read(&row.input["policy"]).map_err(|error| error.to_string());
    let answer = match (policy, contract) {
        (Ok(policy), Ok(contract)) => policy.permissions_of(&contract).to_json(),
        (Err(error), _) | (_, Err(error)) => json!({"ok": false, "error": error}),
    };
    compare(&row.expect, &only(&row.expect, answer), &Captures::new())
}

pub(super) fn container(row: &Row) -> Judged {
    const PERMISSIONS: [&str; 3] = ["filesystem", "max_memory_mb", "max_cpu_seconds"];
    const OTHERS: [&str; 5] = ["image", "network", "secrets", "dir", "agent_dir"];
    let input = &row.input;
    if let Some(member) = unknown(input, &[&PERMISSIONS[..], &OTHERS].concat()) {
        return Err(Stop::skip(format!("containers with \"{member}\"")));
    }
    let mut permissions = json!({"container_image": input["image"]});
    for name in PERMISSIONS {
        if let Some(value) = input.get(name) {
            permissions[name] = value.clone();
        }
    }
    let failed = |violations: Vec<Violation>| Stop::fail(atlas_contract::joined(&violations));
    let permissions = Permissions::read(&permissions, "/permissions").map_err(failed)?;
    // Either names or values by name.
    let secrets: Vec<String> = match &input["secrets"] {
        Value::Object(values) => values.keys().cloned().collect(),
        _ => items(input, "secrets").filter_map(Value::as_str).map(str::to_owned).collect(),
    };
    let container = Container {
        network: input["network"].as_str().unwrap_or("none"),
        permissions: &permissions,
        secrets: &secrets,
        folder: input["dir"].as_str().or(input["agent_dir"].as_str()),
    };
    let answer = match container.command_line() {
        Ok(words) => json!({"ok": true, "argv": words}),
        Err(error) => json!({"ok": false, "error": error.to_string()}),
    };
    compare(&row.expect, &only(&row.expect, answer), &Captures::new())
}
