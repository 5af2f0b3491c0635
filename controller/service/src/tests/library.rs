//! Memory and knowledge through the service: repeats, history, and many entries at once.

use atlas_api::types::KnowledgeDraft;
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
