//! Steps of a program: a third user of the two functions, over both kinds of journals.

use atlas_env::Env;
use atlas_types::{StepUsage, StepsResult};
use futures::future::join;
use tokio::sync::mpsc;

use super::*;
use crate::attempt::SlotEvent;
use crate::journal::{Book, Entry, hashed};

/// What a program calls a step.
fn key(name: &str) -> StepKey {
    hashed(&("program step", name))
}

/// Answers that all steps were recorded, and returns them at the end.
async fn recording(mut hears: mpsc::Receiver<SlotEvent>) -> Vec<(StepKind, StepKey)> {
    let mut recorded = Vec::new();
    while let Some(event) = hears.recv().await {
        match event {
            SlotEvent::Journal { entry: Entry::Steps { steps, .. }, answer, .. } => {
                recorded.extend(steps.iter().map(|step| (step.kind, step.key)));
                answer.send(StepsResult::Applied).expect("it waits");
            }
            // A job that does not drain goes on.
            SlotEvent::Wait { answer, .. } => answer.send(None).expect("it waits"),
            _ => {}
        }
    }
    recorded
}

async fn paid(journal: &mut impl Steps, name: &str, made_times: &mut u32) -> Arc<[u8]> {
    let make = || async move {
        *made_times += 1;
        made(&*made_times)
    };
    once(journal, (StepKind::Effect, key(name)), make).await.expect("recorded")
}

async fn sent(journal: &mut impl Steps, attempt: u32, in_doubt: &mut Option<bool>) {
    let intent = Intent { attempt, tools: vec!["mail".to_owned()] };
    let make = |doubt: bool| async move {
        *in_doubt = Some(doubt);
        Ok::<_, JournalError>(Made { outcome: b"null".to_vec(), usage: StepUsage::default() })
    };
    let step = (StepKind::Effect, key("mail"));
    at_most_once(journal, (hashed(&("intent", key("mail").0)), &intent), step, make).await.expect("recorded");
}

async fn book(told: mpsc::Sender<SlotEvent>) -> Book {
    Book::open(Journal::heard_by(told, Env::system()), Env::system().clock).await.expect("a book").0
}

#[tokio::test]
async fn a_step_is_made_once_and_found_again() {
    let (told, hears) = mpsc::channel(16);
    let in_order = async {
        let (mut journal, mut made_times) = (Journal::heard_by(told, Env::system()), 0);
        assert_eq!(&*paid(&mut journal, "pay", &mut made_times).await, b"1");
        assert_eq!(&*paid(&mut journal, "pay", &mut made_times).await, b"2", "it is another step");
    };
    let ((), steps) = join(in_order, recording(hears)).await;
    assert_eq!(steps, [(StepKind::Effect, key("pay")); 2]);
    let (told, hears) = mpsc::channel(16);
    let by_key = async {
        let (book, mut made_times) = (book(told).await, 0);
        for name in ["pay", "pay", "pay more", "pay"] {
            let expected: &[u8] = if name == "pay" { b"1" } else { b"2" };
            assert_eq!(&*paid(&mut &book, name, &mut made_times).await, expected);
        }
    };
    let ((), steps) = join(by_key, recording(hears)).await;
    assert_eq!(steps, [(StepKind::Effect, key("pay")), (StepKind::Effect, key("pay more"))]);
}

#[tokio::test]
async fn what_an_earlier_attempt_may_have_done_is_in_doubt() {
    for (earlier, expected) in [(None, Some(false)), (Some(1), Some(true)), (Some(2), Some(false))] {
        let (told, hears) = mpsc::channel(16);
        let work = async {
            let book = book(told).await;
            if let Some(attempt) = earlier {
                let intent = made(&Intent { attempt, tools: Vec::new() }).expect("JSON").outcome;
                let intent_key = hashed(&("intent", key("mail").0));
                book.record(StepKind::Intent, intent_key, intent, StepUsage::default()).await.expect("recorded");
            }
            let (mut in_doubt, mut again) = (None, None);
            sent(&mut &book, 2, &mut in_doubt).await;
            sent(&mut &book, 3, &mut again).await;
            assert_eq!(again, None, "it has an outcome");
            in_doubt
        };
        let (in_doubt, steps) = join(work, recording(hears)).await;
        assert_eq!((in_doubt, steps.len()), (expected, 2), "{earlier:?}");
    }
}
