//! What model calls cost, and the text of an input that is searched for.

use atlas_model::{NANODOLLARS_PER_DOLLAR, compatible_cost};
use serde_json::{Value, json};

use crate::matcher::Captures;
use crate::result::{Judged, compare};
use crate::row::Row;

pub(super) fn cost(row: &Row) -> Judged {
    let tokens = |member: &str| row.input[member].as_u64().unwrap_or(0);
    let cost = compatible_cost(row.text("model"), tokens("input_tokens"), tokens("output_tokens"));
    #[expect(clippy::cast_precision_loss, reason = "rows compare dollars as numbers")]
    let usd = cost.0 as f64 / NANODOLLARS_PER_DOLLAR as f64;
    compare(&row.expect, &json!({ "usd": usd }), &Captures::new())
}

pub(super) fn search_text(row: &Row) -> Judged {
    let text = row.input["input"].as_object().map(atlas_contract::search_text);
    compare(&row.expect, &json!({ "text": text.map_or(Value::Null, Value::from) }), &Captures::new())
}
