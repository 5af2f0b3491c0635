//! Work and the park of its job: what was not asked for before the leader parks the job is left to the next attempt.

use std::cell::Cell;
use std::pin::pin;

use atlas_env::Env;
use futures::poll;
use tokio::sync::{mpsc, oneshot};

use super::*;
use crate::attempt::{Resumed, SlotEvent};

async fn book() -> (Book, mpsc::Receiver<SlotEvent>) {
    let (told, hears) = mpsc::channel(16);
    let env = Env::system();
    let clock = Arc::clone(&env.clock);
    (Book::open(Journal::heard_by(told, env), clock).await.expect("a book"), hears)
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
            book.begin().await.expect("begun");
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
        book.begin().await.expect("begun");
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
        book.begin().await.expect("begun");
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
