//! Generates values of every type from a seed: all variants, empty and full lists, extreme numbers.

mod commands;
mod values;

use std::collections::BTreeMap;
use std::sync::Arc;

use atlas_types::*;

/// A source of values: splitmix64.
pub(crate) struct Draw(u64);

impl Draw {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    fn below(&mut self, end: u64) -> u64 {
        self.bits() % end
    }

    fn flag(&mut self) -> bool {
        self.bits() & 1 == 1
    }

    /// Small, zero and extreme numbers alike.
    fn u64(&mut self) -> u64 {
        match self.below(4) {
            0 => 0,
            1 => self.below(300),
            2 => self.bits(),
            _ => u64::MAX,
        }
    }

    fn u32(&mut self) -> u32 {
        (self.u64() & u64::from(u32::MAX)) as u32
    }

    fn i64(&mut self) -> i64 {
        self.u64() as i64
    }

    fn pick<T: Clone>(&mut self, all: &[T]) -> T {
        all[self.below(all.len() as u64) as usize].clone()
    }

    fn option<T>(&mut self, draw: fn(&mut Self) -> T) -> Option<T> {
        self.flag().then(|| draw(self))
    }

    fn list<T>(&mut self, draw: fn(&mut Self) -> T) -> Vec<T> {
        (0..self.below(4)).map(|_| draw(self)).collect()
    }

    fn text(&mut self) -> String {
        self.list(|draw| draw.pick(&['a', 'Z', '0', '-', 'é', ' ', '🦀'])).into_iter().collect()
    }

    fn bytes(&mut self) -> Arc<[u8]> {
        self.list(|draw| draw.bits() as u8).into()
    }

    fn array<const N: usize>(&mut self) -> [u8; N] {
        std::array::from_fn(|_| self.bits() as u8)
    }

    fn u128(&mut self) -> u128 {
        u128::from(self.u64()) << 64 | u128::from(self.u64())
    }

    fn micros(&mut self) -> Micros {
        Micros(self.u64())
    }

    fn job_id(&mut self) -> JobId {
        JobId(self.u64())
    }

    fn token(&mut self) -> FencingToken {
        FencingToken(self.u64())
    }

    fn namespace(&mut self) -> Namespace {
        Namespace::new(self.pick(&["default", "team a", "é"])).expect("a name")
    }

    fn agent_name(&mut self) -> AgentName {
        AgentName::new(self.pick(&["echo", "a.b-c", "a b/c", "🦀"])).expect("a name")
    }

    fn node_id(&mut self) -> NodeId {
        NodeId::new(self.pick(&["n1", "gpu-box.example"])).expect("a name")
    }

    fn principal(&mut self) -> Principal {
        Principal::new(self.pick(&["local", "cluster"])).expect("a name")
    }

    fn request_id(&mut self) -> RequestId {
        RequestId::new(self.pick(&["r1", "0190-abc"])).expect("a name")
    }

    fn digest(&mut self) -> Digest {
        Digest(self.array())
    }

    fn version(&mut self) -> Version {
        Version { major: self.u64(), minor: self.u64(), patch: self.u64() }
    }

    fn labels(&mut self) -> BTreeMap<String, String> {
        self.list(|draw| (draw.text(), draw.text())).into_iter().collect()
    }

    fn payload(&mut self) -> Payload {
        let body = match self.flag() {
            true => PayloadBody::Inline(self.bytes()),
            false => PayloadBody::Artifact { digest: self.digest(), size_bytes: self.u64() },
        };
        Payload { key_id: self.u32(), body }
    }

    fn failure_kind(&mut self) -> FailureKind {
        use FailureKind::*;
        self.pick(&[
            Agent,
            NoAgent,
            InputInvalid,
            OutputInvalid,
            Startup,
            Timeout,
            QueueTimeout,
            Unsatisfiable,
            Rejected,
            Dependency,
            LeaseLost,
            Internal,
        ])
    }

    fn failure(&mut self) -> Failure {
        Failure { kind: self.failure_kind(), error: self.text().into() }
    }

    fn usage(&mut self) -> Usage {
        Usage { warmup: self.micros(), execution: self.micros(), warm: self.flag(), idle: self.u32() }
    }

    fn door(&mut self) -> Door {
        self.pick(&[Door::Http, Door::Worker, Door::Duty, Door::Peer, Door::Mcp, Door::Local])
    }

    fn trace(&mut self) -> TraceContext {
        TraceContext { trace_id: self.u128(), span_id: self.u64(), flags: self.bits() as u8 }
    }

    fn origin(&mut self) -> Origin {
        Origin {
            namespace: self.namespace(),
            principal: self.principal(),
            door: self.door(),
            request_id: self.option(Self::request_id),
            body_hash: self.u64(),
            trace: self.option(Self::trace),
        }
    }
}
