//! `atlasctl secret import`: the secrets of a vault file of Loki. Names stay as they are, so references such as `{{NAME}}` remain valid.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use zeroize::Zeroizing;

use super::KIND;
use super::value::{check_private, store};
use crate::command::object;
use crate::context::Context;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::input;
use crate::masked;
use crate::output::Shown;
use crate::vault::{self, Envelope, EnvelopeError};
use crate::words::{self, shell};

/// Options of `atlasctl secret import`.
#[derive(Debug, clap::Args)]
#[group(skip)]
pub(crate) struct Options {
    /// The vault file, usually vault.yml in the configuration folder.
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Read the password from a file; blanks around it are not part of it. Without it, the terminal is asked.
    #[arg(long, value_name = "FILE")]
    password_file: Option<PathBuf>,
    /// Store a new version of each secret that exists already.
    #[arg(long)]
    replace: bool,
    /// Check the password and the names, without storing anything.
    #[arg(long)]
    dry_run: bool,
}

/// Opens all envelopes before the first value is stored, so that a wrong password leaves nothing half imported.
pub(super) async fn run(context: &Context, options: &Options) -> Result<Exit, Failure> {
    let envelopes = vault::read(input::read_file(&options.file)?.as_bytes());
    let envelopes = envelopes.map_err(|error| refused(&options.file, &error.to_string()))?;
    let client = context.client()?;
    check_private(&client)?;
    let existing = object::all(&client, KIND).await?;
    check_names(&envelopes, &existing, options)?;
    if envelopes.is_empty() {
        context.note(&format!("\"{}\" contains no secrets", options.file.display()));
    }
    let values = opened(&envelopes, options)?;
    let (mut answers, mut text, mut names) = (Vec::new(), String::new(), Vec::new());
    for (name, value) in &values {
        names.push(format!("{KIND}/{name}"));
        if options.dry_run {
            answers.push(json!({ "name": name }));
            text += &format!("secret {name} would be stored\n");
            continue;
        }
        let answer = store(&client, name, value, false).await?;
        let newest = answer["spec"]["versions"].as_array().and_then(|versions| versions.last());
        let version = newest.and_then(|newest| newest["version"].as_u64()).unwrap_or_default();
        let namespace = answer["metadata"]["namespace"].as_str().unwrap_or_default();
        text += &format!("secret {name} v{version} stored in {namespace} (sealed)\n");
        answers.push(answer);
    }
    context.show(&Shown { value: Value::Array(answers), text, names })?;
    Ok(Exit::Done)
}

/// The values by name.
fn opened(
    envelopes: &BTreeMap<String, Envelope>,
    options: &Options,
) -> Result<BTreeMap<String, Zeroizing<String>>, Failure> {
    if envelopes.is_empty() {
        return Ok(BTreeMap::new());
    }
    let password = password(options)?;
    let open = |(name, envelope): (&String, &Envelope)| match envelope.open(&password) {
        Ok(value) => Ok((name.clone(), value)),
        Err(error) => {
            let failure = refused(&options.file, &format!("\"{name}\": {error}"));
            Err(if error == EnvelopeError::Sealed { Failure { exit: Exit::Denied, ..failure } } else { failure })
        }
    };
    envelopes.iter().map(open).collect()
}

fn password(options: &Options) -> Result<Zeroizing<String>, Failure> {
    let Some(file) = &options.password_file else {
        return masked::ask("password of the vault: ")?.ok_or_else(|| {
            let file = shell(&options.file.display().to_string());
            Failure::usage("stdin is not a terminal")
                .with_next(format!("read the password from a file: atlasctl secret import {file} --password-file FILE"))
        });
    };
    let text = Zeroizing::new(input::read_file(file)?);
    match text.trim() {
        "" => Err(Failure::usage(format!("the password file \"{}\" is empty", file.display()))),
        password => Ok(Zeroizing::new(password.to_owned())),
    }
}

/// Refuses names that secrets cannot have, and secrets that exist already.
fn check_names(envelopes: &BTreeMap<String, Envelope>, existing: &[Value], options: &Options) -> Result<(), Failure> {
    let wrong: Vec<&str> = envelopes.keys().map(String::as_str).filter(|name| !atlas_secrets::is_name(name)).collect();
    if !wrong.is_empty() {
        let wrong = words::short(&wrong.join(", "), 200);
        let why = format!("a name consists of letters, digits, -, _ and .; other names are in it: {wrong}");
        return Err(refused(&options.file, &why));
    }
    let exists = |name: &&str| existing.iter().any(|object| object["metadata"]["name"] == **name);
    let known: Vec<&str> = envelopes.keys().map(String::as_str).filter(exists).collect();
    if known.is_empty() || options.replace {
        return Ok(());
    }
    let message = format!("secrets exist already: {}", words::short(&known.join(", "), 200));
    Err(Failure::new("E1116", Exit::Conflict, message).with_next("store new versions of them: add --replace"))
}

fn refused(file: &Path, why: &str) -> Failure {
    let message = format!("could not import \"{}\": {why}", file.display());
    Failure::new("E0128", Exit::Invalid, message).with_next("what it means: atlasctl explain-error E0128")
}
