//! Memory and knowledge through the service: repeats, history, and many entries at once.

use atlas_api::types::{KnowledgeDraft, SummaryOf};
use futures::future::join_all;

use super::{Node, caller};
use crate::testing::Net;
use crate::{Acl, Consistency, Error, KnowledgeError, MemoryScope, WriteKey};

const HERE: MemoryScope = MemoryScope::Namespace;

impl Node {
    async fn write(&self, number: u128, text: &str, replaces: bool) -> Result<(), Error> {
        self.service.library().write_memory(&caller(), &HERE, text, replaces, WriteKey::random(number), None).await
    }

    async fn text(&self) -> String {
        self.service.library().memory(&caller(), &HERE, Consistency::Linearizable).await.expect("a memory").text
    }
}

#[tokio::test]
async fn a_key_is_for_one_text() {
    let net = Net::new(1);
    let node = Node::start(&net, 1).await;
    node.write(1, "a", false).await.expect("written");
    node.write(1, "a", false).await.expect("a repeat");
    assert!(matches!(node.write(1, "b", false).await, Err(Error::RequestConflict)));
    assert!(matches!(node.write(1, "a", true).await, Err(Error::RequestConflict)));
    assert_eq!(node.text().await, "a\n");
    let draft = |content: &str| KnowledgeDraft { content: content.to_owned(), ..KnowledgeDraft::default() };
    let (library, acl) = (node.service.library(), Acl::everything());
    let stored = library.store(&caller(), draft("a"), &acl, WriteKey::random(7 << 64), None).await.expect("stored");
    let again = library.store(&caller(), draft("a"), &acl, WriteKey::random(7 << 64), None).await.expect("a repeat");
    assert_eq!(stored, again);
    let other = library.store(&caller(), draft("b"), &acl, WriteKey::random(7 << 64), None).await;
    assert!(matches!(other, Err(KnowledgeError::Cluster(Error::RequestConflict))), "{other:?}");
}

#[tokio::test]
async fn appends_at_once_are_all_there_and_the_history_is_bounded() {
    let net = Net::new(1);
    let node = Node::start(&net, 1).await;
    let texts: Vec<String> = (0..300).map(|number| number.to_string()).collect();
    let appends = texts.iter().zip(0u128..).map(|(text, key)| node.write(key, text, false));
    assert!(join_all(appends).await.iter().all(Result::is_ok));
    let mut lines: Vec<u32> = node.text().await.lines().map(|line| line.parse().expect("a number")).collect();
    lines.sort_unstable();
    assert_eq!(lines, (0..300).collect::<Vec<_>>());

    node.write(1_000, "short", true).await.expect("written");
    assert_eq!(node.text().await, "short");
    let library = node.service.library();
    let kept = library.memory_entries(&caller(), &HERE, Consistency::Linearizable).await.expect("entries");
    let replaced = kept.iter().filter(|entry| entry.replaced).count();
    assert_eq!((replaced, kept.len()), (100, 101), "the latest that were replaced are the history");

    assert!(library.clear_memory(&caller(), &HERE).await.expect("cleared"));
    assert!(!library.clear_memory(&caller(), &HERE).await.expect("nothing to clear"));
    assert_eq!(node.text().await, "");
}

impl Node {
    /// The entries that are no history, as `(text, is a summary)`, and what a summary of the first ones names.
    async fn live(&self, count: usize) -> (Vec<(String, bool)>, SummaryOf) {
        let library = self.service.library();
        let entries = library.memory_entries(&caller(), &HERE, Consistency::Linearizable).await.expect("entries");
        let live: Vec<_> = entries.into_iter().filter(|entry| !entry.replaced).collect();
        let of =
            SummaryOf { first: live[0].id.clone(), last: live[count - 1].id.clone(), entries: count as u64, job: None };
        (live.into_iter().map(|entry| (entry.text, entry.summary)).collect(), of)
    }

    async fn compact(&self, text: &str, of: &SummaryOf) -> Result<(), Error> {
        self.service.library().compact_memory(&caller(), &HERE, text, of).await
    }
}

#[tokio::test]
async fn a_summary_takes_the_place_of_the_oldest_entries() {
    let net = Net::new(1);
    let node = Node::start(&net, 1).await;
    for (key, text) in (0..).zip(["likes tea", "drinks tea every day", "lives in Bern", "has a dog"]) {
        node.write(key, text, false).await.expect("written");
    }
    let (_, of) = node.live(3).await;
    // What is appended while the summary is written stays, and so does the newest entry.
    node.write(9, "moved to Rome", false).await.expect("written");
    node.compact(" tea; Bern\n", &of).await.expect("compacted");
    assert_eq!(node.text().await, "tea; Bern\nhas a dog\nmoved to Rome\n");
    let (live, _) = node.live(1).await;
    assert_eq!(live.iter().filter(|(_, summary)| *summary).count(), 1);
    assert_eq!(live[0], ("tea; Bern".to_owned(), true));
    node.compact("tea; Bern", &of).await.expect("a repeat");
    assert!(matches!(node.compact("another", &of).await, Err(Error::MemoryChanged)));
    assert_eq!(node.text().await, "tea; Bern\nhas a dog\nmoved to Rome\n");

    // A summary of a summary, up to an entry behind it, and one of the summary alone.
    let (_, of) = node.live(2).await;
    node.compact("tea; Bern; dog", &of).await.expect("compacted");
    assert_eq!(node.text().await, "tea; Bern; dog\nmoved to Rome\n");
    let (_, of) = node.live(1).await;
    node.compact("tea; Rome", &of).await.expect("compacted");
    node.write(10, "sold the dog", false).await.expect("written");
    assert_eq!(node.text().await, "tea; Rome\nmoved to Rome\nsold the dog\n");
    // A key that was compacted is still known.
    node.write(0, "likes tea", false).await.expect("a repeat");
    assert_eq!(node.text().await, "tea; Rome\nmoved to Rome\nsold the dog\n");
}

#[tokio::test]
async fn a_summary_that_does_not_fit_changes_nothing() {
    let net = Net::new(1);
    let node = Node::start(&net, 1).await;
    for (key, text) in (0..).zip(["a", "b", "c"]) {
        node.write(key, text, false).await.expect("written");
    }
    let (_, of) = node.live(2).await;
    for (text, why) in
        [(" \n", "the summary is empty"), ("longer", "the summary has 6 bytes, and what it would replace has only 4")]
    {
        let refused = node.compact(text, &of).await.expect_err("refused");
        assert_eq!(refused.to_string(), why);
    }
    let other = |change: &dyn Fn(&mut SummaryOf)| {
        let mut of = of.clone();
        change(&mut of);
        of
    };
    for of in [
        other(&|of| of.entries = 1),
        other(&|of| of.entries = u64::MAX),
        other(&|of| of.entries = 0),
        other(&|of| of.first = "x".to_owned()),
        other(&|of| of.last.clone_from(&of.first)),
    ] {
        assert!(matches!(node.compact("x", &of).await, Err(Error::MemoryChanged)), "{of:?}");
    }
    let unknown = other(&|of| of.job = Some("job-00000000000000ff".to_owned()));
    assert!(matches!(node.compact("x", &unknown).await, Err(Error::UnknownJob)));
    node.write(8, "all new", true).await.expect("written");
    assert!(matches!(node.compact("x", &of).await, Err(Error::MemoryChanged)), "it was replaced meanwhile");
    assert!(node.service.library().clear_memory(&caller(), &HERE).await.expect("cleared"));
    assert!(matches!(node.compact("x", &of).await, Err(Error::MemoryChanged)), "it was removed meanwhile");
    assert_eq!(node.text().await, "");
}
