//! `atlasctl auth bind`, `atlasctl auth unbind` and `atlasctl auth bindings`.

use std::collections::BTreeMap;

use atlas_api::types::ObjectMetadata;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::answers;
use crate::command::object;
use crate::context::Context;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::{Column, List, ListOptions, Shown, column, members};
use crate::words::shell;

/// The word of bindings in the API.
const KIND: &str = "binding";
/// How often a binding is changed again after another client changed it at the same time.
const TRIES_MAX: usize = 5;

/// Options of `atlasctl auth bind` and `atlasctl auth unbind`.
#[derive(Debug, clap::Args)]
#[group(skip)]
pub(crate) struct Options {
    /// Who: the principal of a token.
    #[arg(value_name = "WHO")]
    principal: String,
    /// viewer, submitter, operator, admin, or a role of the cluster.
    #[arg(value_name = "ROLE")]
    role: String,
    /// In the whole cluster, instead of one namespace (-n).
    #[arg(long)]
    cluster: bool,
}

/// Options of `atlasctl auth bind`.
#[derive(Debug, clap::Args)]
#[group(skip)]
pub(crate) struct BindOptions {
    #[command(flatten)]
    grant: Options,
    /// What else is known of WHO, such as team=people; rules of document bases compare it. Can be repeated; an empty value removes the name.
    #[arg(long, value_name = "NAME=VALUE")]
    attribute: Vec<String>,
}

/// Options of `atlasctl auth bindings`.
#[derive(Debug, clap::Args)]
#[group(skip)]
pub(crate) struct ListOptionsOfBindings {
    #[command(flatten)]
    list: ListOptions,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Binding {
    metadata: ObjectMetadata,
    spec: Spec,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Spec {
    grants: Vec<Grant>,
    attributes: Attributes,
}

/// What is known of a principal besides its name.
type Attributes = BTreeMap<String, Vec<String>>;

/// A role in a place.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Grant {
    role: String,
    namespace: Option<String>,
}

const COLUMNS: [Column<Binding>; 2] = [
    column("WHO", "metadata", |binding, _| binding.metadata.name.clone()),
    column("ROLES", "spec", |binding, _| shown_spec(&binding.spec)),
];

/// Roles with their places, in words.
pub(super) fn roles(grants: &[Grant]) -> String {
    let shown = |grant: &Grant| match &grant.namespace {
        Some(namespace) => format!("{} in {namespace}", grant.role),
        None => format!("{} in the cluster", grant.role),
    };
    grants.iter().map(shown).collect::<Vec<_>>().join(", ")
}

/// `viewer in the cluster; team=people`
fn shown_spec(spec: &Spec) -> String {
    let parts = [roles(&spec.grants), shown_attributes(&spec.attributes)];
    parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("; ")
}

/// `team=people, team=law`
fn shown_attributes(attributes: &Attributes) -> String {
    let of = |(name, values): (&String, &Vec<String>)| {
        values.iter().map(|value| format!("{name}={value}")).collect::<Vec<_>>().join(", ")
    };
    attributes.iter().map(of).collect::<Vec<_>>().join(", ")
}

/// Reads `NAME=VALUE` words: the values of each name, none to remove it.
pub(super) fn read_attributes(words: &[String]) -> Result<Attributes, Failure> {
    let mut read = Attributes::new();
    for word in words {
        let pair = word.split_once('=').filter(|(name, _)| !name.is_empty());
        let (name, value) = pair.ok_or_else(|| Failure::usage(format!("--attribute {word} is not NAME=VALUE")))?;
        let values = read.entry(name.to_owned()).or_default();
        values.extend((!value.is_empty()).then(|| value.to_owned()));
    }
    Ok(read)
}

pub(super) async fn list(context: &Context, options: &ListOptionsOfBindings) -> Result<Exit, Failure> {
    let bindings = object::all(&context.client()?, KIND).await?;
    let name = |binding: &Binding| format!("{KIND}/{}", binding.metadata.name);
    let list = List { columns: &COLUMNS, members: members::OBJECT, name };
    if context.list(Value::Array(bindings), &options.list, &list)? == 0 {
        context.note("nobody is granted anything: atlasctl auth bind WHO ROLE --cluster");
    }
    Ok(Exit::Done)
}

pub(super) async fn grant(context: &Context, options: &BindOptions) -> Result<Exit, Failure> {
    let BindOptions { grant: options, attribute } = options;
    let grant = wanted(context, options)?;
    let wanted = read_attributes(attribute)?;
    change(context, options, |grants, attributes| {
        if !grants.contains(&grant) {
            grants.push(grant.clone());
        }
        attributes.extend(wanted.clone());
        attributes.retain(|_, values| !values.is_empty());
        true
    })
    .await
}

pub(super) async fn revoke(context: &Context, options: &Options) -> Result<Exit, Failure> {
    let grant = wanted(context, options)?;
    change(context, options, |grants, _| {
        let before = grants.len();
        grants.retain(|known| *known != grant);
        grants.len() < before
    })
    .await
}

/// The grant that the arguments name. A place has to be named: nobody should grant a role in the whole cluster by leaving a word out.
fn wanted(context: &Context, options: &Options) -> Result<Value, Failure> {
    let client = context.client()?;
    match (client.namespace(), options.cluster) {
        (Some(namespace), false) => Ok(json!({"namespace": namespace, "role": options.role})),
        (None, true) => Ok(json!({"role": options.role})),
        (Some(_), true) => Err(Failure::usage("a role is granted in one namespace (-n) or with --cluster, not both")),
        (None, false) => {
            let (who, role) = (shell(&options.principal), shell(&options.role));
            let next = format!("write: atlasctl auth bind {who} {role} -n NAMESPACE   or: --cluster");
            Err(Failure::usage("in which namespace?").with_next(next))
        }
    }
}

/// Changes the grants of a principal; `change` says whether there was something to change.
async fn change(
    context: &Context,
    options: &Options,
    change: impl Fn(&mut Vec<Value>, &mut Attributes) -> bool,
) -> Result<Exit, Failure> {
    // Bindings belong to the cluster, whatever the namespace of the grant.
    let client = context.client()?.in_namespace(None);
    let path = ["api", "objects", KIND, &options.principal];
    for tried in 1.. {
        let stored = match client.get(&path, &[]).await {
            Ok(stored) => Some(stored),
            Err(failure) if failure.exit == Exit::NotFound => None,
            Err(failure) => return Err(failure),
        };
        let grants = stored.as_ref().and_then(|stored| stored["spec"]["grants"].as_array().cloned());
        let mut grants = grants.unwrap_or_default();
        let attributes = stored.as_ref().map(|stored| &stored["spec"]["attributes"]).filter(|known| known.is_object());
        let mut attributes: Attributes = attributes.map(answers::read).transpose()?.unwrap_or_default();
        if !change(&mut grants, &mut attributes) {
            let message = format!("\"{}\" does not have this role there", options.principal);
            let failure = Failure::new("E1115", Exit::NotFound, message);
            return Err(failure.with_next("list who has what: atlasctl auth bindings"));
        }
        let labels = stored.as_ref().map_or_else(|| json!({}), |stored| stored["metadata"]["labels"].clone());
        let mut spec = json!({"grants": grants});
        // A controller of an earlier version does not know the member.
        if !attributes.is_empty() {
            spec["attributes"] = json!(attributes);
        }
        let body = json!({"labels": labels, "spec": spec});
        let put = match &stored {
            Some(stored) => client.put_revision(&path, &[], &body, object::revision(stored)).await,
            None => client.put_new(&path, &[], &body).await,
        };
        match put {
            Err(failure) if object::is_conflict(&failure) && tried < TRIES_MAX => {}
            Err(failure) => return Err(failure),
            Ok(value) => return show(context, options, value),
        }
    }
    Ok(Exit::Done)
}

fn show(context: &Context, options: &Options, value: Value) -> Result<Exit, Failure> {
    let binding: Binding = answers::read(&value)?;
    let names = vec![format!("{KIND}/{}", options.principal)];
    let spec = shown_spec(&binding.spec);
    let spec = if spec.is_empty() { "nothing".to_owned() } else { spec };
    context.show(&Shown { value, text: format!("{}  {spec}\n", options.principal), names })?;
    Ok(Exit::Done)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attributes_are_pairs() {
        let read = |words: &[&str]| read_attributes(&words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>());
        let known = read(&["team=people", "team=law", "site=north"]).expect("pairs");
        assert_eq!(shown_attributes(&known), "site=north, team=people, team=law");
        assert_eq!(read(&["team="]).expect("a name")["team"], Vec::<String>::new());
        assert!(read(&["team"]).is_err() && read(&["=people"]).is_err());
    }
}
