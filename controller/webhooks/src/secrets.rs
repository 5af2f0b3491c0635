//! Signing secrets: where they come from, and a type that does not print them.

use std::fmt;

/// A signing secret. It is never printed.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(Vec<u8>);

impl Secret {
    /// A secret of these bytes.
    pub fn new(bytes: Vec<u8>) -> Self {
        Self(bytes)
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(…)")
    }
}

/// Finds secrets by the names that webhooks give.
pub trait Secrets: Send + Sync + 'static {
    /// The secret of a name; none if there is none, or if it is empty.
    fn find(&self, name: &str) -> Option<Secret>;
}

/// The environment of this process.
#[derive(Debug, Clone, Copy)]
pub struct Environment;

impl Secrets for Environment {
    fn find(&self, name: &str) -> Option<Secret> {
        use std::os::unix::ffi::OsStringExt;
        let value = std::env::var_os(name)?.into_vec();
        (!value.is_empty()).then(|| Secret::new(value))
    }
}

/// What is appended to the name of a secret for the one that it replaced.
const PREVIOUS: &str = "_PREVIOUS";

/// The secrets with which a webhook signs: that of its name and, during a rotation, the one before. None if the first is
/// missing.
pub(crate) fn of(secrets: &dyn Secrets, name: &str) -> Option<Vec<Secret>> {
    let mut found = vec![secrets.find(name)?];
    found.extend(secrets.find(&format!("{name}{PREVIOUS}")));
    Some(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Two;

    impl Secrets for Two {
        fn find(&self, name: &str) -> Option<Secret> {
            ["A", "B", "B_PREVIOUS", "C_PREVIOUS"].contains(&name).then(|| Secret::new(name.as_bytes().to_vec()))
        }
    }

    #[test]
    fn a_rotation_has_two_secrets() {
        let found = |name| of(&Two, name).map(|secrets| secrets.len());
        assert_eq!((found("A"), found("B"), found("C")), (Some(1), Some(2), None));
        assert_eq!(format!("{:?}", Secret::new(b"word".to_vec())), "Secret(…)");
        assert_eq!(Environment.find("ATLAS_WEBHOOK_OF_NO_TEST"), None);
    }
}
