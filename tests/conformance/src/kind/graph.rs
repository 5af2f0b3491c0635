//! Graph agents: validation, templates, reducers and runs.

mod folder;
mod host;
mod requests;
mod runs;
mod spelling;
mod validate;

use atlas_graph::Reducer;
use atlas_graph::template::{self, Scope, TemplateError};
use serde_json::{Map, Value, json};

pub(super) use self::runs::judge as run;
pub(super) use self::validate::validate;
use crate::matcher::Captures;
use crate::result::{Judged, Stop, compare};
use crate::row::{Row, items};

pub(super) fn template(row: &Row) -> Judged {
    let (text, none) = (row.text("template"), Map::new());
    let state = row.input["state"].as_object().unwrap_or(&none);
    let scope = Scope { result: None, own: &none, state, given: &none };
    let answer = json!({
        "strict": rendered(template::strict(text, &scope).map(Value::from)),
        "lenient": template::lenient(text, &scope).unwrap_or_default(),
        "typed": rendered(template::typed(text, &scope)),
        "root_keys": template::root_keys(text),
    });
    if !row.differs_in("REQ-40") {
        return compare(&row.expect, &answer, &Captures::new());
    }
    // The row has the text after a second pass over inserted values.
    if answer["lenient"] == row.expect["lenient"] {
        return Err(Stop::fail("an inserted value was read again"));
    }
    compare(&row.expect["root_keys"], &answer["root_keys"], &Captures::new())
}

fn rendered(result: Result<Value, TemplateError>) -> Value {
    match result {
        Ok(value) => json!({"value": value}),
        Err(TemplateError::Missing { paths }) => json!({"error": {"kind": "missing", "missing": paths}}),
        Err(TemplateError::TooLong) => json!({"error": {"kind": "too-long"}}),
    }
}

pub(super) fn reduce(row: &Row) -> Judged {
    let Some(reducer) = Reducer::named(row.text("reducer")) else {
        return Err(Stop::fail(format!("there is no reducer \"{}\"", row.text("reducer"))));
    };
    let mut current = row.input.get("current").cloned();
    let mut answer = None;
    for incoming in items(&row.input, "incoming") {
        match reducer.fold(current.as_ref(), incoming) {
            Ok(value) => current = Some(value),
            Err(error) => {
                answer = Some(json!({"error": {
                    "reducer": error.reducer, "wants": error.wants, "position": error.position, "got": error.got,
                }}));
                break;
            }
        }
    }
    let answer = answer.unwrap_or_else(|| json!({"value": current}));
    if row.differs_in("REQ-51") {
        // The row has a sum that lost digits.
        let is_exact = answer["value"].is_i64() || answer["value"].is_u64();
        return if is_exact { Ok(()) } else { Err(Stop::fail(format!("the sum of integers is {answer}"))) };
    }
    compare(&row.expect, &answer, &Captures::new())
}
