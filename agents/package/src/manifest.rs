//! What a registry says about a package (compatibility §24.2).

use atlas_contract::Contract;
use atlas_types::{AgentName, Version};
use serde_json::{Map, Value, json};

use crate::Package;

/// Largest manifest, in bytes.
pub const MANIFEST_BYTES_MAX: usize = 1 << 20;

/// The manifest of one version of an agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Manifest {
    pub name: AgentName,
    /// As in the contract. It is also the name of a folder, so nothing else than a version is one.
    pub version: String,
    pub description: String,
    pub capabilities: Vec<String>,
    /// The digest of the archive as text.
    pub sha256: String,
    /// In ISO 8601.
    pub published_at: String,
    /// Of the archive.
    pub size_bytes: u64,
}

/// Why a text is not a manifest.
#[derive(Debug, thiserror::Error)]
pub enum ManifestError {
    #[error("the manifest has more than {MANIFEST_BYTES_MAX} bytes")]
    TooLarge,
    #[error("the manifest is not JSON")]
    Json(#[source] serde_json::Error),
    /// A member that is missing or has a wrong type.
    #[error("\"{0}\" of the manifest is missing or wrong")]
    Member(&'static str),
}

/// Why an archive is not the one of its manifest.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Mismatch {
    #[error("the archive has {found} bytes, its manifest says {told}")]
    Size { found: u64, told: u64 },
    #[error("the archive has the digest {found}, its manifest says {told}")]
    Digest { found: String, told: String },
    #[error("the archive contains {found}, its manifest says {told}")]
    Agent { found: String, told: String },
}

impl Manifest {
    /// The manifest of a package that is published at a time.
    pub fn of(package: &Package, published_at: &str) -> Self {
        let Package { bytes, digest, contract, .. } = package;
        Self {
            name: contract.name.clone(),
            version: contract.version_text.clone(),
            description: contract.description.clone(),
            capabilities: contract.capabilities.clone(),
            sha256: digest.hex(),
            published_at: published_at.to_owned(),
            size_bytes: bytes.len() as u64,
        }
    }

    /// Reads a manifest. Unknown members are ignored.
    pub fn parse(text: &[u8]) -> Result<Self, ManifestError> {
        if text.len() > MANIFEST_BYTES_MAX {
            return Err(ManifestError::TooLarge);
        }
        let value: Map<String, Value> = serde_json::from_slice(text).map_err(ManifestError::Json)?;
        let text = |name: &'static str| {
            value.get(name).and_then(Value::as_str).map(str::to_owned).ok_or(ManifestError::Member(name))
        };
        let name = AgentName::new(&text("name")?).map_err(|_| ManifestError::Member("name"))?;
        let version = text("version")?;
        if !is_version(&version) {
            return Err(ManifestError::Member("version"));
        }
        let capabilities = value.get("capabilities").and_then(Value::as_array);
        let capabilities = capabilities.ok_or(ManifestError::Member("capabilities"))?.iter();
        let capability = |word: &Value| word.as_str().map(str::to_owned).ok_or(ManifestError::Member("capabilities"));
        Ok(Self {
            name,
            version,
            description: text("description")?,
            capabilities: capabilities.map(capability).collect::<Result<_, _>>()?,
            sha256: text("sha256")?,
            published_at: text("published_at")?,
            size_bytes: value.get("size_bytes").and_then(Value::as_u64).ok_or(ManifestError::Member("size_bytes"))?,
        })
    }

    /// The manifest as JSON, in one fixed order of members.
    pub fn to_json(&self) -> Value {
        json!({
            "name": self.name.as_str(),
            "version": self.version,
            "description": self.description,
            "capabilities": self.capabilities,
            "sha256": self.sha256,
            "published_at": self.published_at,
            "size_bytes": self.size_bytes,
        })
    }

    /// Checks that these bytes are the archive of this manifest.
    pub fn check(&self, archive: &[u8]) -> Result<(), Mismatch> {
        let found = archive.len() as u64;
        if found != self.size_bytes {
            return Err(Mismatch::Size { found, told: self.size_bytes });
        }
        let found = crate::digest_of(archive).hex();
        if !found.eq_ignore_ascii_case(&self.sha256) {
            return Err(Mismatch::Digest { found, told: self.sha256.clone() });
        }
        Ok(())
    }

    /// Checks that a contract is that of this manifest.
    pub fn check_contract(&self, contract: &Contract) -> Result<(), Mismatch> {
        if contract.name == self.name && contract.version_text == self.version {
            return Ok(());
        }
        let found = format!("{}@{}", contract.name, contract.version_text);
        Err(Mismatch::Agent { found, told: self.to_string() })
    }

    /// Whether a search for a text finds it: compared without case with the name, the description and the capabilities.
    pub fn matches(&self, text: &str) -> bool {
        let searched = format!("{} {} {}", self.name, self.description, self.capabilities.join(" "));
        searched.to_lowercase().contains(&text.to_lowercase())
    }
}

impl std::fmt::Display for Manifest {
    /// `name@version`.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}@{}", self.name, self.version)
    }
}

/// A text of three numbers.
pub(crate) fn is_version(text: &str) -> bool {
    let plain = text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    plain && text.parse::<Version>().is_ok()
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::*;
    use crate::{PackFile, pack_files};

    const CONTRACT: &str = "name: p\nversion: 1.2.3\ndescription: Tests ALL.\ncapabilities: [x, y]";

    fn package() -> Package {
        let bytes = CONTRACT.as_bytes().to_vec();
        pack_files(vec![PackFile { path: "agent.yaml".to_owned(), bytes, executable: false }]).expect("a package")
    }

    #[test]
    fn a_package_has_a_manifest() {
        let package = package();
        let manifest = Manifest::of(&package, "2026-01-01T00:00:00+00:00");
        assert_eq!(manifest.check(&package.bytes), Ok(()));
        assert_eq!(manifest.check_contract(&package.contract), Ok(()));
        let text = serde_json::to_vec_pretty(&manifest.to_json()).expect("JSON");
        assert_eq!(Manifest::parse(&text).expect("a manifest"), manifest);
        assert_eq!(manifest.to_string(), "p@1.2.3");
    }

    #[test]
    fn another_archive_is_noticed() {
        let package = package();
        let manifest = Manifest::of(&package, "t");
        let mut other = package.bytes.clone();
        other[20] ^= 1;
        assert!(matches!(manifest.check(&other), Err(Mismatch::Digest { .. })));
        other.pop();
        assert!(matches!(manifest.check(&other), Err(Mismatch::Size { .. })));
        let other = Manifest { version: "1.2.4".to_owned(), ..manifest };
        assert!(matches!(other.check_contract(&package.contract), Err(Mismatch::Agent { .. })));
    }

    #[test]
    fn a_search_ignores_case() {
        let manifest = Manifest::of(&package(), "t");
        for (text, found) in
            [("P", true), ("tests all", true), ("X Y", true), ("", true), ("all. x", true), ("z", false)]
        {
            assert_eq!(manifest.matches(text), found, "{text}");
        }
    }

    fn check_refused(change: impl Fn(&mut Value), expected: &Expect) {
        let mut value = Manifest::of(&package(), "t").to_json();
        change(&mut value);
        expected.assert_eq(&Manifest::parse(value.to_string().as_bytes()).expect_err("refused").to_string());
    }

    #[test]
    fn what_is_no_manifest_is_refused() {
        check_refused(|value| *value = json!([]), &expect!["the manifest is not JSON"]);
        check_refused(|value| value["name"] = json!(5), &expect![[r#""name" of the manifest is missing or wrong"#]]);
        check_refused(|value| value["name"] = json!(""), &expect![[r#""name" of the manifest is missing or wrong"#]]);
        check_refused(
            |value| value["size_bytes"] = json!(-1),
            &expect![[r#""size_bytes" of the manifest is missing or wrong"#]],
        );
        check_refused(
            |value| value["capabilities"] = json!([1]),
            &expect![[r#""capabilities" of the manifest is missing or wrong"#]],
        );
        check_refused(
            |value| value["description"] = json!("x".repeat(2 << 20)),
            &expect!["the manifest has more than 1048576 bytes"],
        );
        for version in ["../1.0.0", "1.0", "1.0.0/..", "1.0.0-a", "..", ""] {
            let mut value = Manifest::of(&package(), "t").to_json();
            value["version"] = json!(version);
            assert!(Manifest::parse(value.to_string().as_bytes()).is_err(), "{version}");
        }
    }
}
