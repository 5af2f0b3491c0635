//! `atlasctl model list`.

use atlas_api::types::ObjectMetadata;
use atlas_model::{Day, ModelSpec, NanoDollars, PriceList, Prices};
use serde::Deserialize;
use serde_json::{Value, json};

use super::{KIND, name_of, tier};
use crate::command::object;
use crate::context::Context;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::{Column, List, ListOptions, column, members, wide};
use crate::words;

/// Options of `atlasctl model list`.
#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    #[command(flatten)]
    list: ListOptions,
}

/// A model as a list shows it.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Model {
    metadata: ObjectMetadata,
    spec: Value,
    status: Option<Status>,
    /// The tiers that it is the model of.
    tiers: Vec<String>,
}

/// Whether a worker could reach it.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Status {
    state: String,
    latency_ms: Option<f64>,
    reason: String,
}

impl Model {
    /// A member of the spec that is a text.
    fn text(&self, member: &str) -> String {
        self.spec[member].as_str().unwrap_or_default().to_owned()
    }

    /// `reachable in 212 ms`, `unreachable`; empty if no worker has asked it yet.
    fn state(&self) -> String {
        let Some(Status { state, latency_ms, .. }) = &self.status else { return String::new() };
        match latency_ms {
            Some(latency_ms) => format!("{state} in {}", words::milliseconds(*latency_ms)),
            None => state.clone(),
        }
    }

    fn words(&self, member: &str) -> String {
        let words = self.spec[member].as_array().into_iter().flatten().filter_map(Value::as_str);
        words.collect::<Vec<_>>().join(",")
    }

    fn price(&self, of: fn(&Prices) -> NanoDollars) -> String {
        let spec = ModelSpec::read(self.spec.to_string().as_bytes()).ok();
        let prices = spec.and_then(|spec| spec.prices_on(PriceList::embedded(), Day::of(u64::MAX)));
        prices.map(|prices| format!("${}", of(&prices))).unwrap_or_default()
    }
}

const COLUMNS: [Column<Model>; 12] = [
    column("NAME", "metadata", |model, _| model.metadata.name.clone()),
    column("PROVIDER", "spec", |model, _| model.text("provider")),
    column("MODEL", "spec", |model, _| model.text("name")),
    column("INPUT", "spec", |model, _| model.price(|prices| prices.input)),
    column("OUTPUT", "spec", |model, _| model.price(|prices| prices.output)),
    column("TIERS", "tiers", |model, _| model.tiers.join(",")),
    column("STATE", "status", |model, _| model.state()),
    wide("REASON", "status", |model, _| model.status.as_ref().map_or(String::new(), |status| status.reason.clone())),
    wide("CAPABILITIES", "spec", |model, _| model.words("capabilities")),
    wide("FALLBACKS", "spec", |model, _| model.words("fallbacks")),
    wide("ADDRESS", "spec", |model, _| model.text("base_url")),
    wide("NAMESPACE", "metadata", |model, _| model.metadata.namespace.clone()),
];

pub(super) async fn run(context: &Context, options: &Options) -> Result<Exit, Failure> {
    let client = context.client()?;
    let mut models = object::all(&client, KIND).await?;
    let tiers = tier::all(&client, &models).await?;
    for model in &mut models {
        let of_model = tiers.iter().filter(|tier| tier.model.as_deref() == Some(name_of(model)));
        let names: Vec<&str> = of_model.map(|tier| tier.name).collect();
        model["tiers"] = json!(names);
    }
    let name = |model: &Model| format!("{KIND}/{}", model.metadata.name);
    let list = List { columns: &COLUMNS, members: members::MODEL, name };
    if context.list(Value::Array(models), &options.list, &list)? == 0 {
        context.note("no models: atlasctl model add NAME --provider P --name ID");
    }
    Ok(Exit::Done)
}
