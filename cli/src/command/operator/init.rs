//! `atlasctl operator init`.

use std::fs::DirBuilder;
use std::io::ErrorKind;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use atlas_access::{ROOT, token};
use atlas_env::Env;
use atlas_tls::{AUTHORITY, AUTHORITY_KEY, Authority, TlsError, write_private};
use serde_json::json;

use crate::context::Context;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::Shown;
use crate::words::{could_not, shell};

/// The file with the root token.
const ROOT_TOKEN: &str = "root.token";

/// Options of `atlasctl operator init`.
#[derive(Debug, clap::Args)]
#[group(skip)]
pub(crate) struct Options {
    /// The new directory, which only you can read.
    #[arg(value_name = "DIR")]
    dir: PathBuf,
}

pub(super) fn run(context: &Context, options: &Options) -> Result<Exit, Failure> {
    let (dir, env) = (&options.dir, Env::system());
    if let Err(error) = DirBuilder::new().mode(0o700).create(dir) {
        if error.kind() == ErrorKind::AlreadyExists {
            let text = format!("\"{}\" exists already: a cluster keeps its certificate", dir.display());
            return Err(Failure::usage(text).with_next("choose another directory"));
        }
        return Err(could_not("create", dir, &error));
    }
    let authority = Authority::new(env.clock.wall().0 / 1_000_000).map_err(|error| failed(&error))?;
    authority.write(dir).map_err(|error| failed(&error))?;
    let root = token(ROOT, std::array::from_fn(|_| env.entropy.u64()));
    write_private(&dir.join(ROOT_TOKEN), &format!("{root}\n")).map_err(|error| failed(&error))?;
    let at = |name: &str| dir.join(name).display().to_string();
    let files = [
        (AUTHORITY, "the cluster's certificate, for controllers and clients"),
        (AUTHORITY_KEY, "its key, for controllers alone"),
        (ROOT_TOKEN, "the token of the principal root"),
    ];
    let text: String = files.iter().map(|(name, what)| format!("{}  {what}\n", at(name))).collect();
    let value = json!({ "authority": at(AUTHORITY), "key": at(AUTHORITY_KEY), "root_token": at(ROOT_TOKEN) });
    context.show(&Shown { value, text, names: Vec::new() })?;
    context.next(&commands(dir));
    Ok(Exit::Done)
}

/// What to run next, with addresses to fill in.
fn commands(dir: &Path) -> String {
    let shown = |path: &Path| shell(&path.display().to_string());
    let (folder, root) = (shown(dir), shown(&dir.join(ROOT_TOKEN)));
    let authority = shown(&dir.join(AUTHORITY));
    format!(
        "next: copy the directory to each controller, then: atlas-controller --tls-dir {folder} --auth tokens --root-token-file {root} --http-listen ADDRESS:7400 --worker-listen ADDRESS:7401 --peer-listen ADDRESS:7402\n\
         then: atlasctl context add NAME --server https://ADDRESS:7400 --ca-file {authority} --token-file {root}"
    )
}

pub(super) fn failed(error: &TlsError) -> Failure {
    Failure::usage(atlas_env::chain(error))
}
