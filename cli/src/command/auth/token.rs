//! `atlasctl auth token`.

use std::path::PathBuf;
use std::time::Duration;

use atlas_api::types::ObjectMetadata;
use serde::Deserialize;
use serde_json::{Value, json};

use super::write_token;
use crate::command::object;
use crate::context::Context;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::names;
use crate::output::{Column, List, ListOptions, Shown, column, members, wide};
use crate::words::{self, shell};

/// The word of tokens in the API.
const KIND: &str = "token";

/// Verbs of `atlasctl auth token`.
#[derive(Debug, clap::Subcommand)]
pub(crate) enum Verb {
    /// Makes a token; its text is shown this once.
    Create(CreateOptions),
    /// Lists tokens, without their texts.
    List(Options),
    /// Revokes tokens: they are refused from now on.
    Revoke(Names),
}

/// Options of `atlasctl auth token create`.
#[derive(Debug, clap::Args)]
#[group(skip)]
pub(crate) struct CreateOptions {
    /// The token's name: letters, digits and hyphens.
    #[arg(value_name = "NAME")]
    name: String,
    /// Who shows the token; by default its name.
    #[arg(long, value_name = "WHO")]
    principal: Option<String>,
    /// How long it is valid, or never.
    #[arg(long, value_name = "DURATION|never", default_value = "90d", value_parser = parse_expires)]
    expires: Expires,
    /// What it is for.
    #[arg(long, value_name = "TEXT")]
    description: Option<String>,
    /// Write the token to a new file that only you can read, instead of printing it.
    #[arg(long, value_name = "FILE")]
    to: Option<PathBuf>,
}

/// When a token ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Expires {
    After(Duration),
    Never,
}

fn parse_expires(text: &str) -> Result<Expires, String> {
    match text {
        "never" => Ok(Expires::Never),
        text => match words::parse_duration(text)? {
            short if short < Duration::from_secs(1) => Err("must be a second or longer, or never".to_owned()),
            valid => Ok(Expires::After(valid)),
        },
    }
}

/// Options of `atlasctl auth token list`.
#[derive(Debug, clap::Args)]
#[group(skip)]
pub(crate) struct Options {
    #[command(flatten)]
    list: ListOptions,
}

/// Names of tokens.
#[derive(Debug, clap::Args)]
#[group(skip)]
pub(crate) struct Names {
    /// The token's name.
    #[arg(value_name = "NAME", required = true)]
    names: Vec<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Token {
    metadata: ObjectMetadata,
    spec: Spec,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Spec {
    principal: String,
    description: String,
    expires_ms: Option<u64>,
}

const COLUMNS: [Column<Token>; 5] = [
    column("NAME", "metadata", |token, _| token.metadata.name.clone()),
    column("PRINCIPAL", "spec", |token, _| token.spec.principal.clone()),
    column("EXPIRES", "spec", |token, _| match token.spec.expires_ms {
        Some(expires) => words::date_and_time(expires as f64 / 1e3),
        None => "never".to_owned(),
    }),
    column("DESCRIPTION", "spec", |token, _| token.spec.description.clone()),
    wide("BY", "metadata", |token, _| token.metadata.updated_by.clone()),
];

pub(super) async fn run(context: &Context, verb: &Verb) -> Result<Exit, Failure> {
    match verb {
        Verb::Create(options) => create(context, options).await,
        Verb::List(options) => {
            let tokens = object::all(&context.client()?, KIND).await?;
            let name = |token: &Token| format!("{KIND}/{}", token.metadata.name);
            let list = List { columns: &COLUMNS, members: members::OBJECT, name };
            if context.list(Value::Array(tokens), &options.list, &list)? == 0 {
                context.note("no tokens: atlasctl auth token create NAME");
            }
            Ok(Exit::Done)
        }
        Verb::Revoke(options) => {
            names::each(context, &options.names, async |name| object::remove(context, KIND, name).await).await
        }
    }
}

async fn create(context: &Context, options: &CreateOptions) -> Result<Exit, Failure> {
    let valid_for = match options.expires {
        Expires::After(valid) => Some(valid.as_secs()),
        Expires::Never => None,
    };
    let body = json!({
        "name": options.name,
        "principal": options.principal,
        "description": options.description,
        "valid_for_s": valid_for,
    });
    let made = context.client()?.post(&["api", "auth", "tokens"], &[], &body).await;
    let mut value = made.map_err(|failure| match object::is_conflict(&failure) {
        true => Failure { message: format!("there is a token \"{}\" already", options.name), ..failure }
            .with_next("choose another name: several tokens can have one --principal"),
        false => failure,
    })?;
    let token = value["token"].as_str().ok_or_else(|| Failure::answer("a token was expected"))?.to_owned();
    let text = match &options.to {
        Some(path) => {
            write_token(path, &token)?;
            // The token must not appear in logs; the output contains only the path of the file.
            value["token"] = Value::Null;
            format!("{}\n", path.display())
        }
        None => format!("{token}\n"),
    };
    let principal = value["object"]["spec"]["principal"].as_str().unwrap_or_default().to_owned();
    let ends = value["object"]["spec"]["expires_ms"].as_u64();
    context.show(&Shown { value, text, names: vec![format!("{KIND}/{}", options.name)] })?;
    match ends {
        Some(ends) => context.note(&format!("it ends {}", words::date_and_time(ends as f64 / 1e3))),
        None => context.must_know("warning: this token never ends: whoever gets it can use it until you revoke it"),
    }
    context.next(&format!("next: atlasctl auth bind {} viewer --cluster   ·   atlasctl auth roles", shell(&principal)));
    Ok(Exit::Done)
}

#[test]
fn a_token_ends_unless_the_word_says_otherwise() {
    assert_eq!(parse_expires("never"), Ok(Expires::Never));
    assert_eq!(parse_expires("90d"), Ok(Expires::After(Duration::from_secs(90 * 86_400))));
    for wrong in ["0", "500ms", "-1d", "Never", ""] {
        assert!(parse_expires(wrong).is_err(), "{wrong}");
    }
}
