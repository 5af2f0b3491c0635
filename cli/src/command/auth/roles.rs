//! `atlasctl auth roles`.

use std::fmt::Write as _;

use atlas_access::{BUILT_IN, Right};
use serde_json::{Value, json};

use crate::command::object;
use crate::context::Context;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::Shown;

pub(super) async fn run(context: &Context) -> Result<Exit, Failure> {
    let mut roles: Vec<(String, Vec<String>)> = BUILT_IN
        .into_iter()
        .map(|(name, rights)| (name.to_owned(), rights.iter().map(Right::as_str).map(str::to_owned).collect()))
        .collect();
    for role in object::all(&context.client()?, "role").await? {
        let rights = role["spec"]["rights"].as_array().into_iter().flatten().filter_map(Value::as_str);
        let name = role["metadata"]["name"].as_str().unwrap_or_default();
        roles.push((name.to_owned(), rights.map(str::to_owned).collect()));
    }
    let mut text = String::new();
    for (name, rights) in &roles {
        // Writing to a text cannot fail.
        let _ = writeln!(text, "{name}\n  {}", rights.join(", "));
    }
    let names = roles.iter().map(|(name, _)| format!("role/{name}")).collect();
    let value = roles.into_iter().map(|(name, rights)| json!({"name": name, "rights": rights})).collect();
    context.show(&Shown { value, text, names })?;
    Ok(Exit::Done)
}
