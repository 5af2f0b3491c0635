//! Secrets: which names an agent gets, and where their values come from.

use std::collections::BTreeMap;

use atlas_contract::secret_file;
use atlas_secrets::{Rules, variable_of};
use atlas_types::SecretText;
use serde_json::{Value, json};

use crate::matcher::Captures;
use crate::result::{Judged, compare};
use crate::row::{Row, items};

/// The values of some names, of those that are available.
pub(super) fn resolve(row: &Row) -> Judged {
    let rules = match &row.input["allowed"] {
        Value::Array(_) => {
            Rules::Only(items(&row.input, "allowed").filter_map(Value::as_str).map(Into::into).collect())
        }
        _ => Rules::Any,
    };
    let available = &row.input["available"];
    let value = |name: &str| available.get(name).and_then(Value::as_str).map(SecretText::new);
    let names = items(&row.input, "names").filter_map(Value::as_str);
    let answer = match rules.resolve(names, value) {
        Ok(values) => {
            let shown: BTreeMap<_, _> = values.iter().map(|(name, value)| (name, value.expose())).collect();
            json!({"ok": true, "values": shown})
        }
        Err(error) => json!({"ok": false, "error": error.to_string()}),
    };
    compare(&row.expect, &answer, &Captures::new())
}

/// The value of a name in a file.
pub(super) fn file(row: &Row) -> Judged {
    let answer = match secret_file::read(row.text("file"), row.text("text").as_bytes()) {
        Ok(values) => json!({"ok": true, "value": values.get(row.text("name"))}),
        Err(error) => json!({"ok": false, "error": error.to_string()}),
    };
    compare(&row.expect, &answer, &Captures::new())
}

/// The value of a name in an environment.
pub(super) fn environment(row: &Row) -> Judged {
    let variable = variable_of(row.input["prefix"].as_str(), row.text("name"));
    let value = row.input["env"].get(variable).and_then(Value::as_str);
    compare(&row.expect, &json!({ "value": value }), &Captures::new())
}
