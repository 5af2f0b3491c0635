//! What goes on: events, lines and changes as they come.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use expect_test::expect_file;

use crate::first_minutes::HELLO;
use crate::laptop::Laptop;

#[test]
fn events_of_a_type() {
    let laptop = Laptop::with(&[&HELLO]);
    let mut session = laptop.session("Events of a type");
    while_jobs_run(&laptop, || {
        session.run("atlasctl event tail --type leased --limit 1");
        session.run("atlasctl event tail --type granted --limit 1");
        session.run("atlasctl event tail --type accepted --limit 1 -o 'template={change}: {new_status}'");
    });
    session.run("atlasctl event tail --type finished");
    expect_file!["../transcripts/events.txt"].assert_eq(&session.page());
}

/// Runs one job after the other while `look` looks, so that something happens at any moment.
fn while_jobs_run(laptop: &Laptop, look: impl FnOnce()) {
    struct Over<'a>(&'a AtomicBool);
    impl Drop for Over<'_> {
        fn drop(&mut self) {
            self.0.store(true, Ordering::Relaxed);
        }
    }
    let over = AtomicBool::new(false);
    thread::scope(|scope| {
        // Also when `look` panics: the scope waits for the thread.
        let _over = Over(&over);
        scope.spawn(|| {
            let mut jobs = laptop.session("");
            while !over.load(Ordering::Relaxed) {
                jobs.quiet("atlasctl run hello name=Ada");
            }
        });
        look();
    });
}
