//! `eval.yaml`: the result of one check, and the checks of a file.

use atlas_contract::{Check, Eval};
use serde_json::{Value, json};

use crate::matcher::Captures;
use crate::result::{Judged, compare};
use crate::row::Row;

pub(super) fn check(row: &Row) -> Judged {
    let file = json!({"checks": [row.input["check"]]}).to_string();
    let mut answer = match Eval::parse(file.as_bytes(), "") {
        Ok(eval) => {
            let output = row.input["output"].as_object().cloned().unwrap_or_default();
            eval.run(&output).first().map(atlas_contract::CheckResult::to_json).unwrap_or_default()
        }
        Err(error) => json!({"passed": false, "message": error.to_string()}),
    };
    keep_expected(&row.expect, &mut answer);
    compare(&row.expect, &answer, &Captures::new())
}

pub(super) fn load(row: &Row) -> Judged {
    let answer = match Eval::parse(row.text("yaml").as_bytes(), row.text("directory")) {
        Ok(eval) => {
            let shown = |check: &Check| json!({"name": check.name, "type": check.kind, "field": check.field});
            json!({
                "loaded": true,
                "agent_name": eval.agent_name,
                "checks": eval.checks.iter().map(shown).collect::<Vec<_>>(),
            })
        }
        Err(error) => json!({"loaded": false, "error": error.to_string()}),
    };
    let mut answer = answer;
    keep_expected(&row.expect, &mut answer);
    compare(&row.expect, &answer, &Captures::new())
}

/// Rows compare only the members that they name.
fn keep_expected(expect: &Value, answer: &mut Value) {
    if let Some(members) = answer.as_object_mut() {
        members.retain(|name, _| expect.get(name).is_some());
    }
}
