//! The agents of the cluster that ask MCP servers and models, and that call models for document bases and for clients. Only the packages that this program
//! contains are run, whatever a namespace has under their names.

use std::sync::LazyLock;

use atlas_mcp_spec::CHECK_CONTRACT;
use atlas_model::{CALL_CONTRACT, CHAT_CONTRACT, DOCUMENTS_CONTRACT, PROBE_CONTRACT};
use atlas_package::PackFile;
use atlas_pages::COLLECT_CONTRACT;
use atlas_state::State;
use atlas_types::{AgentName, Digest, Job, Namespace, Version};
use bytes::Bytes;
use serde_json::Value;

use crate::{Error, Submission};

/// The agent that asks a server.
static CHECK: LazyLock<Option<OwnAgent>> = LazyLock::new(|| OwnAgent::read(CHECK_CONTRACT));
/// The agent that asks a model.
static PROBE: LazyLock<Option<OwnAgent>> = LazyLock::new(|| OwnAgent::read(PROBE_CONTRACT));
/// The agent that calls models for document bases.
static DOCUMENTS: LazyLock<Option<OwnAgent>> = LazyLock::new(|| OwnAgent::read(DOCUMENTS_CONTRACT));
/// The agent that makes one model call.
static CALL: LazyLock<Option<OwnAgent>> = LazyLock::new(|| OwnAgent::read(CALL_CONTRACT));
/// The agent that answers messages with a model.
static CHAT: LazyLock<Option<OwnAgent>> = LazyLock::new(|| OwnAgent::read(CHAT_CONTRACT));
/// The agent that reads sources of document bases.
static COLLECTOR: LazyLock<Option<OwnAgent>> = LazyLock::new(|| OwnAgent::read(COLLECT_CONTRACT));

/// An agent that is part of this program.
#[derive(Debug)]
pub(crate) struct OwnAgent {
    pub(crate) name: AgentName,
    pub(crate) version: Version,
    pub(crate) digest: Digest,
    pub(crate) package: Bytes,
}

/// What a namespace has under the name and version of such an agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Standing {
    Ready,
    /// Nothing, or this package, retired.
    Missing,
    /// Another package, which is not run.
    Foreign,
}

impl OwnAgent {
    fn read(contract: &str) -> Option<Self> {
        let file = PackFile { path: "agent.yaml".to_owned(), bytes: contract.into(), executable: false };
        let packed = atlas_package::pack_files(vec![file]).ok()?;
        let (name, version) = (packed.contract.name.clone(), packed.contract.version);
        Some(Self { name, version, digest: packed.digest, package: packed.bytes.into() })
    }

    pub(crate) fn standing(&self, state: &State, namespace: &Namespace) -> Standing {
        match state.agent(namespace, &self.name, self.version) {
            Some(agent) if agent.digest != self.digest => Standing::Foreign,
            Some(agent) if !agent.retired => Standing::Ready,
            _ => Standing::Missing,
        }
    }

    /// A job of exactly this version.
    pub(crate) fn submission(&self, input: &Value, priority: i64) -> Submission {
        let submission = Submission::new(self.name.clone(), Bytes::from(input.to_string()));
        Submission { version: Some(self.version.to_string()), priority, refuse: true, ..submission }
    }

    /// Whether a job runs this package.
    pub(crate) fn runs(&self, job: &Job) -> bool {
        job.agent == self.name && job.pin.as_ref().is_some_and(|pin| pin.digest == self.digest)
    }

    /// Why nobody asks where another package has the place of this agent.
    pub(crate) fn foreign(&self) -> String {
        let Self { name, version, .. } = self;
        format!("{name} {version} of this namespace is not the cluster's own agent; retire and delete it")
    }
}

/// The agent that asks servers.
pub(crate) fn check() -> Result<&'static OwnAgent, Error> {
    CHECK.as_ref().ok_or(Error::Internal)
}

/// The agent that asks models.
pub(crate) fn probe() -> Result<&'static OwnAgent, Error> {
    PROBE.as_ref().ok_or(Error::Internal)
}

/// The agent that calls models for document bases.
pub(crate) fn documents() -> Result<&'static OwnAgent, Error> {
    DOCUMENTS.as_ref().ok_or(Error::Internal)
}

/// The agent that makes one model call.
pub(crate) fn call() -> Result<&'static OwnAgent, Error> {
    CALL.as_ref().ok_or(Error::Internal)
}

/// The agent that answers messages with a model.
pub(crate) fn chat() -> Result<&'static OwnAgent, Error> {
    CHAT.as_ref().ok_or(Error::Internal)
}

/// The agent that reads sources of document bases.
pub(crate) fn collector() -> Result<&'static OwnAgent, Error> {
    COLLECTOR.as_ref().ok_or(Error::Internal)
}

#[cfg(test)]
mod tests {
    use atlas_identity::is_named_so;
    use expect_test::expect;

    use super::*;

    /// Namespaces keep the package of a version for good: a changed contract needs a new version.
    #[test]
    fn a_changed_agent_has_a_new_version() {
        let told = [check(), probe(), documents(), collector(), call(), chat()].map(|own| {
            let OwnAgent { name, version, digest, .. } = own.expect("a package");
            assert!(is_named_so(name));
            format!("{name} {version} {digest}\n")
        });
        expect![[r#"
            mcp-check 1.0.0 sha256:5c56f343530d4d48432ad1ac54de626d3faef65375dac95642103072d244d68f
            model-probe 1.0.0 sha256:413eac6319ee5731b1a92c6c3e7b5d31c05a5de7e9b264bc61441cf43230f14c
            document-models 1.0.0 sha256:fdbf6460ab4fbade19bd9e3b1d30e19a820409e22d722ff0ace1c0e7f28f7f4a
            document-collector 1.0.0 sha256:5b10c385829f3ec14457778520de4956cf29dbf8df40824b300f3f74738501e8
            model-call 1.0.0 sha256:46198d376817410b42a1ebe010c9cf03b8bea54f353becc2926613a9ebfd8988
            model-chat 1.0.0 sha256:58397577ab4843bb3d5dde7ee6eaa3aa9c6d2d2582ebbe9477668cc5efd4b09e
        "#]]
        .assert_eq(&told.concat());
    }
}
