//! `atlasctl model login` and `atlasctl model logout`: access tokens of models whose providers give no keys. The cluster exchanges codes
//! for tokens and keeps them, so this program never has one.

use std::time::Duration;

use atlas_env::Env;
use atlas_model::{LoginSpec, ModelSpec};
use atlas_oauth::{Code, Issuer, Login, Proof, Redirect};
use serde::Deserialize;
use serde_json::{Value, json};

use super::KIND;
use crate::answers;
use crate::browser::{self, Loopback};
use crate::client::Client;
use crate::context::Context;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::masked;
use crate::names;
use crate::output::Shown;
use crate::words;

/// Longest pause between two questions to an issuer.
const PAUSE_SECONDS_MAX: u64 = 60;

/// Options of `atlasctl model login`.
#[derive(Debug, clap::Args)]
#[group(skip)]
pub(crate) struct Options {
    /// The model's name.
    #[arg(value_parser = names::model)]
    name: String,
    /// Print the address of the login page, and do not open a browser.
    #[arg(long)]
    no_browser: bool,
    /// Print a code to type on another device, if the issuer has such logins.
    #[arg(long)]
    device: bool,
    /// Longest wait for the person.
    #[arg(long, value_name = "DURATION", default_value = "10m", value_parser = words::parse_duration)]
    timeout: Duration,
}

/// What the cluster says about a login on another device. It has no `Debug`, because it contains the code that becomes tokens.
#[derive(Deserialize)]
struct Device {
    device_code: Box<str>,
    user_code: String,
    verification_uri: String,
    interval: u64,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Progress {
    status: String,
    longer: u64,
}

pub(super) async fn run(context: &Context, options: &Options) -> Result<Exit, Failure> {
    let name = &options.name;
    let client = context.client()?;
    browser::private(&client)?;
    let object = client.get(&["api", "objects", KIND, name], &[]).await?;
    let issuer = issuer(name, &object["spec"])?;
    let env = Env::system();
    let login = async {
        if options.device || issuer.authorize_url.is_none() {
            return device(context, &client, name, &env).await;
        }
        let proof = log_in(context, options, &issuer, &env).await?;
        let (code, verifier) = (proof.code.expose(), proof.verifier.expose());
        let (state, redirect_uri) = (&proof.state, &proof.redirect_uri);
        let body = json!({
            "step": "code", "code": code, "verifier": verifier, "state": state, "redirect_uri": redirect_uri,
        });
        client.post(&["api", "models", name, "login"], &[], &body).await
    };
    let value = tokio::select! {
        biased;
        value = login => value?,
        () = env.clock.sleep(options.timeout) => {
            let text = format!("nobody logged in to model \"{name}\" within {}", words::brief_seconds(options.timeout.as_secs_f64()));
            return Err(Failure::new("E4004", Exit::WaitTimedOut, text));
        }
    };
    let text = format!("model {name}   logged in   {}\n", browser::validity(&value, context));
    context.show(&Shown { value, text, names: vec![format!("{KIND}/{name}")] })?;
    Ok(Exit::Done)
}

pub(super) async fn logout(context: &Context, name: &str) -> Result<Exit, Failure> {
    let value = context.client()?.delete(&["api", "models", name, "login"]).await?;
    let text = format!("model {name}   logged out   the issuer may keep the login: end it there as well\n");
    context.show(&Shown { value, text, names: vec![format!("{KIND}/{name}")] })?;
    Ok(Exit::Done)
}

/// The issuer that a model names. Only the controllers have the secret of the client.
fn issuer(name: &str, spec: &Value) -> Result<Issuer, Failure> {
    let unreadable =
        |error: &dyn std::fmt::Display| Failure::usage(format!("model \"{name}\" cannot be read: {error}"));
    let spec = ModelSpec::read(spec.to_string().as_bytes()).map_err(|error| unreadable(&error))?;
    let none = || {
        let failure = Failure::usage(format!("model \"{name}\" has no login: it takes a key, or none"));
        failure.with_next(format!("add one: atlasctl model add {name} --login gemini --client-id ID --replace …"))
    };
    let login: LoginSpec = spec.login.ok_or_else(none)?;
    Issuer::of(&login, None).map_err(|error| unreadable(&error))
}

/// Has the person log in at the page of the issuer.
async fn log_in(context: &Context, options: &Options, issuer: &Issuer, env: &Env) -> Result<Proof, Failure> {
    let random = browser::random(env);
    let failed =
        |error: &dyn std::fmt::Display| Failure::new("E3207", Exit::Denied, format!("the login failed: {error}"));
    let code: Code;
    let login;
    match &issuer.redirect {
        Redirect::Loopback => {
            let listener = Loopback::listen(env, None).await.map_err(|error| failed(&error))?;
            login = Login::begin(listener.redirect_uri.clone(), &random);
            browser::open(context, options.no_browser, &login.url(issuer).unwrap_or_default());
            code = listener.code(&login).await.map_err(|error| failed(&error))?;
        }
        Redirect::Paste(page) => {
            login = Login::begin(page.clone(), &random);
            browser::open(context, options.no_browser, &login.url(issuer).unwrap_or_default());
            let pasted = env.spawn_blocking("read the code", paste).join().await;
            let pasted = pasted.map_err(|_| failed(&"the code could not be read"))??;
            code = login.pasted(&pasted).map_err(|error| failed(&error))?;
        }
    }
    Ok(login.proof(code))
}

/// What the person pasted.
fn paste() -> Result<zeroize::Zeroizing<String>, Failure> {
    if let Some(text) = masked::ask("code: ")? {
        return Ok(text);
    }
    let mut line = zeroize::Zeroizing::new(String::new());
    let read = std::io::BufRead::read_line(&mut std::io::Read::take(std::io::stdin().lock(), 16 << 10), &mut line);
    read.map_err(|error| Failure::usage(format!("could not read the code from stdin: {error}")))?;
    Ok(line)
}

/// Has the person type a code on another device.
async fn device(context: &Context, client: &Client, name: &str, env: &Env) -> Result<Value, Failure> {
    let path = ["api", "models", name, "login"];
    let begun: Device = answers::read(&client.post(&path, &[], &json!({ "step": "device" })).await?)?;
    context.must_know(&format!("open {} and type the code {}", begun.verification_uri, begun.user_code));
    let mut interval = begun.interval;
    loop {
        env.clock.sleep(Duration::from_secs(interval.clamp(1, PAUSE_SECONDS_MAX))).await;
        let body = json!({ "step": "poll", "device_code": begun.device_code });
        let value = client.post(&path, &[], &body).await?;
        let progress: Progress = answers::read(&value)?;
        if progress.status != "waiting" {
            return Ok(value);
        }
        interval = interval.saturating_add(progress.longer);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn models_without_a_login_are_named() {
        let refused = |spec: Value| issuer("work", &spec).map(|_| ()).expect_err("refused").message;
        assert_eq!(
            refused(json!({"provider": "openai", "name": "m"})),
            "model \"work\" has no login: it takes a key, or none"
        );
        assert!(refused(json!({})).starts_with("model \"work\" cannot be read: "));
    }
}
