//! Connections to the database.

use std::sync::Arc;
use std::time::Duration;

use deadpool_postgres::{Manager, ManagerConfig, Object, Pool, RecyclingMethod, Runtime};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, RootCertStore};
use tokio_postgres_rustls::MakeRustlsConnect;

use crate::{ExportError, ExportTarget};

/// The time limit for a connection, with TLS and authentication.
const CONNECT_MAX: Duration = Duration::from_secs(10);

/// One connection is enough: each batch continues where the one before ended, so they are written one after the other.
const CONNECTIONS_MAX: usize = 1;

/// Prepares connections to a database.
pub(crate) fn pool(target: &ExportTarget) -> Result<Pool, deadpool_postgres::BuildError> {
    let tls = MakeRustlsConnect::new(tls(target));
    let recycling = ManagerConfig { recycling_method: RecyclingMethod::Fast };
    let manager = Manager::from_config(target.config.clone(), tls, recycling);
    Pool::builder(manager)
        .max_size(CONNECTIONS_MAX)
        .create_timeout(Some(CONNECT_MAX))
        .wait_timeout(Some(CONNECT_MAX))
        .runtime(Runtime::Tokio1)
        .build()
}

/// A new connection.
pub(crate) async fn connect(pool: &Pool) -> Result<Object, ExportError> {
    pool.get().await.map_err(ExportError::Connect)
}

fn tls(target: &ExportTarget) -> ClientConfig {
    let mut roots = RootCertStore::empty();
    match &target.roots {
        Some(path) => match CertificateDer::pem_file_iter(path) {
            // What cannot be read is no authority, so connections with TLS are refused.
            Ok(found) => drop(roots.add_parsable_certificates(found.filter_map(Result::ok))),
            Err(error) => {
                tracing::error!(path = %path.display(), %error, "could not read the certificates for the history database")
            }
        },
        None => drop(roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs)),
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    // The provider has ciphers for both versions.
    let config = config.expect("ring supports the default versions of TLS");
    config.with_root_certificates(roots).with_no_client_auth()
}
