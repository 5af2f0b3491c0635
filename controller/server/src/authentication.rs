//! Whether requests need tokens, and the root token.

use std::io::{Error, ErrorKind};
use std::net::SocketAddr;
use std::path::Path;

use atlas_service::Authentication;

use crate::{Auth, Mode, Options, StartError};

/// Refuses addresses that other machines can reach while requests need no tokens, or while nothing is encrypted. The compatible MCP server can have a
/// token of its own.
pub(crate) fn check_addresses(options: &Options) -> Result<(), StartError> {
    // `dev` decides on its own addresses, and so does `atlas serve`, which listens where Atlas for Python listens.
    if options.auth == Auth::Open || options.mode == Mode::Dev {
        return Ok(());
    }
    let agents = options.agent_listen.iter().map(|(_, address)| *address);
    let http = || std::iter::once(options.http).chain(options.registry_listen).chain(agents.clone());
    let open = |address: &SocketAddr| !address.ip().to_canonical().is_loopback();
    let compatible = options.compatible.listen.filter(|_| options.compatible.token.is_none());
    if let Some(address) = http().chain(compatible).find(open).filter(|_| options.auth == Auth::Off) {
        return Err(StartError::Open { address });
    }
    if options.tls_dir.is_some() || options.plain_ports {
        return Ok(());
    }
    let machines = [Some(options.grpc), options.peer, options.compatible.listen, options.scaler].into_iter().flatten();
    match http().chain(machines).find(open) {
        Some(address) => Err(StartError::Plain { address }),
        None => Ok(()),
    }
}

/// How callers prove who they are; none if they do not have to.
pub(crate) fn read(options: &Options) -> Result<Option<Authentication>, StartError> {
    if options.auth != Auth::Tokens {
        return Ok(None);
    }
    let malformed = |error| {
        let path = options.root_token_file.as_deref().unwrap_or(Path::new(""));
        root_token(path, Error::new(ErrorKind::InvalidData, error))
    };
    Authentication::new(root_text(options)?.as_deref()).map(Some).map_err(malformed)
}

/// The text of the root token; none if there is no such token, or nobody needs tokens.
pub(crate) fn root_text(options: &Options) -> Result<Option<String>, StartError> {
    let Some(path) = options.root_token_file.as_deref().filter(|_| options.auth == Auth::Tokens) else {
        return Ok(None);
    };
    let text =
        atlas_env::read_private_text(path, atlas_env::TOKEN_BYTES_MAX).map_err(|source| root_token(path, source))?;
    Ok(Some(text.trim().to_owned()))
}

fn root_token(path: &Path, source: Error) -> StartError {
    StartError::RootToken { path: path.to_owned(), source }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt as _;
    use std::path::PathBuf;

    use super::*;

    fn options(http: &str, auth: Auth) -> Options {
        Options { http: http.parse().expect("an address"), auth, ..Options::new(PathBuf::from("data")) }
    }

    #[test]
    fn without_tokens_only_this_machine_is_served() {
        for (http, auth, fits) in [
            ("127.0.0.1:7400", Auth::Off, true),
            ("[::1]:7400", Auth::Off, true),
            ("[::ffff:127.0.0.1]:7400", Auth::Off, true),
            ("0.0.0.0:7400", Auth::Off, false),
            ("10.0.0.5:7400", Auth::Off, false),
            ("0.0.0.0:7400", Auth::Open, true),
        ] {
            assert_eq!(check_addresses(&options(http, auth)).is_ok(), fits, "{http} {auth:?}");
        }
        let tokens = |address: &str| options(address, Auth::Tokens);
        let plain = |options: &Options| matches!(check_addresses(options), Err(StartError::Plain { .. }));
        assert!(plain(&tokens("0.0.0.0:7400")), "tokens could be read");
        for own in [tokens("127.0.0.1:7400"), options("127.0.0.1:7400", Auth::Off)] {
            let worker = Options { grpc: "10.0.0.5:7401".parse().expect("an address"), ..own.clone() };
            let peer = Options { peer: Some("10.0.0.5:7402".parse().expect("an address")), ..own };
            assert!(plain(&worker) && plain(&peer), "anybody could be a worker or a controller");
            assert!(check_addresses(&Options { plain_ports: true, ..worker.clone() }).is_ok(), "open on purpose");
            assert!(check_addresses(&Options { tls_dir: Some("tls".into()), ..worker }).is_ok());
        }
        assert!(check_addresses(&Options { tls_dir: Some("tls".into()), ..tokens("0.0.0.0:7400") }).is_ok());
        assert!(
            check_addresses(&Options { tls_dir: Some("tls".into()), ..options("0.0.0.0:7400", Auth::Off) }).is_err()
        );
        let agent = vec![("a".to_owned(), "0.0.0.0:8201".parse().expect("an address"))];
        let open = Options { agent_listen: agent, ..options("127.0.0.1:7400", Auth::Off) };
        assert!(matches!(check_addresses(&open), Err(StartError::Open { .. })));
        let registry_listen = Some("0.0.0.0:24200".parse().expect("an address"));
        let open = Options { registry_listen, ..options("127.0.0.1:7400", Auth::Off) };
        assert!(matches!(check_addresses(&open), Err(StartError::Open { .. })));
    }

    #[test]
    fn a_root_token_comes_from_a_private_file() {
        let dir = tempfile::tempdir().expect("a folder");
        let path = dir.path().join("root");
        let read = || read(&Options { root_token_file: Some(path.clone()), ..options("127.0.0.1:0", Auth::Tokens) });
        let is_refused = || matches!(read(), Err(StartError::RootToken { .. }));
        assert!(is_refused(), "there is no file");
        fs::write(&path, atlas_access::token(atlas_access::ROOT, [1, 2, 3, 4])).expect("a file");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).expect("a mode");
        assert!(is_refused(), "everybody may read it");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).expect("a mode");
        assert!(read().is_ok_and(|found| found.is_some()));
        fs::write(&path, "secret").expect("a file");
        assert!(is_refused(), "it is no token");
    }
}
