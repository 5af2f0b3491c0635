//! The address of a database: `postgres://user:password@host/name?sslmode=verify-full`.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use tokio_postgres::config::SslMode;

/// The longest address.
const BYTES_MAX: usize = 4 << 10;
/// The time limit for connecting to one host of an address that sets none.
const CONNECT_MAX: Duration = Duration::from_secs(5);

/// Why an address cannot be used. The text never repeats the address, because it can contain a password.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TargetError {
    /// Not an address of PostgreSQL.
    #[error("the address of the history database does not begin with \"postgres://\" or \"postgresql://\"")]
    Scheme,
    /// Too long.
    #[error("the address of the history database is longer than {BYTES_MAX} bytes")]
    Length,
    /// It cannot be parsed.
    #[error("the address of the history database is not valid: {0}")]
    Form(String),
    /// A mode of TLS that does not exist.
    #[error("\"{0}\" is not an sslmode; one of disable, prefer, require, verify-ca, verify-full")]
    Mode(String),
}

/// A database, and how to connect to it.
#[derive(Clone, PartialEq, Eq)]
pub struct ExportTarget {
    pub(crate) config: tokio_postgres::Config,
    /// The file with the certificates of authorities; none for those of the system.
    pub(crate) roots: Option<PathBuf>,
}

impl ExportTarget {
    /// Reads an address. The parameters of libpq for TLS are understood: `sslmode` and `sslrootcert`.
    pub fn parse(url: &str) -> Result<Self, TargetError> {
        let url = url.trim();
        if url.len() > BYTES_MAX {
            return Err(TargetError::Length);
        }
        if !url.starts_with("postgres://") && !url.starts_with("postgresql://") {
            return Err(TargetError::Scheme);
        }
        let (address, parameters) = url.split_once('?').unwrap_or((url, ""));
        let (mut roots, mut mode, mut kept) = (None, None, Vec::new());
        for parameter in parameters.split('&').filter(|parameter| !parameter.is_empty()) {
            match parameter.split_once('=') {
                Some(("sslmode", value)) => mode = Some(tls(value)?),
                Some(("sslrootcert", value)) => roots = Some(PathBuf::from(decoded(value)?)),
                _ => kept.push(parameter),
            }
        }
        let address = if kept.is_empty() { address.to_owned() } else { format!("{address}?{}", kept.join("&")) };
        // The parser's error names parameters but never values.
        let parsed: Result<tokio_postgres::Config, _> = address.parse();
        let mut config = parsed.map_err(|error| {
            let cause = std::error::Error::source(&error).map(ToString::to_string);
            TargetError::Form(cause.unwrap_or_else(|| "it cannot be parsed".to_owned()))
        })?;
        if config.get_hosts().is_empty() {
            return Err(TargetError::Form("it names no host".to_owned()));
        }
        config.ssl_mode(mode.unwrap_or(SslMode::Prefer));
        if config.get_connect_timeout().is_none() {
            config.connect_timeout(CONNECT_MAX);
        }
        config.application_name("atlas");
        Ok(Self { config, roots })
    }

    /// Whether the address contains a password.
    pub fn has_password(&self) -> bool {
        self.config.get_password().is_some()
    }
}

/// Certificates are always checked when TLS is used, so the stricter modes equal `require`.
fn tls(mode: &str) -> Result<SslMode, TargetError> {
    match mode {
        "disable" => Ok(SslMode::Disable),
        "allow" | "prefer" => Ok(SslMode::Prefer),
        "require" | "verify-ca" | "verify-full" => Ok(SslMode::Require),
        other => Err(TargetError::Mode(other.chars().take(32).collect())),
    }
}

/// A value without its percent signs.
fn decoded(value: &str) -> Result<String, TargetError> {
    let wrong = || TargetError::Form("sslrootcert is not a path".to_owned());
    let (mut bytes, mut rest) = (Vec::new(), value.as_bytes());
    while let Some((first, others)) = rest.split_first() {
        rest = others;
        if *first == b'%' {
            let (digits, others) = rest.split_at_checked(2).ok_or_else(wrong)?;
            let digits = std::str::from_utf8(digits).map_err(|_| wrong())?;
            bytes.push(u8::from_str_radix(digits, 16).map_err(|_| wrong())?);
            rest = others;
        } else {
            bytes.push(*first);
        }
    }
    String::from_utf8(bytes).map_err(|_| wrong())
}

/// Without user and password.
impl fmt::Display for ExportTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let hosts = self.config.get_hosts().iter().map(|host| match host {
            tokio_postgres::config::Host::Tcp(name) => name.clone(),
            tokio_postgres::config::Host::Unix(path) => path.display().to_string(),
        });
        let hosts: Vec<_> = hosts.collect();
        write!(f, "postgres://{}/{}", hosts.join(","), self.config.get_dbname().unwrap_or_default())
    }
}

impl fmt::Debug for ExportTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_shown_without_its_password() {
        let target =
            ExportTarget::parse("postgres://u:geheim@db.example:5433/atlas?sslmode=verify-full&sslrootcert=%2Fca.pem");
        let target = target.expect("valid");
        assert_eq!((target.to_string(), format!("{target:?}")), {
            let shown = "postgres://db.example/atlas".to_owned();
            (shown.clone(), shown)
        });
        assert!(target.has_password());
        assert_eq!(target.roots.as_deref(), Some(std::path::Path::new("/ca.pem")));
        assert_eq!(target.config.get_ssl_mode(), SslMode::Require);
        assert!(!ExportTarget::parse("postgresql://u@h/d").expect("valid").has_password());
    }

    #[test]
    fn what_is_no_address_is_refused_without_repeating_it() {
        let refused = |url: &str| ExportTarget::parse(url).expect_err("refused").to_string();
        for url in [
            "mysql://u:geheim@h/d",
            "geheim",
            "postgres://u:geheim@h:port/d",
            "postgres://u:geheim@h/d?geheim=geheim&sslmode=prefer",
            "postgres://u:geheim@h/d?sslrootcert=%zz",
            &format!("postgres://u:geheim@h/{}", "d".repeat(BYTES_MAX)),
        ] {
            let text = refused(url);
            assert!(text.starts_with("the address of the history database"), "{url}: {text}");
            assert!(!text.contains("geheim") || url.contains("geheim=geheim"), "{text}");
        }
        assert_eq!(
            refused("postgres://h/d?sslmode=strict"),
            "\"strict\" is not an sslmode; one of disable, prefer, require, verify-ca, verify-full"
        );
    }
}
