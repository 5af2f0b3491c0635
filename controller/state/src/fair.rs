//! Fair sharing between namespaces: what a start counts, and when the order of a namespace may change.

use atlas_objects::NamespaceSpec;
use atlas_types::{Namespace, ObjectKey, Rejection, Share, Turn, level};

use crate::index::Class;
use crate::state::State;

/// How much noted progress one start forgets. More than one, so that it becomes less.
const FORGOTTEN_MAX: usize = 4;

/// Most waiting jobs of a namespace whose order may still change, because a change moves each of them. Tests have fewer.
const REORDERED_MAX: u64 = if cfg!(test) { 3 } else { 10_000 };

impl State {
    /// The namespaces with waiting jobs, the one whose turn is next first.
    pub fn namespaces_in_turn(&self) -> impl Iterator<Item = &Namespace> {
        self.index.shares.namespaces()
    }

    /// What a namespace has had so far for its weight.
    pub fn share(&self, namespace: &Namespace) -> Share {
        self.index.share_of(namespace)
    }

    /// The weight of a namespace.
    pub fn weight(&self, namespace: &Namespace) -> u32 {
        self.index.weight(namespace)
    }

    /// The progress of the namespaces whose turn is next.
    pub fn progress(&self) -> u64 {
        self.progress
    }

    /// The classes of a namespace, the one with the first job first.
    pub fn classes_of<'a>(&'a self, namespace: &'a Namespace) -> impl Iterator<Item = &'a Class> + 'a {
        self.index.waiting.of_namespace(namespace).map(|class| &**class)
    }

    /// What the waiting classes ask of a node, how deep their jobs were spawned, and whether these wait even if no node could ever run them;
    /// each only once.
    pub fn shapes(&self) -> impl Iterator<Item = &(atlas_types::Demand, u32, bool)> {
        self.index.waiting.shapes()
    }

    /// The turn of a job in its namespace.
    pub fn turn(&self, job: &atlas_types::Job) -> Turn {
        self.index.waiting.turn(job)
    }

    /// Counts the start of a job for its namespace.
    pub(crate) fn count_start(&mut self, namespace: &Namespace) {
        if self.level < level::SHARES || namespace.is_system() {
            return;
        }
        let share = self.share(namespace);
        self.progress = self.progress.max(share.progress);
        let after = share.after_start(self.weight(namespace), self.progress).progress;
        self.progress_of.insert(namespace.clone(), after);
        self.index.progress(namespace, Some(after));
        for _ in 0..FORGOTTEN_MAX {
            // One that is not ahead needs no note: it is taken as no further behind than the others.
            let least = self.index.shares.least().filter(|(progress, _)| *progress <= self.progress);
            let Some((_, namespace)) = least.cloned() else { return };
            self.progress_of.remove(&namespace);
            self.index.progress(&namespace, None);
        }
    }

    /// Refuses to change the order of more waiting jobs than one command should move.
    pub(crate) fn check_order(&self, key: &ObjectKey, new: Option<&[u8]>) -> Result<(), Rejection> {
        if key.kind.as_str() != "namespace" {
            return Ok(());
        }
        let Ok(namespace) = Namespace::new(key.name.as_str()) else { return Ok(()) };
        let aging = new.and_then(|spec| NamespaceSpec::read(spec).ok()).and_then(|spec| spec.aging());
        let changes = self.index.waiting.aging(&namespace) != aging;
        if changes && self.pending_of(&namespace) > REORDERED_MAX {
            return Err(Rejection::ObjectInUse { what: "waiting jobs, whose order would change" });
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use crate::tests::check;

    #[test]
    fn the_order_of_few_waiting_jobs_can_change() {
        check(
            r#"level 6; agent a; node n1 places=1; job j1; job j2 priority=1 -- clock 60; job j3 priority=2; first;
            put namespace default {"aging_seconds":10}; first; put namespace default {}; first; job j4;
            put namespace default {"aging_seconds":10}; put namespace default {"weight":2}"#,
            expect![[r#"
                j3 Submitted pending→pending Queued
                first j3
                namespace default uid 6 revision 6 {"aging_seconds":10}
                first j2
                namespace default uid 6 revision 7 {}
                first j3
                j4 Submitted pending→pending Queued
                ! the object is in use by waiting jobs, whose order would change
                namespace default uid 6 revision 9 {"weight":2}
            "#]],
        );
    }

    #[test]
    fn namespaces_take_turns_by_their_weight() {
        check(
            r#"level 6; agent a ns=x; agent a ns=y; node n1 places=9; put namespace y {"weight":2}; job j1 ns=x; job j2 ns=x; job j3 ns=x;
            job j4 ns=y; job j5 ns=y; job j6 ns=y -- turns; grant j1 n1; turns; grant j4 n1; turns; grant j5 n1; turns;
            complete j1; turns; complete j4; complete j5; turns"#,
            expect![[r#"
                turns x y
                j1 Granted pending→running on n1 token 1 attempt 1
                turns y x
                j4 Granted pending→running on n1 token 2 attempt 1
                turns y x
                j5 Granted pending→running on n1 token 3 attempt 1
                turns x y
                j1 Ended running→completed
                turns x y
                j4 Ended running→completed
                j5 Ended running→completed
                turns x y
            "#]],
        );
    }
}
