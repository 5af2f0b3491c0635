//! Which artifacts the state refers to, and how often: an artifact without a reference here is garbage for the state.
//!
//! A job refers to its payloads and to the package that it is pinned to, which may have been replaced; an agent version to its
//! package, its contract and the packages it had before; a journal to its folded steps and to outcomes that are artifacts; an object to what its kind names.

use atlas_types::{AgentVersion, Digest, Job, Journal, Object, Payload, PayloadBody, Run};

use crate::map::Map;

/// The counts; what nothing refers to is absent.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Artifacts {
    counts: Map<Digest, u64>,
}

impl Artifacts {
    /// One job changed, appeared or went.
    pub(crate) fn job(&mut self, old: Option<&Job>, new: Option<&Job>) {
        if let (Some(old), Some(new)) = (old, new)
            && package(old) == package(new)
            && payloads(old).eq(payloads(new))
        {
            return;
        }
        let of = |job| package(job).into_iter().chain(payloads(job));
        self.change(old.into_iter().flat_map(of), new.into_iter().flat_map(of));
    }

    /// One agent version appeared, changed or went.
    pub(crate) fn agent(&mut self, old: Option<&AgentVersion>, new: Option<&AgentVersion>) {
        let of = |agent: &AgentVersion| {
            let now = [Some(agent.digest), artifact(&agent.contract)].into_iter().flatten();
            now.chain(agent.revisions.iter().map(|revision| revision.digest)).collect::<Vec<_>>()
        };
        self.change(old.into_iter().flat_map(of), new.into_iter().flat_map(of));
    }

    /// One journal appeared, changed or went.
    pub(crate) fn journal(&mut self, old: Option<&Journal>, new: Option<&Journal>) {
        let of = |journal: &Journal| journal.payloads().filter_map(artifact).collect::<Vec<_>>();
        self.change(old.into_iter().flat_map(of), new.into_iter().flat_map(of));
    }

    /// One object appeared, changed or went.
    pub(crate) fn object(&mut self, old: Option<&Object>, new: Option<&Object>) {
        let of = |object: &Object| {
            let kind = atlas_objects::kind(&object.key.kind);
            kind.map(|kind| kind.artifacts(&object.spec)).unwrap_or_default()
        };
        self.change(old.into_iter().flat_map(of), new.into_iter().flat_map(of));
    }

    /// One run changed, appeared or went.
    pub(crate) fn run(&mut self, old: Option<&Run>, new: Option<&Run>) {
        let of = |run: &Run| run.payloads().filter_map(artifact).collect::<Vec<_>>();
        self.change(old.into_iter().flat_map(of), new.into_iter().flat_map(of));
    }

    pub(crate) fn contains(&self, digest: &Digest) -> bool {
        self.counts.contains_key(digest)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = Digest> + '_ {
        self.counts.keys().copied()
    }

    fn change(&mut self, old: impl Iterator<Item = Digest>, new: impl Iterator<Item = Digest>) {
        for digest in new {
            *self.counts.entry(digest).or_default() += 1;
        }
        for digest in old {
            let count = self.counts.entry(digest).or_default();
            *count -= 1;
            if *count == 0 {
                self.counts.remove(&digest);
            }
        }
    }
}

fn package(job: &Job) -> Option<Digest> {
    job.pin.as_ref().map(|pin| pin.digest)
}

fn payloads(job: &Job) -> impl Iterator<Item = Digest> + '_ {
    let own =
        [Some(&job.input), job.output.as_ref(), job.stream.as_deref(), job.context.as_deref()].into_iter().flatten();
    own.chain(job.journal.iter().flat_map(|journal| journal.payloads())).filter_map(artifact)
}

fn artifact(payload: &Payload) -> Option<Digest> {
    match payload.body {
        PayloadBody::Artifact { digest, .. } => Some(digest),
        PayloadBody::Inline(_) => None,
    }
}
