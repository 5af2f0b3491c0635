//! `atlasctl edit`: opens an object in an editor and applies the changes.

mod object;

use std::path::Path;

use atlas_contract::yaml as reader;
use serde_json::{Value, json};

use crate::client::Client;
use crate::command::agent::named;
use crate::command::apply::{Comparison, Wanted, applicable, change, compare, object_of};
use crate::command::generic::{Kind, Target, one};
use crate::context::Context;
use crate::difference;
use crate::editor::Draft;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::{Shown, yaml};
use crate::words;

/// Options of `atlasctl edit`.
#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// Kind: agent, node or a kind of object, such as webhook; or KIND/NAME.
    #[arg(value_name = "KIND")]
    target: Target,
    /// Name; for agents NAME or NAME@VERSION.
    name: Option<String>,
    /// Print what would change, without changing anything.
    #[arg(long)]
    dry_run: bool,
}

pub(crate) async fn run(context: &Context, options: &Options) -> Result<Exit, Failure> {
    let name = one(&options.target, options.name.as_deref(), "edit")?;
    if let Kind::Object(kind) = options.target.kind {
        return object::run(context, kind, name, options.dry_run).await;
    }
    let client = context.client()?;
    let (object, editable) = fetch(&client, options.target.kind, name).await?;
    let head = format!("# Editable fields: {}.\n", editable.join(" and "));
    let draft = Draft::new("yaml", &(head + &yaml(&object)))?;
    let text = draft.edit()?;
    let (name, changes) = match apply(&client, &object, editable, (draft.path(), &text), options.dry_run).await {
        Ok(applied) => applied,
        Err(failure) => {
            context.note(&format!("your edit is kept in {}", draft.path().display()));
            return Err(failure);
        }
    };
    draft.remove();
    let word = if changes.is_empty() { "unchanged" } else { "changed" };
    let dry = if options.dry_run && !changes.is_empty() { " (dry run)" } else { "" };
    let text = format!("{name}  {word}{dry}\n{}", difference::text(&changes));
    let value = json!([{"name": name, "result": word}]);
    context.show(&Shown { value, text, names: vec![name] })?;
    Ok(Exit::Done)
}

/// The object as the editor shows it, and its editable members.
async fn fetch(client: &Client, kind: Kind, name: &str) -> Result<(Value, &'static [&'static str]), Failure> {
    match kind {
        Kind::Node => Ok((client.get(&["api", "nodes", name], &[]).await?, &["cordoned", "operator_labels"])),
        Kind::Agent => {
            let (name, requirement) = named(name);
            let query: Vec<(&str, &str)> = requirement.iter().map(|text| ("version", *text)).collect();
            let mut agent = client.get(&["api", "agents", name], &query).await?;
            if let Some(members) = agent.as_object_mut() {
                // These members come from the package and cannot be edited: a different contract needs a new version.
                members.retain(|name, _| !["contract", "input_schema", "output_schema"].contains(&name.as_str()));
            }
            Ok((agent, &["deprecated", "retired"]))
        }
        Kind::Job | Kind::Controller | Kind::Object(_) => {
            let failure = Failure::usage(format!("a {kind} cannot be edited"));
            Err(failure.with_next("edit a node or an agent: atlasctl edit node NAME"))
        }
    }
}

/// Applies the edited file; returns the name of the object and the changes.
async fn apply(
    client: &Client,
    object: &Value,
    editable: &[&str],
    (path, text): (&Path, &str),
    dry_run: bool,
) -> Result<(String, Vec<difference::Change>), Failure> {
    let wanted = read(object, editable, text).map_err(|why| {
        let failure = Failure::new("E0125", Exit::Invalid, format!("\"{}\" cannot be applied: {why}", path.display()));
        failure.with_next(format!("correct it, then: atlasctl apply -f {}", words::shell(&path.display().to_string())))
    })?;
    let name = wanted.name();
    let standing = compare(client, &wanted).await?;
    applicable(&wanted, &standing)?;
    let changes = match &standing {
        Comparison::Other(changes) => changes.clone(),
        Comparison::Same | Comparison::Missing => Vec::new(),
    };
    if !dry_run && !changes.is_empty() {
        change(client, wanted, &standing).await?;
    }
    Ok((name, changes))
}

/// The wanted object; fails if a fixed member was changed.
fn read(object: &Value, editable: &[&str], text: &str) -> Result<Wanted, String> {
    let edited = reader::load(text.as_bytes(), reader::Budget::default());
    let edited = edited.map_err(|error| atlas_env::chain(&error))?;
    let fixed = |change: &&difference::Change| {
        let member = change.place.split('/').nth(1).unwrap_or_default();
        !editable.contains(&member)
    };
    if let Some(change) = difference::between(object, &edited).iter().find(fixed) {
        let place = if change.place.is_empty() { "/" } else { &change.place };
        return Err(format!("{place} was changed; only {} can be changed", editable.join(" and ")));
    }
    object_of(&edited)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_means_something_can_be_changed() {
        let node = json!({"id": "laptop", "health": "ready", "cordoned": false, "operator_labels": {"zone": "a"}});
        let told = |text: &str| match read(&node, &["cordoned", "operator_labels"], text) {
            Ok(wanted) => wanted.name(),
            Err(why) => why,
        };
        assert_eq!(told("{id: laptop, health: ready, cordoned: yes}"), "node/laptop");
        assert_eq!(
            told("{id: laptop, health: ready, cordoned: no, operator_labels: {zone: b, rack: '7'}}"),
            "node/laptop"
        );
        assert_eq!(
            told("{id: other, health: ready, cordoned: yes}"),
            "/id was changed; only cordoned and operator_labels can be changed"
        );
        assert_eq!(
            told("{id: laptop, health: ready}"),
            "it is neither an agent, a node nor an object with kind, metadata and spec"
        );
        assert_eq!(told(""), "/ was changed; only cordoned and operator_labels can be changed");
        assert!(told("[").contains("line"), "{}", told("["));
    }
}
