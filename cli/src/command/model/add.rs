//! `atlasctl model add`: writes the object of a model from options.

use std::collections::BTreeMap;

use atlas_model::{Day, ModelSpec, NanoDollars, PriceList, Provider, Reference};
use serde_json::{Map, Value, json};

use super::probe::{Probed, probe};
use super::{KIND, check};
use crate::context::Context;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::names;
use crate::output::Shown;
use crate::words;

/// Options of `atlasctl model add`.
#[derive(Debug, clap::Args)]
#[group(skip)]
pub(crate) struct Options {
    /// The name of the model in Atlas; a model with the name of a tier is the model of that tier.
    #[arg(value_parser = names::model)]
    name: String,
    /// The protocol: openai (and every compatible server), openai-responses, azure, anthropic, gemini, vertex, bedrock, cohere,
    /// ollama, local (the worker itself) or scripted.
    #[arg(long, value_parser = parse_provider)]
    provider: Provider,
    /// The id that the provider knows the model by.
    #[arg(long = "name", value_name = "ID")]
    id: String,
    /// What it is for: a chat, vectors of texts (embedding), or putting texts in order (reranker).
    #[arg(long = "type", value_name = "TYPE", value_parser = ["chat", "embedding", "reranker"])]
    purpose: Option<String>,
    /// Where the key comes from: secret://NAME, or ${VARIABLE} of the worker's environment; never the key itself.
    #[arg(long, value_name = "REFERENCE")]
    key: Option<String>,
    /// The issuer of access tokens, for providers without keys: claude or gemini. Others are written into the object.
    #[arg(long, value_name = "ISSUER", value_parser = ["claude", "gemini"], requires = "client_id", conflicts_with = "key")]
    login: Option<String>,
    /// The id of the client that you registered with the issuer.
    #[arg(long, value_name = "ID", requires = "login")]
    client_id: Option<String>,
    /// The secret of that client, secret://NAME in the store; never the secret itself.
    #[arg(long, value_name = "REFERENCE", requires = "login")]
    client_secret: Option<String>,
    /// The address of the API, if it is not the provider's own.
    #[arg(long, value_name = "URL")]
    base_url: Option<String>,
    /// A header of each request; the value may contain references; repeatable.
    #[arg(long = "header", value_name = "NAME=VALUE", value_parser = words::parse_label)]
    headers: Vec<(String, String)>,
    /// What only some providers have, such as region=eu-west-1; repeatable.
    #[arg(long = "parameter", value_name = "NAME=VALUE", value_parser = words::parse_label)]
    parameters: Vec<(String, String)>,
    /// US dollars per million input tokens.
    #[arg(long, value_name = "USD", requires = "price_out")]
    price_in: Option<NanoDollars>,
    /// US dollars per million output tokens.
    #[arg(long, value_name = "USD", requires = "price_in")]
    price_out: Option<NanoDollars>,
    /// US dollars per million tokens from the provider's cache.
    #[arg(long, value_name = "USD", requires = "price_in")]
    price_cache_read: Option<NanoDollars>,
    /// US dollars per million tokens written to the provider's cache.
    #[arg(long, value_name = "USD", requires = "price_in")]
    price_cache_write: Option<NanoDollars>,
    /// Maximum number of tokens of a request and its answer together.
    #[arg(long, value_name = "TOKENS")]
    context_window: Option<u64>,
    /// Maximum number of tokens of an answer.
    #[arg(long, value_name = "TOKENS")]
    output_max: Option<u32>,
    /// What the model can do: tools, vision, json_schema, reasoning.
    #[arg(long, value_delimiter = ',', value_name = "A,B,…")]
    capabilities: Vec<String>,
    /// Maximum number of calls at the same time.
    #[arg(long, value_name = "N")]
    concurrency: Option<u32>,
    /// Maximum number of calls per minute.
    #[arg(long, value_name = "N")]
    requests_per_minute: Option<u32>,
    /// Maximum number of tokens per minute.
    #[arg(long, value_name = "N")]
    tokens_per_minute: Option<u64>,
    /// A model that is tried when this one fails; repeatable, in order.
    #[arg(long = "fallback", value_name = "NAME", value_parser = names::model)]
    fallbacks: Vec<String>,
    /// Replace a model of the same name.
    #[arg(long)]
    replace: bool,
    /// Do not ask whether the model can be reached.
    #[arg(long)]
    no_probe: bool,
}

fn parse_provider(text: &str) -> Result<Provider, String> {
    let words = || Provider::ALL.map(Provider::as_str).join(", ");
    Provider::ALL.into_iter().find(|provider| provider.as_str() == text).ok_or_else(|| format!("one of {}", words()))
}

pub(super) async fn run(context: &Context, options: &Options) -> Result<Exit, Failure> {
    // Not by the parser of arguments: its error would repeat a key that somebody has written here.
    if options.key.as_deref().is_some_and(|key| Reference::read(key).is_none()) {
        let failure = Failure::usage("--key is not a reference: secret://NAME or ${VARIABLE}");
        return Err(failure.with_next("write the variable in single quotes: --key '${OPENAI_API_KEY}'"));
    }
    if options.client_secret.as_deref().is_some_and(|secret| Reference::read(secret).is_none()) {
        let failure = Failure::usage("--client-secret is not a reference: secret://NAME");
        return Err(failure.with_next("store it first: atlasctl secret set NAME"));
    }
    let name = &options.name;
    let client = context.client()?;
    let path = ["api", "objects", KIND, name];
    let body = json!({ "labels": {}, "spec": options.spec() });
    let answer =
        if options.replace { client.put(&path, &[], &body).await } else { client.put_new(&path, &[], &body).await };
    let value = answer.map_err(|failure| match failure.code.as_deref() {
        Some("E1116") => Failure { message: format!("the model \"{name}\" exists already"), ..failure }
            .with_next("replace it: add --replace"),
        _ => failure,
    })?;
    let mut text = format!("model {name}   added   {}", price(&value["spec"]));
    if options.login.is_some() {
        context.note(&format!("log in to it: atlasctl model login {name}"));
    } else if !options.no_probe {
        // The model is stored, whatever the probe says.
        match probe(&client, name).await {
            Ok(Probed::Reachable { latency_ms }) => text = check::reachable(name, latency_ms, &value["spec"]),
            Ok(Probed::Unreachable(why)) => context.note(&format!("the model is not reachable: {why}")),
            Ok(Probed::Unknown(why)) => context.note(&format!("not known whether the model is reachable: {why}")),
            Err(failure) => context.note(&format!("not known whether the model is reachable: {}", failure.message)),
        }
    }
    context.show(&Shown { value, text: text + "\n", names: vec![format!("{KIND}/{name}")] })?;
    Ok(Exit::Done)
}

/// The prices of a spec as words; those of the newest row of the list if the spec has none.
pub(super) fn price(spec: &Value) -> String {
    let spec = ModelSpec::read(spec.to_string().as_bytes()).ok();
    match spec.and_then(|spec| spec.prices_on(PriceList::embedded(), Day::of(u64::MAX))) {
        Some(prices) => format!("${} / ${} per million tokens", prices.input, prices.output),
        None => "no price known: give --price-in and --price-out".to_owned(),
    }
}

impl Options {
    /// The spec, without members that are not given.
    fn spec(&self) -> Value {
        let mut spec = Map::new();
        let mut set = |member: &str, value: Option<Value>| {
            if let Some(value) = value {
                spec.insert(member.to_owned(), value);
            }
        };
        let texts = |pairs: &[(String, String)]| {
            let texts: BTreeMap<_, _> = pairs.iter().map(|(name, value)| (name, value)).collect();
            (!texts.is_empty()).then(|| json!(texts))
        };
        let list = |items: &[String]| (!items.is_empty()).then(|| json!(items));
        set("provider", Some(self.provider.as_str().into()));
        set("name", Some(self.id.as_str().into()));
        set("key", self.key.as_deref().map(Value::from));
        set("login", self.login());
        set("base_url", self.base_url.as_deref().map(Value::from));
        set("headers", texts(&self.headers));
        set("parameters", texts(&self.parameters));
        set("prices", self.prices());
        set("type", self.purpose.clone().map(Value::from));
        set("context_window", self.context_window.map(Value::from));
        set("output_tokens_max", self.output_max.map(Value::from));
        set("capabilities", list(&self.capabilities));
        set("limits", self.limits());
        set("fallbacks", list(&self.fallbacks));
        Value::Object(spec)
    }

    fn login(&self) -> Option<Value> {
        some([
            ("issuer", self.login.as_deref().map(Value::from)),
            ("client_id", self.client_id.as_deref().map(Value::from)),
            ("client_secret", self.client_secret.as_deref().map(Value::from)),
        ])
    }

    fn prices(&self) -> Option<Value> {
        let members = [
            ("input", self.price_in),
            ("output", self.price_out),
            ("cache_read", self.price_cache_read),
            ("cache_write", self.price_cache_write),
        ];
        some(members.map(|(name, price)| (name, price.map(|price| price.to_string().into()))))
    }

    fn limits(&self) -> Option<Value> {
        some([
            ("concurrency", self.concurrency.map(Value::from)),
            ("requests_per_minute", self.requests_per_minute.map(Value::from)),
            ("tokens_per_minute", self.tokens_per_minute.map(Value::from)),
        ])
    }
}

/// The object of the members that are given; none if none is.
fn some<const N: usize>(members: [(&str, Option<Value>); N]) -> Option<Value> {
    let given = members.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?)));
    let given: Map<_, _> = given.collect();
    (!given.is_empty()).then_some(Value::Object(given))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn providers_have_words() {
        assert_eq!(parse_provider("openai-responses"), Ok(Provider::OpenaiResponses));
        assert!(parse_provider("gpt").expect_err("no provider").starts_with("one of openai, "));
    }

    #[test]
    fn prices_are_those_of_the_spec_or_of_the_list() {
        let spec = |name: &str| json!({ "provider": "openai", "name": name });
        assert_eq!(price(&spec("gpt-4o-mini")), "$0.15 / $0.60 per million tokens");
        assert_eq!(price(&spec("mine")), "no price known: give --price-in and --price-out");
        let mut own = spec("mine");
        own["prices"] = json!({ "input": "0.4", "output": 2 });
        assert_eq!(price(&own), "$0.40 / $2.00 per million tokens");
    }
}
