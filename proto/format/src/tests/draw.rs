//! Generates values of every type from a seed: all variants, empty and full lists, extreme numbers.

mod answers;
mod values;

use std::collections::BTreeMap;
use std::sync::Arc;

use atlas_types::*;

/// What can be drawn. Structs with a table of fields are drawn field by field.
pub(crate) trait Sample {
    /// Draws a value.
    fn sample(draw: &mut Draw) -> Self;
}

/// A source of values: splitmix64.
pub(crate) struct Draw(u64);

impl Draw {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// A value of any type.
    pub(crate) fn value<T: Sample>(&mut self) -> T {
        T::sample(self)
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

    pub(crate) fn pick<T: Clone>(&mut self, all: &[T]) -> T {
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

    fn payload(&mut self) -> Payload {
        let body = match self.flag() {
            true => PayloadBody::Inline(self.bytes()),
            false => PayloadBody::Artifact { digest: self.value(), size_bytes: self.u64() },
        };
        Payload { key_id: self.u32(), body }
    }
}

/// Gives types the samples of expressions.
macro_rules! samples {
    ($($type:ty: |$draw:ident| $value:expr,)*) => {$(
        impl $crate::tests::Sample for $type {
            fn sample($draw: &mut $crate::tests::Draw) -> Self {
                $value
            }
        }
    )*};
}
use samples;

samples! {
    bool: |draw| draw.flag(),
    u8: |draw| draw.bits() as u8,
    u32: |draw| draw.u32(),
    u64: |draw| draw.u64(),
    i64: |draw| draw.i64(),
    u128: |draw| draw.u128(),
    String: |draw| draw.text(),
    Arc<str>: |draw| draw.text().into(),
    Arc<[u8]>: |draw| draw.bytes(),
    Attempt: |draw| Self(draw.value()),
    BootId: |draw| Self(draw.value()),
    ClusterTime: |draw| Self(draw.value()),
    Digest: |draw| Self(draw.value()),
    EventSeq: |draw| Self(draw.value()),
    FencingToken: |draw| Self(draw.value()),
    JobId: |draw| Self(draw.value()),
    MemberId: |draw| Self(draw.value()),
    Micros: |draw| Self(draw.value()),
    NodeEpoch: |draw| Self(draw.value()),
    QuestionId: |draw| Self(draw.value()),
    RunId: |draw| Self(draw.value()),
    Seq: |draw| Self(draw.value()),
    StepKey: |draw| Self(draw.value()),
    Timestamp: |draw| Self(draw.value()),
    AgentName: |draw| draw.agent_name(),
    Channel: |draw| draw.channel(),
    MessageId: |draw| draw.message_id(),
    Namespace: |draw| draw.namespace(),
    NodeId: |draw| draw.node_id(),
    ObjectKind: |draw| draw.object_kind(),
    ObjectName: |draw| draw.object_name(),
    Principal: |draw| draw.principal(),
    RequestId: |draw| draw.request_id(),
    Payload: |draw| draw.payload(),
}

impl<const N: usize> Sample for [u8; N] {
    fn sample(draw: &mut Draw) -> Self {
        draw.array()
    }
}

impl<T: Sample> Sample for Option<T> {
    fn sample(draw: &mut Draw) -> Self {
        draw.option(T::sample)
    }
}

impl<T: Sample> Sample for Vec<T> {
    fn sample(draw: &mut Draw) -> Self {
        draw.list(T::sample)
    }
}

impl<T: Sample> Sample for Arc<T> {
    fn sample(draw: &mut Draw) -> Self {
        Self::new(draw.value())
    }
}

impl<T: Sample> Sample for Box<T> {
    fn sample(draw: &mut Draw) -> Self {
        Self::new(draw.value())
    }
}

impl<K: Sample + Ord, V: Sample> Sample for BTreeMap<K, V> {
    fn sample(draw: &mut Draw) -> Self {
        draw.list(|draw| (draw.value(), draw.value())).into_iter().collect()
    }
}

impl<A: Sample, B: Sample> Sample for (A, B) {
    fn sample(draw: &mut Draw) -> Self {
        (draw.value(), draw.value())
    }
}
