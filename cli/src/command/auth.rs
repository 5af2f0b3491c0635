//! `atlasctl auth`: who may do what; one file per verb.

mod bind;
mod oidc;
mod roles;
mod root_token;
mod token;
mod whoami;

use std::fs::OpenOptions;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use crate::context::Context;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::words::could_not;

/// Most bytes of a file with a token: those of issuers are long.
const TOKEN_BYTES_MAX: u64 = 17 << 10;

/// Verbs of `atlasctl auth`.
#[derive(Debug, clap::Subcommand)]
pub(crate) enum Verb {
    /// Shows who sends this program's requests, and what that principal may do.
    Whoami,
    /// Tokens, by which people and programs show who they are.
    #[command(subcommand)]
    Token(token::Verb),
    /// Issuers of OpenID Connect, whose tokens are accepted as well.
    #[command(subcommand)]
    Oidc(oidc::Verb),
    /// Grants a principal a role, in a namespace or in the whole cluster.
    Bind(bind::BindOptions),
    /// Takes a role from a principal.
    Unbind(bind::Options),
    /// Lists who is granted what.
    Bindings(bind::ListOptionsOfBindings),
    /// Lists roles and their rights.
    Roles,
    /// Makes a root token in a new file; needs no running cluster.
    RootToken(root_token::Options),
}

pub(crate) async fn run(context: &Context, verb: &Verb) -> Result<Exit, Failure> {
    match verb {
        Verb::Whoami => whoami::run(context).await,
        Verb::Token(verb) => token::run(context, verb).await,
        Verb::Oidc(verb) => oidc::run(context, verb).await,
        Verb::Bind(options) => bind::grant(context, options).await,
        Verb::Unbind(options) => bind::revoke(context, options).await,
        Verb::Bindings(options) => bind::list(context, options).await,
        Verb::Roles => roles::run(context).await,
        Verb::RootToken(options) => root_token::run(context, options),
    }
}

/// Whether the result is a list.
pub(crate) fn prints_list(verb: &Verb) -> bool {
    matches!(verb, Verb::Token(token::Verb::List(_)) | Verb::Oidc(oidc::Verb::List(_)) | Verb::Bindings(_))
}

/// Reads a token from a file, or from stdin.
pub(crate) fn read_token(path: &Path) -> Result<String, Failure> {
    let failed = |error: std::io::Error| could_not("read", path, &error);
    let text = if path == Path::new("-") {
        atlas_env::read_text_from(std::io::stdin().lock(), TOKEN_BYTES_MAX)
    } else {
        atlas_env::read_text(path, TOKEN_BYTES_MAX)
    };
    checked_token(&text.map_err(failed)?, path)
}

/// Refuses a text that is no token. The text itself is not told: it may be most of one.
pub(crate) fn checked_token(text: &str, path: &Path) -> Result<String, Failure> {
    let token = text.trim();
    if atlas_access::parts(token).is_none() && !is_of_issuer(token) {
        let why = "one begins with atl_, and one of an issuer has three parts with dots between them";
        return Err(Failure::usage(format!("\"{}\" has no token: {why}", path.display())));
    }
    Ok(token.to_owned())
}

/// Whether a text has the form of a token of an issuer.
fn is_of_issuer(text: &str) -> bool {
    let is_part = |part: &str| {
        !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'))
    };
    let parts: Vec<&str> = text.split('.').collect();
    parts.len() == 3 && parts.into_iter().all(is_part)
}

/// Writes a token to a new file that only the owner can read.
fn write_token(path: &Path, token: &str) -> Result<(), Failure> {
    let failed = |error: std::io::Error| could_not("write", path, &error);
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path).map_err(failed)?;
    file.write_all(format!("{token}\n").as_bytes()).map_err(failed)?;
    file.sync_all().map_err(failed)
}
