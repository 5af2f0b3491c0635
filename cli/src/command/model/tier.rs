//! `atlasctl model tier`: which model the agents get that ask for a tier.

use serde_json::{Value, json};

use super::name_of;
use crate::client::Client;
use crate::command::object;
use crate::context::Context;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::names;
use crate::output::{Shown, Table};

/// The tiers, as contracts name them.
const TIERS: [&str; 3] = ["fast", "balanced", "powerful"];

/// The word of tiers in the API.
const KIND: &str = "tier";

/// Options of `atlasctl model tier`.
#[derive(Debug, clap::Args)]
#[group(skip)]
pub(crate) struct Options {
    /// fast, balanced or powerful; without it, all three are shown.
    #[arg(value_parser = TIERS)]
    tier: Option<String>,
    /// The model that the tier gets.
    #[arg(value_parser = names::model)]
    model: Option<String>,
    /// Give the tier the model of its own name again.
    #[arg(long, requires = "tier", conflicts_with = "model")]
    reset: bool,
}

/// A tier and its model, if it has one.
pub(super) struct Tier {
    pub(super) name: &'static str,
    pub(super) model: Option<String>,
    /// Whether an object names the model; otherwise it is the model of the tier's name.
    is_set: bool,
}

/// All tiers; a tier without an object has the model of its own name, if there is one.
pub(super) async fn all(client: &Client, models: &[Value]) -> Result<Vec<Tier>, Failure> {
    let objects = object::all(client, KIND).await?;
    let tier = |name: &'static str| {
        let set = objects.iter().find(|object| name_of(object) == name);
        let set = set.and_then(|object| object["spec"]["model"].as_str()).map(str::to_owned);
        let is_set = set.is_some();
        let own = || models.iter().any(|model| name_of(model) == name).then(|| name.to_owned());
        Tier { name, model: set.or_else(own), is_set }
    };
    Ok(TIERS.map(tier).into())
}

pub(super) async fn run(context: &Context, options: &Options) -> Result<Exit, Failure> {
    let client = context.client()?;
    if let Some(tier) = &options.tier {
        let path = ["api", "objects", KIND, tier];
        match &options.model {
            Some(model) => {
                client.put(&path, &[], &json!({ "labels": {}, "spec": { "model": model } })).await?;
            }
            None if options.reset => {
                client.delete(&path).await?;
            }
            None => {}
        }
    }
    let models = object::all(&client, super::KIND).await?;
    let tiers = all(&client, &models).await?;
    let shown: Vec<&Tier> =
        tiers.iter().filter(|tier| options.tier.as_deref().is_none_or(|name| name == tier.name)).collect();
    let mut table = Table::new(&["TIER", "MODEL"]);
    for tier in &shown {
        table.row([tier.name.to_owned(), tier.model.clone().unwrap_or_default()]);
    }
    let value = |tier: &&Tier| json!({ "tier": tier.name, "model": tier.model, "set": tier.is_set });
    context.show(&Shown {
        value: shown.iter().map(value).collect(),
        text: table.text(),
        names: shown.iter().map(|tier| format!("{KIND}/{}", tier.name)).collect(),
    })?;
    Ok(Exit::Done)
}
