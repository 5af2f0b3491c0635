//! The owner of a data directory: `member.json` next to the log.
//!
//! The log itself knows its cluster but not the member's number, and a controller that is about to join must remember
//! its request id: a repeat gets the same number instead of using a second token.

use std::io;
use std::path::Path;

use atlas_env::Files;
use atlas_types::MemberId;
use serde_json::{Value, json};

const FILE: &str = "member.json";

/// The content of the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Identity {
    /// The directory is a member's.
    Member {
        /// Its cluster.
        cluster_id: u128,
        /// Its number.
        member: MemberId,
        /// The name for people.
        name: String,
    },
    /// A controller has asked to join and has no answer yet.
    Joining {
        /// The id of its join request.
        request_id: String,
    },
}

impl Identity {
    /// Reads the file of a data directory; none if there is none.
    pub fn read(files: &dyn Files, data_dir: &Path) -> io::Result<Option<Self>> {
        let path = data_dir.join(FILE);
        if files.size(&path)?.is_none() {
            return Ok(None);
        }
        let bytes = files.read(&path)?;
        let found = serde_json::from_slice(&bytes).ok().and_then(|value: Value| Self::of(&value));
        found.map(Some).ok_or_else(|| {
            let text = format!("\"{}\" does not identify the owner of the data", path.display());
            io::Error::new(io::ErrorKind::InvalidData, text)
        })
    }

    /// Writes the file, durably.
    pub fn write(&self, files: &dyn Files, data_dir: &Path) -> io::Result<()> {
        let value = match self {
            Self::Member { cluster_id, member, name } => {
                json!({ "cluster_id": format!("{cluster_id:032x}"), "member": member.0, "name": name })
            }
            Self::Joining { request_id } => json!({ "joining": request_id }),
        };
        files.write_durably(&data_dir.join(FILE), format!("{value}\n").as_bytes())
    }

    fn of(value: &Value) -> Option<Self> {
        if let Some(request_id) = value.get("joining") {
            return Some(Self::Joining { request_id: request_id.as_str()?.to_owned() });
        }
        Some(Self::Member {
            cluster_id: u128::from_str_radix(value.get("cluster_id")?.as_str()?, 16).ok()?,
            member: MemberId(value.get("member")?.as_u64().filter(|member| *member > 0)?),
            name: value.get("name")?.as_str()?.to_owned(),
        })
    }
}

#[cfg(test)]
mod tests {
    use atlas_env::SystemFiles;

    use super::*;

    #[test]
    fn what_is_written_is_read() {
        let dir = tempfile::tempdir().expect("temporary directory");
        assert_eq!(Identity::read(&SystemFiles, dir.path()).expect("readable"), None);
        let member = Identity::Member { cluster_id: 0xabc, member: MemberId(3), name: "c3".to_owned() };
        for identity in [Identity::Joining { request_id: "r1".to_owned() }, member] {
            identity.write(&SystemFiles, dir.path()).expect("writable");
            assert_eq!(Identity::read(&SystemFiles, dir.path()).expect("readable"), Some(identity));
        }
    }

    #[test]
    fn a_file_that_says_something_else_is_an_error() {
        let dir = tempfile::tempdir().expect("temporary directory");
        for text in ["", "{}", "{\"cluster_id\":\"x\",\"member\":1,\"name\":\"\"}", "{\"joining\":1}"] {
            std::fs::write(dir.path().join(FILE), text).expect("writable");
            let error = Identity::read(&SystemFiles, dir.path()).expect_err("no identity");
            assert!(error.to_string().contains("does not identify the owner of the data"), "{error}");
        }
    }
}
