//! The certificate that this program shows, and those that it trusts. Both can change while connections are open.

use std::fmt;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use atlas_env::Clock;
use rustls::RootCertStore;
use rustls::client::ResolvesClientCert;
use rustls::crypto::ring;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use tracing::{error, info};

use crate::authority::{Authority, Wanted, new_key, roots};
use crate::files::{Enrolled, Stored};
use crate::{Subject, TlsError};

/// Where a controller is reached, and how long its certificates are valid.
#[derive(Debug, Clone)]
pub struct Names {
    /// Host names and addresses.
    pub hosts: Vec<String>,
    pub life: Duration,
}

/// The certificate that this program shows, and those that it trusts. Cheap to clone; all clones change together.
#[derive(Clone)]
pub struct Credentials(Arc<Inner>);

struct Inner {
    held: RwLock<Held>,
    /// How a controller gets its next certificate; none for a node, which asks a controller.
    issuing: Option<Issuing>,
    clock: Arc<dyn Clock>,
}

struct Issuing {
    authority: Arc<Authority>,
    names: Names,
    subject: RwLock<Subject>,
}

struct Held {
    shown: Arc<CertifiedKey>,
    trusted: Arc<RootCertStore>,
    /// When the next certificate is due, and when this one ends, in seconds since 1970.
    due: i64,
    ends: i64,
}

impl Credentials {
    /// Those of a controller that is not a member yet. It issues its certificates itself, and the next one before the
    /// last ends.
    pub fn of_controller(authority: Arc<Authority>, names: Names, clock: Arc<dyn Clock>) -> Result<Self, TlsError> {
        let subject = Subject::Controller(None);
        let held = issued(&authority, &names, &subject, seconds(&*clock))?;
        let issuing = Some(Issuing { authority, names, subject: RwLock::new(subject) });
        Ok(Self(Arc::new(Inner { held: RwLock::new(held), issuing, clock })))
    }

    /// Those of a node, from its files.
    pub fn of_node(files: &Enrolled, clock: Arc<dyn Clock>) -> Result<Self, TlsError> {
        let held = read(files.read()?)?;
        Ok(Self(Arc::new(Inner { held: RwLock::new(held), issuing: None, clock })))
    }

    /// Reads the files of a node again.
    pub fn reload(&self, files: &Enrolled) -> Result<(), TlsError> {
        let held = read(files.read()?)?;
        *self.0.held.write().unwrap_or_else(PoisonError::into_inner) = held;
        Ok(())
    }

    /// Shows this controller as a member from now on.
    pub fn become_member(&self, member: u64) -> Result<(), TlsError> {
        let Some(issuing) = &self.0.issuing else { return Ok(()) };
        *issuing.subject.write().unwrap_or_else(PoisonError::into_inner) = Subject::Controller(Some(member));
        self.renew(issuing)
    }

    /// Who the certificate is for.
    pub fn subject(&self) -> Option<Subject> {
        Subject::of_certificate(self.shown().cert.first()?)
    }

    /// How long until the next certificate is due.
    pub fn due_in(&self) -> Duration {
        self.until(|held| held.due)
    }

    /// How long the certificate is valid.
    pub fn ends_in(&self) -> Duration {
        self.until(|held| held.ends)
    }

    fn until(&self, time: impl Fn(&Held) -> i64) -> Duration {
        let time = time(&self.0.held.read().unwrap_or_else(PoisonError::into_inner));
        Duration::from_secs(u64::try_from(time.saturating_sub(seconds(&*self.0.clock))).unwrap_or(0))
    }

    /// The authority of a controller.
    pub fn authority(&self) -> Option<&Arc<Authority>> {
        self.0.issuing.as_ref().map(|issuing| &issuing.authority)
    }

    pub(crate) fn trusted(&self) -> Arc<RootCertStore> {
        Arc::clone(&self.0.held.read().unwrap_or_else(PoisonError::into_inner).trusted)
    }

    fn shown(&self) -> Arc<CertifiedKey> {
        if let Some(issuing) = self.0.issuing.as_ref().filter(|_| self.due_in().is_zero())
            && let Err(error) = self.renew(issuing)
        {
            error!(error = &error as &dyn std::error::Error, "could not renew the certificate of this controller");
        }
        Arc::clone(&self.0.held.read().unwrap_or_else(PoisonError::into_inner).shown)
    }

    fn renew(&self, issuing: &Issuing) -> Result<(), TlsError> {
        let subject = issuing.subject.read().unwrap_or_else(PoisonError::into_inner).clone();
        let held = issued(&issuing.authority, &issuing.names, &subject, seconds(&*self.0.clock))?;
        *self.0.held.write().unwrap_or_else(PoisonError::into_inner) = held;
        info!(subject = subject.uri(), "made a certificate");
        Ok(())
    }
}

impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = &self.0.held.read().unwrap_or_else(PoisonError::into_inner).shown;
        let subject = shown.cert.first().and_then(Subject::of_certificate);
        write!(f, "Credentials({})", subject.map(|subject| subject.uri()).unwrap_or_default())
    }
}

impl ResolvesServerCert for Credentials {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(self.shown())
    }
}

impl ResolvesClientCert for Credentials {
    fn resolve(&self, _: &[&[u8]], _: &[rustls::SignatureScheme]) -> Option<Arc<CertifiedKey>> {
        Some(self.shown())
    }

    fn has_certs(&self) -> bool {
        true
    }
}

fn seconds(clock: &dyn Clock) -> i64 {
    clock.wall().0 / 1_000_000
}

fn issued(authority: &Authority, names: &Names, subject: &Subject, now: i64) -> Result<Held, TlsError> {
    let (pair, der) = new_key()?;
    let wanted = Wanted { subject, hosts: &names.hosts, now, life: names.life };
    let certificate = authority.issue(&wanted, &pair)?;
    // A worker that joins recognises the cluster by the certificate of the authority.
    let chain = [certificate].into_iter().chain(authority.trusted().first().cloned()).collect();
    let life = i64::try_from(names.life.as_secs()).unwrap_or(i64::MAX);
    let (due, ends) = (now.saturating_add(life / 3 * 2), now.saturating_add(life));
    Ok(Held { shown: certified(chain, &der)?, trusted: roots(authority.trusted())?, due, ends })
}

fn read(stored: Stored) -> Result<Held, TlsError> {
    let Stored { chain, key, trusted, begins, ends } = stored;
    let due = ends.saturating_sub(ends.saturating_sub(begins) / 3);
    let der = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.to_vec()));
    Ok(Held { shown: certified(chain, &der)?, trusted: roots(&trusted)?, due, ends })
}

fn certified(chain: Vec<CertificateDer<'static>>, key: &PrivateKeyDer<'_>) -> Result<Arc<CertifiedKey>, TlsError> {
    Ok(Arc::new(CertifiedKey::new(chain, ring::sign::any_ecdsa_type(key)?)))
}
