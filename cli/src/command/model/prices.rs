//! `atlasctl model prices`: the embedded price list.

use atlas_model::{Day, NanoDollars, PriceList, PriceRow};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::context::Context;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::{Column, List, ListOptions, column, members};

/// Options of `atlasctl model prices`.
#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// Only models whose id contains this text.
    #[arg(value_name = "TEXT")]
    text: Option<String>,
    /// Only the prices of this day in UTC, such as 2026-01-31; without it, all prices with their first days.
    #[arg(long, value_name = "DAY")]
    day: Option<Day>,
    #[command(flatten)]
    list: ListOptions,
}

/// The prices of one model from a day on.
#[derive(Debug, Deserialize)]
struct Row {
    model: String,
    provider: String,
    from: Day,
    input: NanoDollars,
    output: NanoDollars,
    cache_read: Option<NanoDollars>,
    cache_write: Option<NanoDollars>,
}

const COLUMNS: [Column<Row>; 7] = [
    column("MODEL", "model", |row, _| row.model.clone()),
    column("PROVIDER", "provider", |row, _| row.provider.clone()),
    column("FROM", "from", |row, _| row.from.to_string()),
    column("INPUT", "input", |row, _| dollars(Some(row.input))),
    column("OUTPUT", "output", |row, _| dollars(Some(row.output))),
    column("CACHE READ", "cache_read", |row, _| dollars(row.cache_read)),
    column("CACHE WRITE", "cache_write", |row, _| dollars(row.cache_write)),
];

pub(super) fn run(context: &Context, options: &Options) -> Result<Exit, Failure> {
    let list = PriceList::embedded();
    let is_shown = |row: &PriceRow, model: &str| {
        let on_day = |day| list.row(model, day).is_some_and(|valid| valid.from == row.from);
        options.text.as_deref().is_none_or(|text| model.contains(text)) && options.day.is_none_or(on_day)
    };
    let mut rows = Vec::new();
    for row in list.rows() {
        rows.extend(row.models.iter().filter(|model| is_shown(row, model)).map(|model| shown(row, model)));
    }
    let list = List { columns: &COLUMNS, members: members::PRICE, name: |row: &Row| format!("model/{}", row.model) };
    if context.list(Value::Array(rows), &options.list, &list)? == 0 {
        context.note("no prices of such a model");
    }
    Ok(Exit::Done)
}

fn shown(row: &PriceRow, model: &str) -> Value {
    let mut value = json!(row.prices);
    value["model"] = model.into();
    value["provider"] = row.provider.as_str().into();
    value["from"] = json!(row.from);
    value
}

fn dollars(amount: Option<NanoDollars>) -> String {
    amount.map(|amount| format!("${amount}")).unwrap_or_default()
}
