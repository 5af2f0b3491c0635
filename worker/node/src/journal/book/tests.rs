//! Work and the park of its job: what was not asked for before the leader parks the job is left to the next attempt.

use std::cell::Cell;
use std::pin::{Pin, pin};

use atlas_env::Env;
use futures::poll;
use tokio::sync::{mpsc, oneshot};

use super::*;
use crate::attempt::{Resumed, SlotEvent};

/// A clock that a test moves.
#[derive(Default)]
struct ByHand(Mutex<Duration>);

impl ByHand {
    fn pass(&self, seconds: u64) {
        *self.0.lock().expect("not poisoned") += Duration::from_secs(seconds);
    }
}

impl Clock for ByHand {
    fn wall(&self) -> Timestamp {
        Timestamp(0)
    }

    fn monotonic(&self) -> Duration {
        *self.0.lock().expect("not poisoned")
    }

    fn sleep(&self, _: Duration) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        Box::pin(std::future::pending())
    }
}

async fn book() -> (Book, mpsc::Receiver<SlotEvent>) {
    book_in(Env::system()).await
}

async fn book_in(env: Env) -> (Book, mpsc::Receiver<SlotEvent>) {
    let (told, hears) = mpsc::channel(16);
    let clock = Arc::clone(&env.clock);
    (Book::open(Journal::heard_by(told, env), clock).await.expect("a book").0, hears)
}

/// Where the answer to the wait of the job goes.
fn asked(hears: &mut mpsc::Receiver<SlotEvent>) -> oneshot::Sender<Resumed> {
    match hears.try_recv() {
        Ok(SlotEvent::Wait { answer, .. }) => answer,
        other => panic!("{other:?}"),
    }
}

fn a_time() -> Vec<Wait> {
    vec![Wait::Time { at: Timestamp(1) }]
}

#[tokio::test]
async fn work_whose_wait_is_over_goes_on_once_the_job_is_not_parked() {
    for parks in [false, true] {
        let (book, mut hears) = book().await;
        let (over, ends) = oneshot::channel::<()>();
        let went_on = Cell::new(false);
        let mut work = pin!(async {
            let _working = book.begin().await.expect("begun");
            book.wait_since(a_time(), Duration::ZERO, ends).await.expect("over");
            went_on.set(true);
        });
        let mut park = pin!(book.park());
        assert!(poll!(&mut work).is_pending() && poll!(&mut park).is_pending());
        let answer = asked(&mut hears);
        over.send(()).expect("it waits");
        for _ in 0..3 {
            assert!(poll!(&mut work).is_pending() && poll!(&mut park).is_pending());
        }
        assert!(matches!(hears.try_recv(), Ok(SlotEvent::WaitOver { .. })));
        assert!(!went_on.get(), "the leader may have parked the job");
        match parks {
            true => {
                drop(answer);
                assert!(poll!(&mut park).is_ready(), "the attempt ends");
                assert!(!went_on.get());
            }
            false => {
                answer.send(None).expect("the job waits");
                assert!(poll!(&mut park).is_pending() && poll!(&mut work).is_ready());
            }
        }
    }
}

#[tokio::test]
async fn work_that_begins_while_the_leader_is_asked_waits_for_the_answer() {
    let (book, mut hears) = book().await;
    let mut waits = pin!(async {
        let _working = book.begin().await.expect("begun");
        book.wait(a_time(), std::future::pending::<()>()).await;
    });
    let mut park = pin!(book.park());
    assert!(poll!(&mut waits).is_pending() && poll!(&mut park).is_pending());
    let answer = asked(&mut hears);
    let mut begins = pin!(book.begin());
    for _ in 0..3 {
        assert!(poll!(&mut begins).is_pending() && poll!(&mut park).is_pending());
    }
    answer.send(None).expect("the job waits");
    assert!(poll!(&mut park).is_pending() && poll!(&mut begins).is_ready());
}

#[tokio::test]
async fn the_leader_is_not_asked_for_what_was_so_before_the_journal_was_free() {
    let (book, mut hears) = book().await;
    let mut waits = pin!(async {
        let _working = book.begin().await.expect("begun");
        book.wait(a_time(), std::future::pending::<()>()).await;
    });
    assert!(poll!(&mut waits).is_pending());
    let busy = book.journal.lock().await;
    let mut park = pin!(book.park());
    let mut begins = pin!(book.begin());
    assert!(poll!(&mut park).is_pending() && poll!(&mut begins).is_pending());
    drop(busy);
    for _ in 0..3 {
        assert!(poll!(&mut park).is_pending());
    }
    assert!(poll!(&mut begins).is_ready() && hears.try_recv().is_err());
}

#[tokio::test]
async fn work_that_is_cancelled_keeps_the_job_from_no_park() {
    let (book, mut hears) = book().await;
    let wait = async || {
        let _working = book.begin().await.expect("begun");
        book.wait(a_time(), std::future::pending::<()>()).await;
    };
    let mut waits = pin!(wait());
    let mut cancelled = Box::pin(wait());
    let mut works = Box::pin(async {
        let _working = book.begin().await.expect("begun");
        std::future::pending::<()>().await;
    });
    assert!(poll!(&mut waits).is_pending() && poll!(&mut cancelled).is_pending() && poll!(&mut works).is_pending());
    let busy = book.journal.lock().await;
    let mut begins = Box::pin(book.begin());
    assert!(poll!(&mut begins).is_pending());
    drop((begins, cancelled, works));
    drop(busy);
    let mut park = pin!(book.park());
    assert!(poll!(&mut park).is_pending());
    asked(&mut hears);
}

#[tokio::test]
async fn work_that_runs_a_graph_does_not_keep_the_job_from_its_park() {
    let (book, mut hears) = book().await;
    let mut outer = book.begin().await.expect("begun");
    outer.rests();
    let mut inner = Box::pin(async {
        let _working = book.begin().await.expect("begun");
        book.wait(a_time(), std::future::pending::<()>()).await;
    });
    let mut park = pin!(book.park());
    assert!(poll!(&mut inner).is_pending() && poll!(&mut park).is_pending());
    let answer = asked(&mut hears);
    // Its time limit ends the graph, but it goes on only if the job is not parked.
    drop(inner);
    let mut goes_on = Box::pin(outer.goes_on());
    for _ in 0..3 {
        assert!(poll!(&mut goes_on).is_pending() && poll!(&mut park).is_pending());
    }
    answer.send(None).expect("the job waits");
    assert!(poll!(&mut park).is_pending() && poll!(&mut goes_on).is_ready());
    drop(goes_on);
    drop(outer);
    assert_eq!(book.inside().active, 0);
}

#[tokio::test]
async fn what_other_work_took_of_a_try_in_vain_is_used() {
    // For how long other work goes on before the try, in it, and after it has paused again.
    for (before, meanwhile, after, used) in [(0, 9, 0, 9), (2, 0, 0, 2), (3, 4, 5, 12), (0, 0, 0, 0)] {
        let clock = Arc::new(ByHand::default());
        let (book, mut hears) = book_in(Env { clock: Arc::clone(&clock) as _, ..Env::system() }).await;
        let tries = book.begin().await.expect("begun");
        clock.pass(before);
        let calling = book.calling();
        for other in [meanwhile, after] {
            let other_work = book.begin().await.expect("begun");
            clock.pass(other);
            drop(other_work);
            clock.pass(1);
        }
        calling.was_in_vain().await;
        let mut waits = pin!(book.wait(a_time(), std::future::pending::<()>()));
        let mut park = pin!(book.park());
        assert!(poll!(&mut waits).is_pending() && poll!(&mut park).is_pending());
        match hears.try_recv() {
            Ok(SlotEvent::Wait { park, .. }) => assert_eq!(park.used.as_duration(), Duration::from_secs(used)),
            other => panic!("{other:?}"),
        }
        drop(tries);
    }
}

#[test]
fn the_earliest_time_and_any_message_stand_for_the_others() {
    let time = |at| Wait::Time { at: Timestamp(at) };
    let child = |job| Wait::Child { job: atlas_types::JobId(job) };
    let all = [time(9), Wait::Message, child(1), time(3), Wait::Message, child(2)];
    assert_eq!(merged(all.into_iter()), [Wait::Message, child(1), child(2), time(3)]);
}
