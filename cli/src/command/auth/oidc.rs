//! `atlasctl auth oidc`: issuers of OpenID Connect whose tokens let people and programs in.

use std::collections::BTreeMap;

use atlas_api::types::ObjectMetadata;
use serde::Deserialize;
use serde_json::{Value, json};

use super::bind::{Grant, read_attributes, roles};
use crate::command::object;
use crate::context::Context;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::names;
use crate::output::{Column, List, ListOptions, Shown, column, members, wide};
use crate::words::shell;

/// The word of issuers in the API.
const KIND: &str = "issuer";

/// Verbs of `atlasctl auth oidc`.
#[derive(Debug, clap::Subcommand)]
pub(crate) enum Verb {
    /// Accepts the tokens of an issuer, or changes which of them are accepted.
    Set(SetOptions),
    /// Lists issuers.
    List(Options),
    /// Shows one issuer.
    Show(Names),
    /// Removes issuers: their tokens are refused from now on.
    Remove(Names),
}

/// Options of `atlasctl auth oidc set`.
#[derive(Debug, clap::Args)]
#[group(skip)]
pub(crate) struct SetOptions {
    /// The issuer's name here, with which the names of its principals begin: letters, digits and hyphens.
    #[arg(value_name = "NAME")]
    name: String,
    /// The issuer's address, as its tokens name it (`iss`).
    #[arg(long, value_name = "URL")]
    url: String,
    /// Whom its tokens are for (`aud`), usually the id of this cluster at the issuer; repeatable.
    #[arg(long = "audience", value_name = "TEXT", required = true)]
    audiences: Vec<String>,
    /// The claim that names who shows a token: one whose value nobody but the issuer chooses.
    #[arg(long, value_name = "CLAIM", default_value = "sub")]
    principal_claim: String,
    /// A claim that a token must have with this value; repeatable: values of one claim are alternatives.
    #[arg(long = "claim", value_name = "CLAIM=VALUE")]
    claims: Vec<String>,
    /// The client, without a secret, by which `atlasctl login` logs people in at the issuer.
    #[arg(long, value_name = "ID")]
    login_client: Option<String>,
    /// What is known of everybody with such a token, such as team=people; rules of document bases compare it. Repeatable.
    #[arg(long = "attribute", value_name = "NAME=VALUE")]
    attributes: Vec<String>,
    /// A role of everybody with such a token, in one namespace (-n) or with --cluster; repeatable.
    #[arg(long = "role", value_name = "ROLE")]
    roles: Vec<String>,
    /// The roles count in the whole cluster, instead of one namespace (-n).
    #[arg(long, requires = "roles")]
    cluster: bool,
}

/// Options of `atlasctl auth oidc list`.
#[derive(Debug, clap::Args)]
#[group(skip)]
pub(crate) struct Options {
    #[command(flatten)]
    list: ListOptions,
}

/// Names of issuers.
#[derive(Debug, clap::Args)]
#[group(skip)]
pub(crate) struct Names {
    /// The issuer's name.
    #[arg(value_name = "NAME", required = true)]
    names: Vec<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Issuer {
    metadata: ObjectMetadata,
    spec: Spec,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Spec {
    url: String,
    audiences: Vec<String>,
    principal_claim: String,
    claims: BTreeMap<String, Vec<String>>,
    grants: Vec<Grant>,
}

const COLUMNS: [Column<Issuer>; 6] = [
    column("NAME", "metadata", |issuer, _| issuer.metadata.name.clone()),
    column("URL", "spec", |issuer, _| issuer.spec.url.clone()),
    column("CLAIMS", "spec", |issuer, _| asked(&issuer.spec.claims)),
    column("ROLES", "spec", |issuer, _| roles(&issuer.spec.grants)),
    wide("AUDIENCES", "spec", |issuer, _| issuer.spec.audiences.join(", ")),
    wide("PRINCIPAL", "spec", |issuer, _| format!("{}:{}", issuer.metadata.name, issuer.spec.principal_claim)),
];

/// The claims that are asked for.
fn asked(claims: &BTreeMap<String, Vec<String>>) -> String {
    claims.iter().map(|(claim, values)| format!("{claim}={}", values.join("|"))).collect::<Vec<_>>().join(" ")
}

pub(super) async fn run(context: &Context, verb: &Verb) -> Result<Exit, Failure> {
    match verb {
        Verb::Set(options) => set(context, options).await,
        Verb::List(options) => {
            let name = |issuer: &Issuer| format!("{KIND}/{}", issuer.metadata.name);
            let list = List { columns: &COLUMNS, members: members::OBJECT, name };
            let none = "no issuers: atlasctl auth oidc set NAME --url URL --audience TEXT";
            object::list_as(context, KIND, &options.list, &list, none).await
        }
        Verb::Show(options) => {
            names::each(context, &options.names, async |name| object::show(context, KIND, name).await).await
        }
        Verb::Remove(options) => {
            names::each(context, &options.names, async |name| object::remove(context, KIND, name).await).await
        }
    }
}

async fn set(context: &Context, options: &SetOptions) -> Result<Exit, Failure> {
    let client = context.client()?;
    let spec = spec(options, client.namespace())?;
    // Issuers belong to the cluster, whatever the namespace of the roles.
    let client = client.in_namespace(None);
    let value = client.put(&["api", "objects", KIND, &options.name], &[], &json!({"spec": spec})).await?;
    let text = format!("{}  {}\n", options.name, options.url);
    context.show(&Shown { value, text, names: vec![format!("{KIND}/{}", options.name)] })?;
    let claim = shell(&options.principal_claim);
    context.next(&format!("next: atlasctl auth bind {}:{} viewer --cluster", options.name, claim.to_uppercase()));
    Ok(Exit::Done)
}

/// The spec that the options ask for.
fn spec(options: &SetOptions, namespace: Option<&str>) -> Result<Value, Failure> {
    let mut claims: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for text in &options.claims {
        let (claim, value) = text
            .split_once('=')
            .filter(|(claim, value)| !claim.is_empty() && !value.is_empty())
            .ok_or_else(|| Failure::usage(format!("\"{text}\" is not CLAIM=VALUE, such as groups=ops")))?;
        claims.entry(claim).or_default().push(value);
    }
    let place = match (namespace, options.cluster) {
        _ if options.roles.is_empty() => None,
        (Some(namespace), false) => Some(namespace),
        (None, true) => None,
        (Some(_), true) => {
            return Err(Failure::usage("roles are granted in one namespace (-n) or with --cluster, not both"));
        }
        (None, false) => {
            return Err(Failure::usage("in which namespace?").with_next("write: -n NAMESPACE   or: --cluster"));
        }
    };
    let grant = |role: &String| match place {
        Some(namespace) => json!({"role": role, "namespace": namespace}),
        None => json!({"role": role}),
    };
    let mut spec = json!({
        "url": options.url, "audiences": options.audiences, "principal_claim": options.principal_claim,
        "claims": claims, "grants": options.roles.iter().map(grant).collect::<Vec<_>>(),
    });
    if let Some(client) = &options.login_client {
        spec["login_client"] = client.as_str().into();
    }
    let mut attributes = read_attributes(&options.attributes)?;
    attributes.retain(|_, values| !values.is_empty());
    if !attributes.is_empty() {
        spec["attributes"] = json!(attributes);
    }
    Ok(spec)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(claims: &[&str], roles: &[&str], cluster: bool) -> SetOptions {
        let texts = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect();
        SetOptions {
            name: "corp".into(),
            url: "https://id.example".into(),
            audiences: vec!["atlas".into()],
            principal_claim: "email".into(),
            claims: texts(claims),
            login_client: None,
            attributes: Vec::new(),
            roles: texts(roles),
            cluster,
        }
    }

    #[test]
    fn options_become_a_spec() {
        let spec = |claims: &[&str], roles: &[&str], cluster, namespace| {
            spec(&options(claims, roles, cluster), namespace).map_err(|failure| failure.message)
        };
        let expected = json!({
            "url": "https://id.example", "audiences": ["atlas"], "principal_claim": "email",
            "claims": {"groups": ["ops", "a=b"], "hd": ["example"]},
            "grants": [{"role": "viewer", "namespace": "team-a"}],
        });
        assert_eq!(spec(&["groups=ops", "hd=example", "groups=a=b"], &["viewer"], false, Some("team-a")), Ok(expected));
        assert_eq!(
            spec(&[], &["admin"], true, None).map(|spec| spec["grants"].clone()),
            Ok(json!([{"role": "admin"}]))
        );
        assert_eq!(spec(&[], &[], false, Some("team-a")).map(|spec| spec["grants"].clone()), Ok(json!([])));
        for (claims, roles, cluster, namespace) in [
            (&["x"][..], &[][..], false, None),
            (&["=x"], &[], false, None),
            (&[], &["a"], false, None),
            (&[], &["a"], true, Some("n")),
        ] {
            assert!(spec(claims, roles, cluster, namespace).is_err(), "{claims:?} {roles:?} {cluster} {namespace:?}");
        }
    }
}
