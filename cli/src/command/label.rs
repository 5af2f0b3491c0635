//! `atlasctl label`: adds and removes labels of an object or a node.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::answers;
use crate::client::Client;
use crate::command::generic::{Kind, Target, one};
use crate::command::{node, object};
use crate::context::Context;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::Shown;
use crate::words;

/// How often a change is tried if others change the object at the same time.
const TRIES: u32 = 5;

/// Options of `atlasctl label`.
#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// Kind: node or a kind of object, such as webhook; or KIND/NAME.
    #[arg(value_name = "KIND")]
    target: Target,
    /// Name, unless it is given with the kind; then KEY=VALUE to add a label or KEY- to remove one, repeatable.
    #[arg(required = true, value_name = "NAME|KEY=VALUE|KEY-")]
    words: Vec<String>,
}

/// A label to add or to remove.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::command) struct Label {
    pub(in crate::command) key: String,
    /// None removes the label.
    pub(in crate::command) value: Option<String>,
}

/// Reads `KEY=VALUE` or `KEY-`.
pub(in crate::command) fn parse(text: &str) -> Result<Label, String> {
    let (key, value) = match text.split_once('=') {
        Some((key, value)) => (key, Some(value.to_owned())),
        None => (text.strip_suffix('-').unwrap_or_default(), None),
    };
    if key.is_empty() || key.ends_with('-') {
        return Err(format!("\"{text}\" is neither KEY=VALUE nor KEY-"));
    }
    Ok(Label { key: key.to_owned(), value })
}

/// Labels by key; a key that is given twice is refused.
pub(in crate::command) fn by_key(labels: &[Label]) -> Result<BTreeMap<&str, Option<&str>>, Failure> {
    let mut changes = BTreeMap::new();
    for Label { key, value } in labels {
        if changes.insert(key.as_str(), value.as_deref()).is_some() {
            return Err(Failure::usage(format!("the label \"{key}\" is given twice")));
        }
    }
    Ok(changes)
}

pub(crate) async fn run(context: &Context, options: &Options) -> Result<Exit, Failure> {
    let kind = options.target.kind;
    let (first, rest) = options.words.split_first().map_or((None, &[][..]), |(first, rest)| (Some(first), rest));
    let named_before = options.target.has_name();
    let name = one(&options.target, first.map(String::as_str), "label")?;
    let words = if named_before { &options.words[..] } else { rest };
    let labels: Vec<Label> = words.iter().map(|word| parse(word)).collect::<Result<_, _>>().map_err(Failure::usage)?;
    if labels.is_empty() {
        return Err(
            Failure::usage("no label given").with_next(format!("write: atlasctl label {kind} {name} KEY=VALUE"))
        );
    }
    match kind {
        Kind::Node => node::label::change(context, name, &labels).await,
        Kind::Object(kind) => of_object(context, kind, name, &by_key(&labels)?).await,
        Kind::Job | Kind::Agent | Kind::Controller => {
            let failure = Failure::usage(format!("labels of a {kind} cannot be changed"));
            Err(failure.with_next("jobs get labels from run --label, agents from their contract"))
        }
    }
}

async fn of_object(
    context: &Context,
    kind: &str,
    name: &str,
    changes: &BTreeMap<&str, Option<&str>>,
) -> Result<Exit, Failure> {
    let client = context.client()?;
    let mut tries = 0;
    let value = loop {
        tries += 1;
        match try_once(&client, kind, name, changes).await {
            // Somebody changed the object since it was read, so the labels are added to its new version.
            Err(failure) if object::is_conflict(&failure) && tries < TRIES => {}
            done => break done?,
        }
    };
    let labels = words::labels(&answers::read(&value["metadata"]["labels"])?);
    let text = format!("{kind}/{name}   {}\n", if labels.is_empty() { "no labels" } else { &labels });
    context.show(&Shown { value, text, names: vec![format!("{kind}/{name}")] })?;
    Ok(Exit::Done)
}

async fn try_once(
    client: &Client,
    kind: &str,
    name: &str,
    changes: &BTreeMap<&str, Option<&str>>,
) -> Result<Value, Failure> {
    let path = ["api", "objects", kind, name];
    let found = client.get(&path, &[]).await?;
    let mut labels = found["metadata"]["labels"].clone();
    if let Some(members) = labels.as_object_mut() {
        for (key, value) in changes {
            match value {
                Some(value) => drop(members.insert((*key).to_owned(), json!(value))),
                None => drop(members.remove(*key)),
            }
        }
    }
    let body = json!({ "labels": labels, "spec": found["spec"] });
    client.put_revision(&path, &[], &body, object::revision(&found)).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_give_labels_and_take_them_away() {
        let label = |key: &str, value: Option<&str>| Ok(Label { key: key.to_owned(), value: value.map(str::to_owned) });
        assert_eq!(parse("zone=b"), label("zone", Some("b")));
        assert_eq!(parse("zone="), label("zone", Some("")));
        assert_eq!(parse("a=b=c-"), label("a", Some("b=c-")));
        assert_eq!(parse("zone-"), label("zone", None));
        assert_eq!(parse("my-zone-"), label("my-zone", None));
        for wrong in ["", "-", "=b", "zone", "zone--", "zone-=b"] {
            assert!(parse(wrong).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn a_key_is_given_once() {
        let labels = ["a=1", "b-", "a-"].map(|text| parse(text).expect("a label"));
        assert_eq!(by_key(&labels[..2]).expect("two keys"), BTreeMap::from([("a", Some("1")), ("b", None)]));
        assert!(by_key(&labels).is_err());
    }
}
