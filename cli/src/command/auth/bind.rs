//! `atlasctl auth bind`, `atlasctl auth unbind` and `atlasctl auth bindings`.

use atlas_api::types::ObjectMetadata;
use serde::Deserialize;
use serde_json::{Value, json};

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
}

/// A role in a place.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Grant {
    role: String,
    namespace: Option<String>,
}

const COLUMNS: [Column<Binding>; 2] = [
    column("WHO", "metadata", |binding, _| binding.metadata.name.clone()),
    column("ROLES", "spec", |binding, _| roles(&binding.spec.grants)),
];

/// Roles with their places, in words.
pub(super) fn roles(grants: &[Grant]) -> String {
    let shown = |grant: &Grant| match &grant.namespace {
        Some(namespace) => format!("{} in {namespace}", grant.role),
        None => format!("{} in the cluster", grant.role),
    };
    grants.iter().map(shown).collect::<Vec<_>>().join(", ")
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

pub(super) async fn grant(context: &Context, options: &Options) -> Result<Exit, Failure> {
    let grant = wanted(context, options)?;
    change(context, options, |grants| {
        if !grants.contains(&grant) {
            grants.push(grant.clone());
        }
        true
    })
    .await
}

pub(super) async fn revoke(context: &Context, options: &Options) -> Result<Exit, Failure> {
    let grant = wanted(context, options)?;
    change(context, options, |grants| {
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
    change: impl Fn(&mut Vec<Value>) -> bool,
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
        if !change(&mut grants) {
            let message = format!("\"{}\" does not have this role there", options.principal);
            let failure = Failure::new("E1115", Exit::NotFound, message);
            return Err(failure.with_next("list who has what: atlasctl auth bindings"));
        }
        let labels = stored.as_ref().map_or_else(|| json!({}), |stored| stored["metadata"]["labels"].clone());
        let body = json!({"labels": labels, "spec": {"grants": grants}});
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
    let binding: Binding = crate::answers::read(&value)?;
    let names = vec![format!("{KIND}/{}", options.principal)];
    let roles = roles(&binding.spec.grants);
    let roles = if roles.is_empty() { "nothing".to_owned() } else { roles };
    context.show(&Shown { value, text: format!("{}  {roles}\n", options.principal), names })?;
    Ok(Exit::Done)
}
