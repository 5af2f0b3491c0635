//! `atlasctl login` and `atlasctl logout`: a person logs in at an issuer that the cluster trusts, and the context keeps the token.

use std::collections::BTreeMap;
use std::time::Duration;

use atlas_env::Env;
use atlas_oauth::{Device, Endpoints, Issuer, Login, Poll, issuer_urls};
use atlas_types::SecretText;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::answers;
use crate::browser::{self, Loopback};
use crate::client::{Client, IssuerClient};
use crate::config::Config;
use crate::context::Context;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output;
use crate::sign_in::{Given, SavedLogin, Shown, failed, now};
use crate::words;

/// What is asked for by default: who the person is, and a login that lasts.
const SCOPES: [&str; 4] = ["openid", "email", "profile", "offline_access"];

/// Options of `atlasctl login`.
#[derive(Debug, clap::Args)]
#[group(skip)]
pub(crate) struct Options {
    /// Address of the issuer, if the cluster trusts several.
    #[arg(long, value_name = "URL")]
    issuer: Option<String>,
    /// Client that is registered at the issuer, instead of the one that the cluster names.
    #[arg(long, value_name = "ID")]
    client_id: Option<String>,
    /// Scope to ask for, instead of openid, email, profile and offline_access; repeatable.
    #[arg(long = "scope", value_name = "SCOPE")]
    scopes: Vec<String>,
    /// Log in on another device: print a code, and the address where to type it.
    #[arg(long, conflicts_with_all = ["no_browser", "callback_port"])]
    device: bool,
    /// Port on this machine to which the browser comes back; defaults to a free one.
    #[arg(long, value_name = "PORT")]
    callback_port: Option<u16>,
    /// Print the address of the login page, and do not open a browser.
    #[arg(long)]
    no_browser: bool,
    /// Longest wait for the person.
    #[arg(long, value_name = "DURATION", default_value = "10m", value_parser = words::parse_duration)]
    timeout: Duration,
}

/// What the cluster says about its issuers.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Known {
    authorization_servers: Vec<String>,
    atlasctl_clients: BTreeMap<String, String>,
}

pub(crate) async fn run(context: &Context, options: &Options) -> Result<Exit, Failure> {
    let name = context_name(context)?;
    let client = context.anonymous()?;
    browser::private(&client)?;
    let (address, client_id) = issuer(&client, options).await?;
    let issuers = IssuerClient::new()?;
    let endpoints = endpoints(&issuers, &address, &client.base()).await?;
    let scopes = if options.scopes.is_empty() { SCOPES.map(str::to_owned).to_vec() } else { options.scopes.clone() };
    let issuer = Issuer {
        authorize_url: Some(endpoints.authorize_url.clone()),
        device_url: endpoints.device_url.clone(),
        scopes,
        ..Issuer::public(&client_id, &endpoints.token_url)
    };
    let given = if options.device {
        with_device(context, &issuers, &issuer, options.timeout).await?
    } else {
        with_browser(context, &issuers, (&issuer, &endpoints), options).await?
    };
    let (shown, token, who) = accepted(&client, &given).await?;
    let login = SavedLogin {
        issuer: endpoints.issuer,
        client_id,
        token_url: endpoints.token_url,
        shown,
        expires_at: given.end(shown),
        refresh_token: given.tokens.refresh.as_ref().map(|token| token.expose().to_owned()),
    };
    told(context, &name, &login, &who)?;
    save(&name, |entry| {
        entry.token = Some(token.expose().to_owned());
        entry.login = Some(login);
    })?;
    Ok(Exit::Done)
}

/// Removes the login from the context.
pub(crate) fn logout(context: &Context) -> Result<Exit, Failure> {
    let name = context_name(context)?;
    let had = context.config()?.context(&name)?.login.is_some();
    if !had {
        return Err(Failure::new("E3207", Exit::NotFound, format!("nobody has logged in with the context {name}")));
    }
    save(&name, |entry| (entry.token, entry.login) = (None, None))?;
    let text = format!("{name}   logged out   the issuer may keep the login: end it there as well\n");
    let value = json!({"context": name, "logged_in": false});
    context.show(&output::Shown { value, text, names: vec![format!("context/{name}")] })?;
    Ok(Exit::Done)
}

/// The context that keeps the login.
fn context_name(context: &Context) -> Result<String, Failure> {
    let (server, origin) = context.server()?;
    origin.strip_prefix("context ").map(str::to_owned).ok_or_else(|| {
        let failure = Failure::usage("a login is kept in a context, and none is used");
        failure.with_next(format!("add one: atlasctl context add NAME --server {server} --use"))
    })
}

/// Changes the context in the configuration file, as it is now.
fn save(name: &str, change: impl FnOnce(&mut crate::config::Entry)) -> Result<(), Failure> {
    let mut config = Config::read()?;
    config.context(name)?;
    config.contexts.entry(name.to_owned()).and_modify(change);
    config.write()
}

/// The issuer's address and the client there: as the options say, otherwise as the cluster says.
async fn issuer(client: &Client, options: &Options) -> Result<(String, String), Failure> {
    let known: Known = match client.get(&[".well-known", "oauth-protected-resource", "mcp"], &[]).await {
        Ok(value) => answers::read(&value)?,
        Err(failure) if failure.exit == Exit::NotFound => Known::default(),
        Err(failure) => return Err(failure),
    };
    chosen(&known, options.issuer.as_deref(), options.client_id.as_deref())
}

fn chosen(known: &Known, issuer: Option<&str>, client_id: Option<&str>) -> Result<(String, String), Failure> {
    let with_client = |url: &&String| client_id.is_some() || known.atlasctl_clients.contains_key(*url);
    let asked = |url: &&String| issuer.is_none_or(|issuer| issuer.trim_end_matches('/') == url.trim_end_matches('/'));
    let urls: Vec<&String> = known.authorization_servers.iter().filter(asked).collect();
    if urls.is_empty() {
        let failure = match issuer {
            Some(issuer) => Failure::new("E2106", Exit::Denied, format!("the cluster takes no tokens of {issuer}")),
            None => Failure::new("E2106", Exit::Denied, "nobody can log in: the cluster trusts no issuer"),
        };
        return Err(failure.with_next("ask an administrator: atlasctl auth oidc set NAME --url URL --audience TEXT"));
    }
    let able: Vec<&String> = urls.iter().copied().filter(with_client).collect();
    match able[..] {
        [url] => {
            let client = client_id.map(str::to_owned).or_else(|| known.atlasctl_clients.get(url).cloned());
            Ok((url.clone(), client.unwrap_or_default()))
        }
        [] => {
            let failure = Failure::usage("the cluster names no client for logins");
            Err(failure.with_next(format!("write: atlasctl login --issuer {} --client-id ID", urls[0])))
        }
        _ => {
            let all = able.iter().map(|url| url.as_str()).collect::<Vec<_>>().join(", ");
            Err(Failure::usage(format!("at which issuer? the cluster trusts {all}"))
                .with_next(format!("write: atlasctl login --issuer {}", able[0])))
        }
    }
}

/// Where the issuer has its pages.
async fn endpoints(issuers: &IssuerClient, address: &str, server: &str) -> Result<Endpoints, Failure> {
    let mut last = failed(&format!("the issuer {address} does not describe itself"));
    // That of OpenID Connect first: people log in, and the others are about programs.
    for url in issuer_urls(address).map_err(|error| failed(&error.message))?.iter().rev() {
        match issuers.get(url).await {
            Ok((200, body)) => {
                let server = server.split(',').next().unwrap_or_default();
                match Endpoints::of_people(&body, address, server) {
                    Ok(endpoints) => return Ok(endpoints),
                    Err(error) => last = failed(&error.message),
                }
            }
            Ok(_) => {}
            Err(failure) => last = failure,
        }
    }
    Err(last)
}

async fn with_browser(
    context: &Context,
    issuers: &IssuerClient,
    (issuer, endpoints): (&Issuer, &Endpoints),
    options: &Options,
) -> Result<Given, Failure> {
    let env = Env::system();
    let listener = Loopback::listen(&env, options.callback_port).await.map_err(|error| failed(&error))?;
    let login = Login::begin(listener.redirect_uri.clone(), &browser::random(&env))
        .of_issuer(endpoints.issuer.clone(), endpoints.names_issuer);
    browser::open(context, options.no_browser, &login.url(issuer).unwrap_or_default());
    let code = tokio::select! {
        biased;
        code = listener.code(&login) => code.map_err(|error| failed(&error))?,
        () = env.clock.sleep(options.timeout) => return Err(nobody(options.timeout)),
    };
    let proof = login.proof(code);
    let (status, body) = issuers.post(&proof.exchange(issuer)).await?;
    Given::read((status, &body), now(&env), &[("code", &proof.code)])
}

async fn with_device(
    context: &Context,
    issuers: &IssuerClient,
    issuer: &Issuer,
    timeout: Duration,
) -> Result<Given, Failure> {
    let env = Env::system();
    let request = Device::request(issuer);
    let request = request.ok_or_else(|| failed(&"the issuer has no logins on other devices; leave out --device"))?;
    let (status, body) = issuers.post(&request).await?;
    let device = Device::read(status, &body, now(&env)).map_err(|error| failed(&error.message))?;
    context.must_know(&format!("log in at: {}   with the code: {}", device.verification_uri, device.user_code));
    let (end, mut interval) = (env.clock.monotonic() + timeout, device.interval);
    while env.clock.monotonic() < end && now(&env) < device.expires_at {
        env.clock.sleep(Duration::from_secs(interval)).await;
        let (status, body) = issuers.post(&Device::poll(issuer, &device.code)).await?;
        let poll = Poll::read(issuer, &device.code, (status, &body), now(&env));
        match poll.map_err(|error| failed(&error.message))? {
            Poll::Wait { longer } => interval += longer,
            Poll::Done(_) => return Given::read((status, &body), now(&env), &[("code", &device.code)]),
        }
    }
    Err(nobody(timeout))
}

fn nobody(timeout: Duration) -> Failure {
    let within = words::brief_seconds(timeout.as_secs_f64());
    Failure::new("E4004", Exit::WaitTimedOut, format!("nobody logged in within {within}"))
}

/// The token that the cluster takes, and what it says about the person. Issuers differ in which one is for the cluster's audience.
async fn accepted<'g>(client: &Client, given: &'g Given) -> Result<(Shown, &'g SecretText, Value), Failure> {
    let mut refused = None;
    for shown in [Shown::AccessToken, Shown::IdToken] {
        let Some(token) = given.token(shown) else { continue };
        let asking = client.clone().with_token(Some(token.expose()));
        match asking?.get(&["api", "auth", "whoami"], &[]).await {
            Ok(who) => return Ok((shown, token, who)),
            // What it says about the token that says who the person is tells more than that of one for programs.
            Err(failure) if failure.exit == Exit::Denied => refused = Some(failure),
            Err(failure) => return Err(failure),
        }
    }
    let refused = refused.unwrap_or_else(|| failed(&"the issuer gave no token"));
    Err(refused
        .with_next("ask an administrator which audience and claims it must have: atlasctl auth oidc list -o wide"))
}

fn told(context: &Context, name: &str, login: &SavedLogin, who: &Value) -> Result<(), Failure> {
    let principal = who["principal"].as_str().unwrap_or_default();
    let until = match (&login.refresh_token, login.expires_at) {
        (Some(_), _) => "atlasctl renews the token".to_owned(),
        (None, Some(end)) => format!("until {}", words::local_date_and_time(end as f64)),
        (None, None) => "the token does not expire".to_owned(),
    };
    let value =
        json!({"context": name, "principal": principal, "issuer": login.issuer, "expires_at": login.expires_at});
    let text = format!("{name}   logged in as {principal}   {until}\n");
    context.show(&output::Shown { value, text, names: vec![format!("context/{name}")] })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(servers: &[&str], clients: &[(&str, &str)], options: (Option<&str>, Option<&str>), expected: &str) {
        let known = Known {
            authorization_servers: servers.iter().map(|url| (*url).to_owned()).collect(),
            atlasctl_clients: clients.iter().map(|(url, id)| ((*url).to_owned(), (*id).to_owned())).collect(),
        };
        let chosen = chosen(&known, options.0, options.1);
        let chosen = chosen.map_or_else(|failure| format!("! {}", failure.message), |(url, id)| format!("{url} {id}"));
        assert_eq!(chosen, expected);
    }

    #[test]
    fn an_issuer_is_chosen() {
        let (a, b) = ("https://a", "https://b/");
        check(&[a, b], &[(a, "one")], (None, None), "https://a one");
        check(&[a, b], &[(a, "one")], (Some("https://b"), Some("two")), "https://b/ two");
        check(&[a], &[(a, "one")], (None, Some("two")), "https://a two");
        check(
            &[a, b],
            &[(a, "one"), (b, "two")],
            (None, None),
            "! at which issuer? the cluster trusts https://a, https://b/",
        );
        check(&[a], &[], (None, None), "! the cluster names no client for logins");
        check(&[a], &[], (Some("https://c"), Some("x")), "! the cluster takes no tokens of https://c");
        check(&[], &[], (None, None), "! nobody can log in: the cluster trusts no issuer");
    }
}
