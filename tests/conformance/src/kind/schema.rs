//! Validation of a value against a schema.

use atlas_contract::schema::Validator;
use serde_json::json;

use super::contract::listed;
use crate::matcher::Captures;
use crate::result::{Judged, compare};
use crate::row::Row;

pub(super) fn judge(row: &Row) -> Judged {
    let answer = match Validator::compile(&row.input["schema"]) {
        Ok(validator) => {
            let violations = validator.validate(&row.input["data"]).err().unwrap_or_default();
            json!({"valid": violations.is_empty(), "violations": listed(&violations)})
        }
        Err(error) => json!({"error": error.to_string()}),
    };
    compare(&row.expect, &answer, &Captures::new())
}
