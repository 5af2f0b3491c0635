//! Remembered requests: a repeat within the retention gets the first answer again (B.2, B.3).
//!
//! There are two classes. Keys of clients are remembered as long as promised. Keys that controllers generate to repeat
//! a request after a change of leadership are remembered only as long as a request can wait, and must not displace the
//! others.
//!
//! A full class drops its oldest key instead of refusing the newest, which would lock out clients with keys for a day.
//! Dropped keys of clients are counted.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use atlas_types::{
    ClusterConfig, ClusterTime, Level, Micros, Namespace, Origin, Outcome, Principal, Rejection, RequestId,
    RequestImage, level,
};

use crate::map::{Map, Set};

/// Most expired requests that one entry forgets, so that no entry pays for a long silence.
const FORGOTTEN_PER_ENTRY_MAX: usize = 64;

/// How long a generated name is remembered: a caller waits for a leader for seconds.
const GENERATED_RETENTION: Micros = Micros::from_secs(60);

/// Most generated names.
const GENERATED_MAX: u64 = 100_000;

/// What names a request.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Key {
    namespace: Namespace,
    principal: Principal,
    request_id: RequestId,
}

impl Key {
    /// A number to find the key by. Others may have the same, so a lookup compares the key as well; it is never
    /// written down and nothing is ordered by it that anybody sees.
    fn fingerprint(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        self.hash(&mut hasher);
        hasher.finish()
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Remembered {
    key: Key,
    body_hash: u64,
    at: ClusterTime,
    outcome: Outcome,
}

/// The table, bounded by time and count.
#[derive(Debug, Clone, Default)]
pub(crate) struct Dedupe {
    /// What clients named, oldest first. The numbers are local to this table and never the same in both classes: only their order
    /// counts, so they are not in the image.
    named: Map<u64, Arc<Remembered>>,
    /// What controllers named themselves.
    generated: Map<u64, Arc<Remembered>>,
    /// Fingerprint and number: what random keys lead through holds numbers only, which are cheap to copy.
    numbers: Set<(u64, u64)>,
    last: u64,
    /// What clients named and was forgotten before its time, to make room. For those who look after the cluster: it is in no image,
    /// and nothing depends on it.
    forgotten_early: u64,
}

impl Dedupe {
    /// The first answer to this request, if it is remembered.
    pub(crate) fn answer(&self, origin: &Origin) -> Option<Result<Outcome, Rejection>> {
        let found = self.find(&key(origin)?)?;
        if found.body_hash != origin.body_hash {
            return Some(Err(Rejection::RequestConflict));
        }
        Some(Ok(match found.outcome {
            Outcome::Submitted { job, .. } => Outcome::Submitted { job, repeated: true },
            ref other => other.clone(),
        }))
    }

    /// Remembers an accepted request; the oldest of its class make room.
    pub(crate) fn remember(
        &mut self,
        origin: &Origin,
        outcome: &Outcome,
        at: ClusterTime,
        config: &ClusterConfig,
        level: Level,
    ) {
        let Some(key) = key(origin) else { return };
        let class = Class::of(&key.request_id, level);
        let max = class.max(config);
        while self.len_of(class) > max.saturating_sub(1) {
            let oldest = self.oldest(class).map(|(_, oldest)| oldest);
            let early = |oldest: Arc<Remembered>| {
                !oldest.key.request_id.is_generated() && at.since(oldest.at) <= config.dedupe_retention
            };
            self.forgotten_early += u64::from(oldest.is_some_and(early));
            self.forget_oldest(class);
        }
        if max > 0 {
            self.insert(key, origin.body_hash, at, outcome.clone());
        }
    }

    /// Forgets the oldest of what clients named until at most `count` are left.
    pub(crate) fn trim(&mut self, count: u64, level: Level) {
        let class = Class::named(level);
        while self.len_of(class) > count {
            self.forget_oldest(class);
        }
    }

    /// The level rises: more generated names than their class has room for are forgotten once for all.
    pub(crate) fn raise(&mut self, from: Level, to: Level) {
        if from < level::TRIMMED_NAMES && to >= level::TRIMMED_NAMES {
            while self.len_of(Class::Generated) > GENERATED_MAX {
                self.forget_oldest(Class::Generated);
            }
        }
    }

    /// Forgets some of those whose retention has passed.
    pub(crate) fn expire(&mut self, now: ClusterTime, config: &ClusterConfig, level: Level) {
        for &class in Class::all(level) {
            for _ in 0..FORGOTTEN_PER_ENTRY_MAX {
                let oldest = self.oldest(class).map(|(_, oldest)| oldest.at);
                if oldest.is_none_or(|at| now.since(at) <= class.retention(config)) {
                    break;
                }
                self.forget_oldest(class);
            }
        }
    }

    pub(crate) fn forgotten_early(&self) -> u64 {
        self.forgotten_early
    }

    pub(crate) fn len(&self) -> u64 {
        (self.named.len() + self.generated.len()) as u64
    }

    /// Whether the number is within the limit.
    pub(crate) fn is_bounded(&self, config: &ClusterConfig, level: Level) -> bool {
        // What was remembered below the level of the classes was bounded as a whole: until something is remembered, or the level
        // trims, there may be more generated names than their class has room for.
        let untrimmed = |class: Class| class == Class::Generated && level < level::TRIMMED_NAMES;
        Class::all(level).iter().all(|&class| untrimmed(class) || self.len_of(class) <= class.max(config))
    }

    /// True if each request is found by its name in its class, and none is younger than a later one.
    pub(crate) fn is_consistent(&self) -> bool {
        let ordered = |table: &Map<u64, Arc<Remembered>>, generated: bool| {
            let mut at = ClusterTime::default();
            table.iter().all(|(number, found)| {
                let ordered = self.numbers.contains(&(found.key.fingerprint(), *number)) && found.at >= at;
                at = found.at;
                ordered && found.key.request_id.is_generated() == generated
            })
        };
        ordered(&self.named, false) && ordered(&self.generated, true) && self.len() == self.numbers.len() as u64
    }

    pub(crate) fn to_image(&self) -> Vec<RequestImage> {
        let image = |found: &Arc<Remembered>| RequestImage {
            namespace: found.key.namespace.clone(),
            principal: found.key.principal.clone(),
            request_id: found.key.request_id.clone(),
            body_hash: found.body_hash,
            at: found.at,
            outcome: found.outcome.clone(),
        };
        let mut all: Vec<_> = self.named.iter().chain(self.generated.iter()).collect();
        all.sort_unstable_by_key(|(number, _)| **number);
        all.into_iter().map(|(_, found)| image(found)).collect()
    }

    /// Of requests that are there twice, the first alone.
    pub(crate) fn from_image(images: Vec<RequestImage>) -> Self {
        let mut table = Self::default();
        for RequestImage { namespace, principal, request_id, body_hash, at, outcome } in images {
            let key = Key { namespace, principal, request_id };
            if table.find(&key).is_none() {
                table.insert(key, body_hash, at, outcome);
            }
        }
        table
    }

    fn find(&self, key: &Key) -> Option<&Arc<Remembered>> {
        let fingerprint = key.fingerprint();
        let same = self.numbers.range((fingerprint, 0)..=(fingerprint, u64::MAX));
        let table = if key.request_id.is_generated() { &self.generated } else { &self.named };
        same.filter_map(|(_, number)| table.get(number)).find(|found| found.key == *key)
    }

    fn insert(&mut self, key: Key, body_hash: u64, at: ClusterTime, outcome: Outcome) {
        self.last += 1;
        self.numbers.insert((key.fingerprint(), self.last));
        let table = if key.request_id.is_generated() { &mut self.generated } else { &mut self.named };
        table.insert(self.last, Arc::new(Remembered { key, body_hash, at, outcome }));
    }

    fn len_of(&self, class: Class) -> u64 {
        match class {
            Class::Any => self.len(),
            Class::Named => self.named.len() as u64,
            Class::Generated => self.generated.len() as u64,
        }
    }

    fn oldest(&self, class: Class) -> Option<(u64, Arc<Remembered>)> {
        let named = self.named.get_min().filter(|_| class != Class::Generated);
        let generated = self.generated.get_min().filter(|_| class != Class::Named);
        named.into_iter().chain(generated).min_by_key(|(number, _)| *number).cloned()
    }

    fn forget_oldest(&mut self, class: Class) {
        let Some((number, oldest)) = self.oldest(class) else { return };
        self.named.remove(&number);
        self.generated.remove(&number);
        self.numbers.remove(&(oldest.key.fingerprint(), number));
    }
}

/// Requests that are counted and kept together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Class {
    /// All of them, below the level of the classes.
    Any,
    Named,
    Generated,
}

impl Class {
    fn all(level: Level) -> &'static [Self] {
        if level < level::GENERATED_NAMES { &[Self::Any] } else { &[Self::Named, Self::Generated] }
    }

    fn named(level: Level) -> Self {
        if level < level::GENERATED_NAMES { Self::Any } else { Self::Named }
    }

    fn of(id: &RequestId, level: Level) -> Self {
        if id.is_generated() && level >= level::GENERATED_NAMES { Self::Generated } else { Self::named(level) }
    }

    fn max(self, config: &ClusterConfig) -> u64 {
        if self == Self::Generated { GENERATED_MAX } else { config.dedupe_max }
    }

    fn retention(self, config: &ClusterConfig) -> Micros {
        if self == Self::Generated { GENERATED_RETENTION } else { config.dedupe_retention }
    }
}

fn key(origin: &Origin) -> Option<Key> {
    let request_id = origin.request_id.clone()?;
    Some(Key { namespace: origin.namespace.clone(), principal: origin.principal.clone(), request_id })
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;

    #[test]
    fn a_name_that_makes_room_before_its_time_is_counted() {
        let config =
            ClusterConfig { dedupe_max: 2, dedupe_retention: Micros::from_secs(10), ..ClusterConfig::default() };
        let mut table = Dedupe::default();
        let mut told = String::new();
        let mut remember = |name: RequestId, second: u64| {
            let mut origin = Origin::duty(Namespace::default_namespace());
            origin.request_id = Some(name);
            table.remember(&origin, &Outcome::Done, ClusterTime(second * 1_000_000), &config, Level::CURRENT);
            let (remembered, early) = (table.len(), table.forgotten_early());
            told += &format!("{second} s: {remembered} remembered, {early} forgotten early\n");
        };
        let named = |name: &str| RequestId::new(name).expect("a name");
        remember(named("a"), 0);
        remember(named("b"), 1);
        // There is room for it beside the others.
        remember(RequestId::generated(1), 2);
        remember(named("c"), 3);
        // Its time is over anyway.
        remember(named("d"), 12);
        expect![[r#"
            0 s: 1 remembered, 0 forgotten early
            1 s: 2 remembered, 0 forgotten early
            2 s: 3 remembered, 0 forgotten early
            3 s: 3 remembered, 1 forgotten early
            12 s: 3 remembered, 1 forgotten early
        "#]]
        .assert_eq(&told);
    }
}
