//! `atlasctl auth whoami`.

use std::fmt::Write as _;

use serde_json::Value;

use crate::context::Context;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::Shown;

pub(super) async fn run(context: &Context) -> Result<Exit, Failure> {
    let value = context.client()?.get(&["api", "auth", "whoami"], &[]).await?;
    let principal = value["principal"].as_str().unwrap_or_default();
    let mut text = format!("{principal}\n");
    if value["authenticated"] == Value::Bool(false) {
        text.push_str("  may do everything: authentication is off\n");
    } else {
        let grants = value["grants"].as_array().map(Vec::as_slice).unwrap_or_default();
        if grants.is_empty() {
            text.push_str("  is granted nothing\n");
        }
        for grant in grants {
            let place = match grant["namespace"].as_str() {
                Some(namespace) => format!("in {namespace}"),
                None => "in the cluster".to_owned(),
            };
            let rights: Vec<&str> =
                grant["rights"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
            // Writing to a text cannot fail.
            let _ = writeln!(text, "  {place}: {}", rights.join(", "));
        }
    }
    for (name, values) in value["attributes"].as_object().into_iter().flatten() {
        let values: Vec<&str> = values.as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        // Writing to a text cannot fail.
        let _ = writeln!(text, "  {name}: {}", values.join(", "));
    }
    let names = vec![format!("principal/{principal}")];
    context.show(&Shown { value, text, names })?;
    Ok(Exit::Done)
}
