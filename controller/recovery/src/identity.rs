//! Who a data directory makes its controller: `member.json`.

use std::io;
use std::path::Path;

use atlas_env::Env;
use atlas_types::MemberId;
use serde::{Deserialize, Serialize};

const FILE: &str = "member.json";

/// What a member keeps of itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identity {
    /// Its cluster.
    pub cluster_id: u128,
    /// Its number.
    pub member: MemberId,
    /// Its name.
    pub name: String,
}

/// The form on disk.
#[derive(Serialize, Deserialize)]
struct Document {
    /// 32 hex digits.
    cluster_id: String,
    member: u64,
    name: String,
}

/// Reads the identity in a data directory; none if it has none yet.
pub fn read(data_dir: &Path, env: &Env) -> io::Result<Option<Identity>> {
    let bytes = match env.files.read(&data_dir.join(FILE)) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        bytes => bytes?,
    };
    let Document { cluster_id, member, name } = serde_json::from_slice(&bytes)?;
    let cluster_id = u128::from_str_radix(&cluster_id, 16).map_err(io::Error::other)?;
    Ok(Some(Identity { cluster_id, member: MemberId(member), name }))
}

/// Writes the identity; durable when this returns.
pub fn write(data_dir: &Path, identity: &Identity, env: &Env) -> io::Result<()> {
    let Identity { cluster_id, member, name } = identity;
    let document = Document { cluster_id: format!("{cluster_id:032x}"), member: member.0, name: name.clone() };
    env.files.write_durably(&data_dir.join(FILE), &serde_json::to_vec_pretty(&document)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_identity_reads_back_as_written() {
        let dir = tempfile::tempdir().expect("a directory");
        let env = Env::system();
        assert_eq!(read(dir.path(), &env).expect("readable"), None);
        let identity = Identity { cluster_id: 7 << 100, member: MemberId(3), name: "c3".to_owned() };
        write(dir.path(), &identity, &env).expect("written");
        assert_eq!(read(dir.path(), &env).expect("readable"), Some(identity));
    }
}
