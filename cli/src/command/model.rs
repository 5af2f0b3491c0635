//! `atlasctl model`: the models that agents use, their tiers, and the price list; one file per verb.

mod add;
mod check;
mod list;
mod login;
mod prices;
mod probe;
mod tier;
mod uses;

pub(crate) use check::{failed, job as job_of_own_agent};
pub(crate) use uses::model_of;

use serde_json::Value;

use crate::command::object;
use crate::context::Context;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::names;

/// The word of models in the API.
const KIND: &str = "model";

/// Verbs of `atlasctl model`.
#[derive(Debug, clap::Subcommand)]
pub(crate) enum Verb {
    /// Adds a model that agents can use, and asks whether it can be reached.
    Add(Box<add::Options>),
    /// Lists models.
    List(list::Options),
    /// Shows one model as apply reads it.
    Show(Names),
    /// Calls a model once, and says how long the answer took or what is wrong.
    Check(check::Options),
    /// Logs in to a model whose provider gives access tokens; the cluster keeps and renews them.
    Login(login::Options),
    /// Forgets the access tokens of a model.
    Logout(Names),
    /// Removes a model that no tier, no other model and no document base uses.
    #[command(alias = "delete")]
    Remove(Names),
    /// Shows which model each tier has, or sets the model of a tier.
    Tier(tier::Options),
    /// Shows the price list that this program contains.
    Prices(prices::Options),
}

/// Names of models.
#[derive(Debug, clap::Args)]
pub(crate) struct Names {
    /// The model's name.
    #[arg(value_name = "NAME", required = true, value_parser = names::model)]
    names: Vec<String>,
}

pub(crate) async fn run(context: &Context, verb: &Verb) -> Result<Exit, Failure> {
    match verb {
        Verb::Add(options) => add::run(context, options).await,
        Verb::List(options) => list::run(context, options).await,
        Verb::Show(options) => {
            names::each(context, &options.names, async |name| object::show(context, KIND, name).await).await
        }
        Verb::Check(options) => check::run(context, options).await,
        Verb::Login(options) => login::run(context, options).await,
        Verb::Logout(options) => {
            names::each(context, &options.names, async |name| login::logout(context, name).await).await
        }
        Verb::Remove(options) => names::each(context, &options.names, async |name| remove(context, name).await).await,
        Verb::Tier(options) => tier::run(context, options).await,
        Verb::Prices(options) => prices::run(context, options),
    }
}

/// Removes a model, if no document base names it: the cluster looks at tiers and fallbacks by itself, and searches of such a base would fail.
async fn remove(context: &Context, name: &str) -> Result<Exit, Failure> {
    let bases = match object::all(&context.client()?, "base").await {
        Ok(bases) => bases,
        // Without the right to read objects, and in clusters of a release without bases, there is nothing to look at.
        Err(failure) if matches!(failure.exit, Exit::Denied | Exit::NotFound) => Vec::new(),
        Err(failure) => return Err(failure),
    };
    if let Some((setting, base)) = used_by(&bases, name) {
        let message = format!("the model \"{name}\" is in use: the document base \"{base}\" names it as its {setting}");
        let failure = Failure::new("E1119", Exit::Conflict, message);
        return Err(failure
            .with_next(format!("name another one, or none: atlasctl rag create {base} --{setting} '' --replace")));
    }
    object::remove(context, KIND, name).await
}

/// The setting and the name of the first base that names a model.
fn used_by<'a>(bases: &'a [Value], model: &str) -> Option<(&'static str, &'a str)> {
    let names = |base: &&Value, setting: &str| base["spec"][setting].as_str() == Some(model);
    ["embedding", "reranker"].into_iter().find_map(|setting| {
        let base = bases.iter().find(|base| names(base, setting))?;
        Some((setting, name_of(base)))
    })
}

/// The name of an object of the API.
fn name_of(object: &Value) -> &str {
    object["metadata"]["name"].as_str().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn bases_use_models() {
        let base = |name: &str, spec: Value| json!({"metadata": {"name": name}, "spec": spec});
        let bases =
            [base("a", json!({})), base("b", json!({"embedding": "near"})), base("c", json!({"reranker": "ranks"}))];
        assert_eq!(used_by(&bases, "near"), Some(("embedding", "b")));
        assert_eq!(used_by(&bases, "ranks"), Some(("reranker", "c")));
        assert_eq!((used_by(&bases, "a"), used_by(&[], "near")), (None, None));
    }
}
