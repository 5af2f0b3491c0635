//! Which stores a controller is started with.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use atlas_env::Env;
use atlas_http::Secret;
use atlas_knowledge::{ProtectedDomains, ProtectedError};
use atlas_library::{KnowledgeStore, MemoryStore, Stores};

use crate::file::{FileMemory, FolderKnowledge};
use crate::http::{HttpKnowledge, HttpMemory};
use crate::mcp::McpKnowledge;
use crate::site::{Site, SiteError};

/// Longest knowledge policy, in bytes.
const POLICY_BYTES_MAX: u64 = 1 << 20;

/// Where memory and knowledge are kept, if not as objects. A file comes before a server, and a server over HTTP before one over MCP, as in
/// Atlas for Python.
#[derive(Debug, Clone, Default)]
pub struct StoreOptions {
    pub memory_file: Option<PathBuf>,
    pub memory_url: Option<String>,
    pub memory_token: Option<Secret>,
    pub knowledge_folder: Option<PathBuf>,
    pub knowledge_url: Option<String>,
    pub knowledge_mcp_url: Option<String>,
    pub knowledge_token: Option<Secret>,
    /// A file with the domains that the operator protects.
    pub knowledge_policy: Option<PathBuf>,
}

/// Why a store cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum StoresError {
    #[error("could not read the knowledge policy \"{path}\"")]
    Policy { path: PathBuf, source: io::Error },
    #[error("could not use the knowledge policy \"{path}\"")]
    PolicyText { path: PathBuf, source: ProtectedError },
    #[error("could not use the address of the {what}")]
    Address { what: &'static str, source: SiteError },
    #[error(
        "{what} belongs to one controller, and this one joins others; give the cluster a server, or use its objects"
    )]
    NotShared { what: String },
}

impl StoreOptions {
    /// Opens the stores. No server is asked yet. It blocks: it reads the policy and, for an address with TLS, the system's certificates.
    pub fn open(self, env: &Env) -> Result<Stores, StoresError> {
        let protected = match self.knowledge_policy {
            Some(path) => policy(path)?,
            None => ProtectedDomains::default(),
        };
        let site =
            |what, url: &str, token| Site::new(env, url, token).map_err(|source| StoresError::Address { what, source });
        let memory: Option<Arc<dyn MemoryStore>> = match (self.memory_file, self.memory_url) {
            (Some(path), _) => Some(Arc::new(FileMemory::new(env, &path))),
            (None, Some(url)) => Some(Arc::new(HttpMemory::new(site("memory", &url, self.memory_token)?))),
            (None, None) => None,
        };
        let knowledge: Option<Arc<dyn KnowledgeStore>> =
            match (self.knowledge_folder, self.knowledge_url, self.knowledge_mcp_url) {
                (Some(path), ..) => Some(Arc::new(FolderKnowledge::new(env, &path))),
                (None, Some(url), _) => {
                    Some(Arc::new(HttpKnowledge::new(site("knowledge", &url, self.knowledge_token)?)))
                }
                (None, None, Some(url)) => {
                    Some(Arc::new(McpKnowledge::new(site("knowledge", &url, self.knowledge_token)?)))
                }
                (None, None, None) => None,
            };
        Ok(Stores { memory, knowledge, protected })
    }

    /// Refuses what a controller that joins others cannot use.
    pub fn check_joining(&self) -> Result<(), StoresError> {
        let files = [("the memory", &self.memory_file), ("the knowledge", &self.knowledge_folder)];
        match files.into_iter().find_map(|(what, path)| Some((what, path.as_ref()?))) {
            Some((what, path)) => Err(StoresError::NotShared { what: format!("{what} in \"{}\"", path.display()) }),
            None => Ok(()),
        }
    }
}

fn policy(path: PathBuf) -> Result<ProtectedDomains, StoresError> {
    match atlas_env::read_text(&path, POLICY_BYTES_MAX) {
        Ok(text) => ProtectedDomains::parse(text.as_bytes()).map_err(|source| StoresError::PolicyText { path, source }),
        Err(source) => Err(StoresError::Policy { path, source }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn opened(options: StoreOptions) -> Result<Stores, String> {
        options.open(&Env::system()).map_err(|error| atlas_env::chain(&error))
    }

    #[test]
    fn a_file_comes_before_a_server() {
        let path = Some(PathBuf::from("/nowhere/memory"));
        let url = Some("http://127.0.0.1:9/x".to_owned());
        let place = |options| opened(options).expect("opens").memory.map(|store| store.place().clone());
        let both =
            place(StoreOptions { memory_file: path.clone(), memory_url: url.clone(), ..StoreOptions::default() });
        assert_eq!(both.map(|place| (place.name, place.is_shared)), Some(("/nowhere/memory".to_owned(), false)));
        let server = place(StoreOptions { memory_url: url, ..StoreOptions::default() });
        assert_eq!(server.map(|place| (place.name, place.is_shared)), Some(("127.0.0.1:9".to_owned(), true)));
        assert!(place(StoreOptions::default()).is_none());
        let joining = StoreOptions { memory_file: path, ..StoreOptions::default() };
        assert!(joining.check_joining().is_err() && StoreOptions::default().check_joining().is_ok());
    }

    #[test]
    fn addresses_and_policies_that_cannot_be_used_are_refused() {
        for url in ["", "nowhere", "ftp://a/b", "http://user:pass@a/b", "http://", "http://a/b?c=d"] {
            let options = StoreOptions { knowledge_url: Some(url.to_owned()), ..StoreOptions::default() };
            let error = opened(options).map(drop).expect_err(url);
            assert!(
                error.starts_with("could not use the address of the knowledge: ") && !error.contains("pass"),
                "{error}"
            );
        }
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("policy.yaml");
        let read = || opened(StoreOptions { knowledge_policy: Some(path.clone()), ..StoreOptions::default() });
        assert!(read().map(drop).expect_err("no file").contains("could not read the knowledge policy"));
        std::fs::write(&path, "protected_domains: [physics]").expect("written");
        assert!(read().expect("a policy").protected.0.contains("physics"));
        std::fs::write(&path, "protected_domains: physics").expect("written");
        assert!(read().map(drop).expect_err("no list").contains("protected_domains is not a list of text"));
    }
}
