//! `atlasctl secret list`.

use serde_json::Value;

use super::{KIND, Secret, Version};
use crate::command::object;
use crate::context::Context;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::{Column, List, ListOptions, column, members, wide};

/// Options of `atlasctl secret list`.
#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    #[command(flatten)]
    list: ListOptions,
}

const COLUMNS: [Column<Secret>; 7] = [
    column("NAME", "metadata", |secret, _| secret.metadata.name.clone()),
    column("PROVIDER", "spec", |secret, _| secret.provider().to_owned()),
    column("VERSION", "spec", |secret, _| of_newest(secret, |newest| format!("v{}", newest.version))),
    column("READERS", "spec", |secret, _| readers(secret)),
    column("SET", "spec", |secret, look| of_newest(secret, |newest| look.when(newest.created))),
    wide("KEY", "spec", |secret, _| of_newest(secret, |newest| newest.key.clone())),
    wide("NAMESPACE", "metadata", |secret, _| secret.metadata.namespace.clone()),
];

fn of_newest(secret: &Secret, shown: impl Fn(&Version) -> String) -> String {
    secret.newest().map(shown).unwrap_or_default()
}

fn readers(secret: &Secret) -> String {
    match secret.spec.readers.as_deref() {
        None => "all".to_owned(),
        Some([]) => "none".to_owned(),
        Some(readers) => readers.join(","),
    }
}

pub(super) async fn run(context: &Context, options: &Options) -> Result<Exit, Failure> {
    let secrets = object::all(&context.client()?, KIND).await?;
    let name = |secret: &Secret| format!("{KIND}/{}", secret.metadata.name);
    let list = List { columns: &COLUMNS, members: members::OBJECT, name };
    if context.list(Value::Array(secrets), &options.list, &list)? == 0 {
        context.note("no secrets: atlasctl secret set NAME");
    }
    Ok(Exit::Done)
}
