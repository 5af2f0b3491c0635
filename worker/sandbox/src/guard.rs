//! What is kept from a program that has the rights of its worker otherwise: the code that the worker runs for others.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::sandbox::ParseError;
use crate::{ConfinementStep, FailedStep, mounts};

/// Keeps the code of a worker as it is. Paths are without links.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Guard {
    /// Places that are read-only for the program: packages, Python environments, the programs of the worker.
    pub code: Vec<PathBuf>,
    /// The folder with the working directories of all programs, of which this one sees its own.
    pub folders: Option<PathBuf>,
    /// Its own working directory.
    pub own: Option<PathBuf>,
}

impl Guard {
    /// The guard as text.
    pub fn to_json(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }

    /// Reads [`Self::to_json`].
    pub fn parse(text: &str) -> Result<Self, ParseError> {
        serde_json::from_str(text).map_err(ParseError)
    }

    /// Carries it out. The process must have a single thread and be the first one in a mount namespace of its own.
    pub fn apply(&self) -> Result<(), FailedStep> {
        mounts::keep_code(self).map_err(|errno| FailedStep { step: ConfinementStep::Guard, errno })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_guard_travels_as_text() {
        let guard = Guard { code: vec!["/a b".into()], folders: Some("/w".into()), own: Some("/w/1".into()) };
        assert_eq!(Guard::parse(&guard.to_json()).expect("its own text"), guard);
        for text in ["", "{}", "[]", "{\"code\":[],\"folders\":null,\"own\":null,\"more\":1}"] {
            assert!(Guard::parse(text).is_err(), "{text}");
        }
    }
}
