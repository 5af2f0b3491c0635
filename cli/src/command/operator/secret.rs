//! `atlasctl operator secret`: what a new cluster in Kubernetes needs to know, in one Secret.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use atlas_access::{ROOT, token};
use atlas_env::Env;
use atlas_tls::{AUTHORITY, AUTHORITY_KEY, Authority, GroupToken};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use clap::ValueEnum;
use serde_json::{Value, json};

use super::init::failed;
use crate::client::{Client, Trust};
use crate::context::Context;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::Shown;
use crate::words::could_not;

/// The root token, the key of secrets, and the join token of workers.
const ROOT_TOKEN: &str = "root.token";
const SECRETS_KEY: &str = "secrets.key";
const GROUP_TOKEN: &str = "group.token";
/// Bytes of a key of secrets.
const SECRETS_KEY_BYTES: usize = 32;
/// The largest file of a service account that is read.
const ACCOUNT_BYTES_MAX: u64 = 64 << 10;

/// How controllers and workers of the cluster are encrypted, as `tls.mode` of the chart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Tls {
    /// The secret has the cluster's certificate and its key.
    Builtin,
    /// cert-manager makes the certificate and its key.
    CertManager,
    /// Nothing is encrypted.
    Off,
}

impl Tls {
    /// What a secret must have.
    fn keys(self) -> &'static [&'static str] {
        match self {
            Self::Builtin => &[ROOT_TOKEN, SECRETS_KEY, GROUP_TOKEN, AUTHORITY, AUTHORITY_KEY],
            Self::CertManager => &[ROOT_TOKEN, SECRETS_KEY, GROUP_TOKEN],
            Self::Off => &[ROOT_TOKEN, SECRETS_KEY],
        }
    }
}

/// Options of `atlasctl operator secret`.
#[derive(Debug, clap::Args)]
#[group(skip)]
pub(crate) struct Options {
    /// Name of the Secret.
    #[arg(value_name = "NAME", value_parser = clap::builder::NonEmptyStringValueParser::new())]
    name: String,
    /// How controllers and workers are encrypted, as tls.mode of the chart.
    #[arg(long, value_name = "MODE", value_enum, default_value = "builtin")]
    tls: Tls,
    /// Print only these keys, as a patch for a Secret that lacks them; the others stay as they are.
    #[arg(long, value_name = "KEY", value_delimiter = ',', conflicts_with = "create")]
    only: Vec<String>,
    /// Create the Secret in the namespace of this pod; one that exists is only checked. Otherwise its manifest is printed.
    #[arg(long)]
    create: bool,
    /// Address of the API server of Kubernetes, for --create.
    #[arg(long, value_name = "URL", default_value = "https://kubernetes.default.svc")]
    api_server: String,
    /// Folder with ca.crt, namespace and token of the pod's service account, for --create.
    #[arg(long, value_name = "DIR", default_value = "/var/run/secrets/kubernetes.io/serviceaccount")]
    account: PathBuf,
}

pub(super) async fn run(context: &Context, options: &Options) -> Result<Exit, Failure> {
    let names = || vec![format!("secret/{}", options.name)];
    if !options.only.is_empty() {
        let patch = patch(options)?;
        let text = format!("{patch:#}\n");
        context.show(&Shown { value: patch, text, names: names() })?;
        context.note("whoever reads this joins the cluster");
        context.next(&format!("next: kubectl -n NAMESPACE patch secret {} -p \"$(cat FILE)\"", options.name));
        return Ok(Exit::Done);
    }
    if !options.create {
        let manifest = manifest(&options.name, options.tls)?;
        let text = format!("{manifest:#}\n");
        context.show(&Shown { value: manifest, text, names: names() })?;
        context.note("whoever reads this is root in the cluster");
        context.next("next: pipe it into kubectl -n NAMESPACE create -f -");
        return Ok(Exit::Done);
    }
    let made = Pod::open(options)?.create().await?;
    let what = if made { "was created" } else { "exists already and has what is needed" };
    context.note(&format!("secret {} {what}", options.name));
    context.show(&Shown {
        value: json!({ "name": options.name, "created": made }),
        text: String::new(),
        names: names(),
    })?;
    Ok(Exit::Done)
}

/// A new secret. Each one has other values.
fn manifest(name: &str, tls: Tls) -> Result<Value, Failure> {
    let env = Env::system();
    let random = || std::array::from_fn(|_| env.entropy.u64());
    let key: Vec<u8> = (0..SECRETS_KEY_BYTES / 8).flat_map(|_| env.entropy.u64().to_be_bytes()).collect();
    let mut texts = BTreeMap::from([
        (ROOT_TOKEN, format!("{}\n", token(ROOT, random()))),
        (SECRETS_KEY, format!("{}\n", STANDARD.encode(key))),
        (GROUP_TOKEN, format!("{}\n", GroupToken::new(random()).text())),
    ]);
    if tls == Tls::Builtin {
        let authority = Authority::new(env.clock.wall().0 / 1_000_000).map_err(|error| failed(&error))?;
        texts.insert(AUTHORITY, authority.pem());
        texts.insert(AUTHORITY_KEY, authority.key_pem().to_string());
    }
    let data = |key: &&str| ((*key).to_owned(), Value::from(STANDARD.encode(&texts[*key])));
    let data: serde_json::Map<String, Value> = tls.keys().iter().map(data).collect();
    let metadata = json!({ "name": name, "labels": { "app.kubernetes.io/name": "atlas" } });
    Ok(json!({ "apiVersion": "v1", "kind": "Secret", "type": "Opaque", "metadata": metadata, "data": data }))
}

/// The keys that a secret lacks, new ones.
fn patch(options: &Options) -> Result<Value, Failure> {
    let known = options.tls.keys();
    if let Some(unknown) = options.only.iter().find(|key| !known.contains(&key.as_str())) {
        return Err(Failure::usage(format!("\"{unknown}\" is no key of this secret: {}", known.join(", "))));
    }
    let asks = |key: &str| options.only.iter().any(|only| only == key);
    if asks(AUTHORITY) != asks(AUTHORITY_KEY) {
        return Err(Failure::usage(format!("{AUTHORITY} and {AUTHORITY_KEY} belong together: name both")));
    }
    let mut manifest = manifest(&options.name, options.tls)?;
    let mut data = manifest["data"].take();
    if let Some(data) = data.as_object_mut() {
        data.retain(|key, _| asks(key));
    }
    Ok(json!({ "data": data }))
}

/// The API server of Kubernetes, as this pod reaches it.
struct Pod<'a> {
    options: &'a Options,
    client: Client,
    namespace: String,
}

impl<'a> Pod<'a> {
    fn open(options: &'a Options) -> Result<Self, Failure> {
        let read = |name: &str| account(&options.account.join(name));
        let client = Client::trusting(&options.api_server, &Trust::File(options.account.join("ca.crt")))?;
        Ok(Self { options, client: client.with_token(Some(&read("token")?))?, namespace: read("namespace")? })
    }

    /// Creates the secret; false if there is one. It may have been made by another release of the chart or by a person, so it is
    /// never changed: without its keys, what they sealed is lost.
    async fn create(&self) -> Result<bool, Failure> {
        let Options { name, tls, .. } = self.options;
        let secrets = ["api", "v1", "namespaces", &self.namespace, "secrets"];
        // A secret that exists is no reason to make keys, and asking for it first needs fewer rights.
        let path = [&secrets[..], &[name.as_str()]].concat();
        match self.client.get(&path, &[]).await {
            Ok(secret) => self.check(&secret).map(|()| false),
            Err(failure) if failure.exit == Exit::NotFound => {
                match self.client.post(&secrets, &[], &manifest(name, *tls)?).await {
                    Ok(_) => Ok(true),
                    // Another pod was faster.
                    Err(failure) if failure.exit == Exit::Conflict => {
                        let secret = self.client.get(&path, &[]).await.map_err(|failure| self.refused(&failure))?;
                        self.check(&secret).map(|()| false)
                    }
                    Err(failure) => Err(self.refused(&failure)),
                }
            }
            Err(failure) => Err(self.refused(&failure)),
        }
    }

    /// Refuses a secret that lacks a key.
    fn check(&self, secret: &Value) -> Result<(), Failure> {
        let lacks = |key: &&&str| secret["data"][**key].as_str().is_none_or(str::is_empty);
        let missing: Vec<&str> = self.options.tls.keys().iter().filter(lacks).copied().collect();
        if missing.is_empty() {
            return Ok(());
        }
        let name = &self.options.name;
        let text = format!("secret \"{name}\" exists and has no {}; it is not changed", missing.join(", "));
        let only = missing.join(",");
        let next = format!(
            "\"atlasctl operator secret {name} --only {only}\" makes what is missing and says how to add it; or choose another tls.mode"
        );
        Err(Failure::usage(text).with_next(next))
    }

    /// Without the hints for controllers of Atlas.
    fn refused(&self, failure: &Failure) -> Failure {
        let (name, namespace) = (&self.options.name, &self.namespace);
        let reason = failure.message.replace("could not reach Atlas at", "could not reach");
        let mut refused =
            Failure::usage(format!("could not create the secret \"{name}\" in \"{namespace}\": {reason}"));
        refused.exit = failure.exit;
        refused.with_next("the service account of this pod needs the rights to create secrets, and to get this one")
    }
}

/// One line of a service account.
fn account(path: &Path) -> Result<String, Failure> {
    let failed = |error| could_not("read", path, &error);
    Ok(atlas_env::read_text(path, ACCOUNT_BYTES_MAX).map_err(failed)?.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_manifest_has_what_each_way_needs() {
        let keys = |tls| {
            let manifest = manifest("atlas-auth", tls).expect("a manifest");
            let data = manifest["data"].as_object().expect("data").clone();
            let decoded = |value: &Value| STANDARD.decode(value.as_str().expect("text")).expect("base64");
            data.iter().map(|(key, value)| (key.clone(), String::from_utf8(decoded(value)).expect("text"))).collect()
        };
        let all: BTreeMap<String, String> = keys(Tls::Builtin);
        assert!(all[ROOT_TOKEN].starts_with("atl_root_"), "a root token");
        assert_eq!(STANDARD.decode(all[SECRETS_KEY].trim()).expect("base64").len(), SECRETS_KEY_BYTES);
        GroupToken::read(&all[GROUP_TOKEN]).expect("a token of a group");
        let folder = tempfile::tempdir().expect("a folder");
        for name in [AUTHORITY, AUTHORITY_KEY] {
            atlas_tls::write_private(&folder.path().join(name), &all[name]).expect("written");
        }
        Authority::read(folder.path()).expect("an authority");
        let other: BTreeMap<String, String> = keys(Tls::CertManager);
        assert_eq!(other.keys().collect::<Vec<_>>(), [GROUP_TOKEN, ROOT_TOKEN, SECRETS_KEY]);
        assert_ne!(other[ROOT_TOKEN], all[ROOT_TOKEN]);
        let options = |only: &[&str]| Options {
            name: "atlas-auth".to_owned(),
            tls: Tls::Builtin,
            only: only.iter().map(|key| (*key).to_owned()).collect(),
            create: false,
            api_server: String::new(),
            account: PathBuf::new(),
        };
        let patched = patch(&options(&[GROUP_TOKEN, AUTHORITY, AUTHORITY_KEY])).expect("a patch");
        let patched: Vec<_> = patched["data"].as_object().expect("data").keys().cloned().collect();
        assert_eq!(patched, [GROUP_TOKEN, AUTHORITY, AUTHORITY_KEY], "nothing that the secret has");
        for (only, why) in [(AUTHORITY, "belong together"), ("token", "is no key of this secret")] {
            let refused = patch(&options(&[only])).expect_err("refused");
            assert!(refused.message.contains(why), "{}", refused.message);
        }
        assert_eq!(keys(Tls::Off).into_keys().collect::<Vec<String>>(), [ROOT_TOKEN, SECRETS_KEY]);
    }
}
