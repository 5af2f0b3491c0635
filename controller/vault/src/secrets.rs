//! Secrets: setting values.

use atlas_desk::{Caller, Consistency, Error, ShownObject, with_revision};
use atlas_objects::{SealedVersion, SecretProvider, SecretSpec, VERSIONS_MAX};
use atlas_types::{ObjectKey, ObjectKind, ObjectName, SECRET_BYTES_MAX, SPEC_BYTES_MAX, SecretText};

use crate::Vault;
use crate::seal::seal;

/// How often a value is set again after another client changed the secret at the same time.
const TRIES_MAX: usize = 5;

/// What a client wants to set.
pub struct NewSecret {
    pub name: String,
    pub value: SecretText,
    /// Only a new version of a secret that exists.
    pub rotate: bool,
}

impl Vault {
    /// Sets the value of a secret as a new version, and makes the secret if there is none.
    pub async fn set_secret(&self, caller: &Caller, new: &NewSecret) -> Result<ShownObject, Error> {
        let key = secret_key(caller, &new.name)?;
        for tried in 1.. {
            let state = self.desk.state(Consistency::Linearizable).await?;
            let old = state.object(&key);
            if old.is_none() && new.rotate {
                return Err(Error::UnknownObject(format!("no such secret: \"{}\"", key.name)));
            }
            let mut spec = match old {
                Some(object) => {
                    SecretSpec::read(&object.spec).map_err(|error| Error::internal("read a secret", &error))?
                }
                None => SecretSpec::default(),
            };
            if spec.provider != SecretProvider::Store {
                let text = format!("the value of secret \"{}\" is with the workers, not in the store", key.name);
                return Err(Error::Malformed(text));
            }
            self.add_version(&key, &mut spec, &new.value)?;
            match self.write_secret(caller, &key, old.map(|object| &**object), &mut spec).await {
                Err(Error::ObjectChanged { .. }) if tried < TRIES_MAX => {}
                Err(error) => return Err(error),
                Ok(_) => break,
            }
        }
        let state = self.desk.state(Consistency::Linearizable).await?;
        state.object(&key).map(with_revision).ok_or_else(|| Error::UnknownObject("the secret was deleted".to_owned()))
    }

    /// Seals a value as the newest version.
    pub(crate) fn add_version(&self, key: &ObjectKey, spec: &mut SecretSpec, value: &SecretText) -> Result<(), Error> {
        if value.expose().len() > SECRET_BYTES_MAX {
            return Err(Error::TooLarge { what: "the value of a secret", limit: SECRET_BYTES_MAX as u64 });
        }
        let keys = self.keys()?;
        let version = spec.versions.last().map_or(1, |last| last.version.saturating_add(1));
        let created = u64::try_from(self.desk.env.clock.wall().0 / 1_000_000).unwrap_or(0);
        spec.versions.push(seal(keys, key, version, value, self.desk.nonce(), created).ok_or(Error::Internal)?);
        Ok(())
    }
}

fn secret_key(caller: &Caller, name: &str) -> Result<ObjectKey, Error> {
    let kind = ObjectKind::new("secret")?;
    Ok(ObjectKey { namespace: caller.namespace.clone(), kind, name: ObjectName::new(name)? })
}

/// The canonical spec with as many of the newest versions as have room.
pub(crate) fn fitting(spec: &mut SecretSpec) -> Result<Vec<u8>, Error> {
    loop {
        if spec.versions.len() > VERSIONS_MAX {
            spec.versions.remove(0);
            continue;
        }
        let value = serde_json::to_value(&*spec).map_err(|error| Error::internal("write a secret", &error))?;
        let bytes = atlas_objects::canonical(&value).map_err(|error| Error::internal("write a secret", &error))?;
        if bytes.len() <= SPEC_BYTES_MAX || spec.versions.len() <= 1 {
            return Ok(bytes);
        }
        let _oldest: SealedVersion = spec.versions.remove(0);
    }
}
