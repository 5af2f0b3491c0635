//! Artifacts on three directories, over a transport that fails on demand.

use std::collections::BTreeSet;
use std::time::Duration;

use atlas_types::{Digest, MemberId};
use bytes::Bytes;

use crate::testing::{Net, set};
use crate::{ArtifactError, digest_of};

fn bytes(text: &'static str) -> Bytes {
    Bytes::from_static(text.as_bytes())
}

#[tokio::test]
async fn an_artifact_is_on_a_majority_before_it_is_said_to_be_stored() {
    let net = Net::new(3);
    let one = net.artifacts(1);
    let digest = one.store(bytes("abc")).await.expect("stored");
    assert!(net.having(digest).await.len() >= 2);
    // Two of three members are enough, one is not.
    net.cut(&[2]);
    let digest = one.store(bytes("abcd")).await.expect("stored");
    assert_eq!(net.having(digest).await, set(&[1, 3]));
    net.cut(&[2, 3]);
    let asked = tokio::time::timeout(Duration::from_millis(700), one.store(bytes("abcde"))).await;
    assert!(asked.is_err(), "{asked:?}");
    // The copying continues once the other members are back, although the caller stopped waiting.
    net.cut(&[]);
    one.store(bytes("abcde")).await.expect("stored");
    assert!(net.having(digest_of(b"abcde")).await.len() >= 2);
}

#[tokio::test]
async fn while_the_group_changes_both_majorities_have_it() {
    let net = Net::new(5);
    net.vote(vec![set(&[1, 2, 3]), set(&[3, 4, 5])]);
    net.cut(&[3]);
    let digest = net.artifacts(1).store(bytes("abc")).await.expect("stored");
    assert_eq!(net.having(digest).await, set(&[1, 2, 4, 5]));
}

#[tokio::test]
async fn an_artifact_that_is_not_here_is_read_from_another_member() {
    let net = Net::new(3);
    net.cut(&[3]);
    let digest = net.artifacts(1).store(bytes("abc")).await.expect("stored");
    net.cut(&[]);
    let three = net.artifacts(3);
    let reads = futures::future::join_all((0..8).map(|_| three.read(digest))).await;
    assert!(reads.into_iter().all(|read| read.expect("read") == "abc"));
    assert_eq!(net.gets(), 1, "however many want it, it is fetched once");
    assert!(net.having(digest).await.contains(&MemberId(3)), "and kept");
    net.cut(&[1, 2]);
    let error = three.read(Digest([0; 32])).await.expect_err("nobody can say");
    assert!(matches!(error, ArtifactError::Away { .. }), "{error}");
}

#[tokio::test]
async fn a_damaged_copy_is_replaced_by_that_of_another_member() {
    let net = Net::new(3);
    let digest = net.artifacts(1).store(bytes("abc")).await.expect("stored");
    net.artifacts(2).pin(digest).await.expect("everywhere");
    net.artifacts(3).read(digest).await.expect("everywhere");
    std::fs::write(net.path(1, digest), b"abd").expect("writable");
    std::fs::write(net.path(2, digest), b"ab").expect("writable");
    // Member 2 notices its damaged copy while it sends it, and member 3 then provides the artifact.
    assert_eq!(net.artifacts(1).read(digest).await.expect("read"), "abc");
    assert_eq!(std::fs::read(net.path(1, digest)).expect("there"), b"abc");
    assert_eq!(net.having(digest).await, set(&[1, 3]));
    assert_eq!(net.artifacts(2).read(digest).await.expect("read"), "abc");
}

#[tokio::test]
async fn damage_that_nobody_read_is_found_and_mended() {
    let net = Net::new(3);
    let one = net.artifacts(1);
    let digest = one.store(bytes("abc")).await.expect("stored");
    net.artifacts(2).pin(digest).await.expect("everywhere");
    assert_eq!(one.all().await.expect("listed"), [digest]);
    assert!(!one.check(digest).await.expect("whole"));
    std::fs::write(net.path(1, digest), b"abd").expect("writable");
    assert!(one.check(digest).await.expect("mended"));
    assert_eq!(std::fs::read(net.path(1, digest)).expect("there"), b"abc");
    // No other member has a copy, so the damaged file stays and is reported.
    net.cut(&[2, 3]);
    let alone = one.keep(bytes("abcd")).await.expect("kept");
    net.cut(&[]);
    std::fs::write(net.path(1, alone), b"abcc").expect("writable");
    let error = one.check(alone).await.expect_err("the only copy");
    assert!(matches!(error, ArtifactError::Damaged(_)), "{error}");
}

#[tokio::test]
async fn what_is_pinned_is_fetched_copied_and_held() {
    let net = Net::new(3);
    net.cut(&[2]);
    let digest = net.artifacts(3).keep(bytes("abc")).await.expect("kept");
    assert_eq!(net.having(digest).await, set(&[3]));
    net.artifacts(1).pin(digest).await.expect("pinned");
    assert_eq!(net.having(digest).await, BTreeSet::from([MemberId(1), MemberId(3)]));
}
