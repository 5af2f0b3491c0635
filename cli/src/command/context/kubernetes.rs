//! Tokens and certificates in Secrets of Kubernetes, as `kubectl get secret -o json` prints them.

use std::fs::File;
use std::io::{self, Read as _};
use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

use crate::command::auth;
use crate::failure::Failure;
use crate::words::could_not;

/// Kubernetes bounds a secret at 1 MiB before it is encoded.
const SECRET_BYTES_MAX: u64 = 2 << 20;
/// The keys of a token, the first one first: made by people, and by the chart.
const KEYS: [&str; 2] = ["token", "root.token"];

/// The key of the certificates that controllers show.
const AUTHORITY: &str = atlas_tls::AUTHORITY;

/// What a secret says about a cluster.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Secret {
    pub(super) token: String,
    /// The certificates to trust, as PEM; none if it has none.
    pub(super) ca: Option<String>,
}

/// Reads a secret; `-` is stdin.
pub(super) fn read(path: &Path) -> Result<Secret, Failure> {
    let failed = |error: io::Error| could_not("read", path, &error);
    let mut text = Vec::new();
    if path == Path::new("-") {
        io::stdin().lock().take(SECRET_BYTES_MAX).read_to_end(&mut text).map_err(failed)?;
    } else {
        File::open(path).map_err(failed)?.take(SECRET_BYTES_MAX).read_to_end(&mut text).map_err(failed)?;
    }
    let found = find(&text).map_err(|why| refused(path, why))?;
    Ok(Secret { token: auth::checked_token(&found.token, path)?, ..found })
}

/// The text under the first key of a token that a secret has, and its certificates.
fn find(text: &[u8]) -> Result<Secret, &'static str> {
    let secret: Value = serde_json::from_slice(text).map_err(|_| "it is not JSON")?;
    if secret["kind"] != "Secret" {
        return Err("it is not a Secret");
    }
    let encoded =
        KEYS.iter().find_map(|key| secret["data"][key].as_str()).ok_or("it has no key token or root.token")?;
    let decoded = STANDARD.decode(encoded).map_err(|_| "the token in it is not in base64")?;
    let token = String::from_utf8(decoded).map_err(|_| "the token in it is not text")?;
    let ca = secret["data"][AUTHORITY].as_str().map(|encoded| {
        let text = STANDARD.decode(encoded).ok().and_then(|decoded| String::from_utf8(decoded).ok());
        text.filter(|text| atlas_tls::certificates_of(text).is_some()).ok_or("the certificate in it cannot be read")
    });
    Ok(Secret { token, ca: ca.transpose()? })
}

/// Without what the file contains.
fn refused(path: &Path, why: &str) -> Failure {
    let failure = Failure::usage(format!("\"{}\" cannot be used: {why}", path.display()));
    failure.with_next("give it what kubectl prints: kubectl -n NAMESPACE get secret NAME -o json")
}

#[cfg(test)]
mod tests {
    use base64::Engine as _;
    use base64::engine::general_purpose::STANDARD;

    #[test]
    fn the_certificate_comes_with_the_token() {
        let pem = atlas_tls::Authority::new(1_800_000_000).expect("an authority").pem();
        let find = |ca: &str| {
            super::find(format!(r#"{{"kind":"Secret","data":{{"root.token":"YWJj","ca.pem":"{ca}"}}}}"#).as_bytes())
        };
        assert_eq!(find(&STANDARD.encode(&pem)).map(|secret| secret.ca), Ok(Some(pem)));
        for wrong in ["*", "YWJj", "/w=="] {
            assert_eq!(find(wrong), Err("the certificate in it cannot be read"), "{wrong}");
        }
    }

    #[test]
    fn a_token_is_found_under_either_key() {
        let find = |text: &str| super::find(text.as_bytes()).map(|secret| secret.token);
        assert_eq!(find(r#"{"kind":"Secret","data":{"root.token":"YWJj"}}"#), Ok("abc".to_owned()));
        assert_eq!(find(r#"{"kind":"Secret","data":{"root.token":"YWJj","token":"eHl6"}}"#), Ok("xyz".to_owned()));
        assert_eq!(find("Error from server"), Err("it is not JSON"));
        assert_eq!(find(r#"{"kind":"ConfigMap","data":{"token":"YWJj"}}"#), Err("it is not a Secret"));
        assert_eq!(find(r#"{"kind":"Secret"}"#), Err("it has no key token or root.token"));
        assert_eq!(find(r#"{"kind":"Secret","data":{"token":"*"}}"#), Err("the token in it is not in base64"));
        assert_eq!(find(r#"{"kind":"Secret","data":{"token":"/w=="}}"#), Err("the token in it is not text"));
    }
}
