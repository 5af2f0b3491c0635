//! Why certificates cannot be used.

use std::path::PathBuf;

/// Why certificates cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// A file cannot be used.
    #[error("could not use \"{}\"", path.display())]
    File {
        path: PathBuf,
        /// The system's error.
        source: std::io::Error,
    },
    /// A file has no certificate or no key.
    #[error("\"{}\" contains no {expected}", path.display())]
    Content {
        path: PathBuf,
        /// What was expected.
        expected: &'static str,
    },
    /// The key does not belong to the certificate.
    #[error("\"{}\" is not the key of the first certificate in \"{}\"", key.display(), certificate.display())]
    OtherKey { certificate: PathBuf, key: PathBuf },
    /// A certificate cannot be made.
    #[error("could not make a certificate")]
    Make(#[from] rcgen::Error),
    /// TLS cannot be set up.
    #[error("could not set up TLS")]
    Setup(#[from] rustls::Error),
    /// TLS cannot be set up with the cluster's certificates.
    #[error("could not set up TLS: {0}")]
    Verifier(String),
    /// A text is no join token of a node.
    #[error("a join token of a node begins with atn_; atlasctl node token makes one")]
    Token,
    /// A text is no join token of a group.
    #[error("a join token of a group begins with atg_; atlasctl operator secret makes one")]
    GroupToken,
    /// The certificate of the authority has a name from which controllers do not issue.
    #[error("the first certificate in \"{}\" has another name than CN={name}: make one with that name and no other part", path.display())]
    Name { path: PathBuf, name: &'static str },
    /// A file has certificates, but none of an authority.
    #[error("\"{}\" has no certificate with the name CN={name}: it has to be the ca.pem of the cluster", path.display())]
    NoAuthority { path: PathBuf, name: &'static str },
}
