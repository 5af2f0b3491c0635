use std::collections::BTreeMap;

use expect_test::{Expect, expect};
use proptest::prelude::*;

use super::*;

fn index(texts: &[&str]) -> Index {
    Index::new(chunks(texts))
}

fn chunks(texts: &[&str]) -> Vec<Chunk> {
    let chunk = |(place, text): (usize, &&str)| Chunk { source: place.to_string(), text: (*text).to_owned() };
    texts.iter().enumerate().map(chunk).collect()
}

fn check(texts: &[&str], question: &str, most: usize, expected: &[&str]) {
    let index = index(texts);
    let found: Vec<&str> = index.search_words(question, most).iter().map(|chunk| chunk.source.as_str()).collect();
    assert_eq!(found, expected, "{question}");
}

#[test]
fn rare_words_and_short_chunks_come_first() {
    let texts =
        ["the cat and the dog", "the cat", "a bird", "the cat sat on the mat with another cat beside the door of it"];
    check(&texts, "cat", 9, &["1", "0", "3"]);
    check(&texts, "the dogs", 1, &["0"]);
    check(&texts, "BIRD?", 9, &["2"]);
    check(&texts, "whale", 9, &[]);
    check(&texts, "", 9, &[]);
    check(&texts, "cat", 0, &[]);
    check(&[], "cat", 9, &[]);
}

#[test]
fn equals_keep_their_order() {
    check(&["same text", "same text", "other"], "text", 9, &["0", "1"]);
}

fn check_hybrid(question: &Query<'_>, expected: &Expect) {
    let texts = ["moon and tides", "moon phases", "sun and wind", "bread"];
    let rows: [&[f32]; 4] = [&[1.0, 0.1], &[0.2, 1.0], &[1.0, 0.0], &[-1.0, 0.0]];
    let vectors = Vectors::from_rows(2, rows).expect("directions");
    let index = Index::with_vectors(chunks(&texts), vectors).expect("a row for each chunk");
    let rank = |rank: Option<Rank>| rank.map_or("-".to_owned(), |rank| format!("{}. {:.3}", rank.place, rank.score));
    let shown = index.search(question).map_or_else(
        |error| error.to_string(),
        |hits| {
            let line = |hit: &Hit| {
                format!("{} {:.3} words {} vector {}\n", hit.chunk, hit.score, rank(hit.by_words), rank(hit.by_vector))
            };
            hits.iter().map(line).collect()
        },
    );
    expected.assert_eq(&shown);
}

#[test]
fn words_and_vectors_are_fused() {
    let vector: &[f32] = &[1.0, 0.0];
    let question = Query { vector: Some(vector), ..Query::new("moon", 9) };
    check_hybrid(
        &question,
        &expect![[r#"
        0 1.496 words 1. 0.651 vector 2. 0.995
        1 0.926 words 2. 0.651 vector 3. 0.193
        2 0.500 words - vector 1. 1.000
    "#]],
    );
    check_hybrid(
        &Query { fusion: Fusion::RANKS, ..question },
        &expect![[r#"
        0 0.109 words 1. 0.651 vector 2. 0.995
        1 0.104 words 2. 0.651 vector 3. 0.193
        2 0.059 words - vector 1. 1.000
    "#]],
    );
    check_hybrid(
        &Query { top: 1, fusion: Fusion::RANKS, ..question },
        &expect![[r#"
        2 0.375 words - vector 1. 1.000
    "#]],
    );
    check_hybrid(
        &Query { text: "whale", ..question },
        &expect![[r#"
        2 0.500 words - vector 1. 1.000
        0 0.496 words - vector 2. 0.995
        1 -0.074 words - vector 3. 0.193
    "#]],
    );
    check_hybrid(
        &Query::new("moon", 9),
        &expect![[r#"
        0 0.651 words 1. 0.651 vector -
        1 0.651 words 2. 0.651 vector -
    "#]],
    );
    let hidden = |chunk: u32| chunk != 0;
    check_hybrid(
        &Query { is_readable: Some(&hidden), ..question },
        &expect![[r#"
        1 1.069 words 1. 0.900 vector 2. 0.193
        2 0.500 words - vector 1. 1.000
    "#]],
    );
    check_hybrid(&Query { is_readable: Some(&|_| false), ..question }, &expect![""]);
}

#[test]
fn vectors_that_do_not_fit_are_refused() {
    check_hybrid(
        &Query { vector: Some(&[1.0]), ..Query::new("moon", 9) },
        &expect!["the vector of the question has 1 numbers instead of 2; another model made it"],
    );
    check_hybrid(
        &Query { vector: Some(&[0.0, f32::NAN]), ..Query::new("moon", 9) },
        &expect!["the vector of the question: number 1 is NaN"],
    );
    let question = Query { vector: Some(&[1.0]), ..Query::new("moon", 9) };
    assert_eq!(index(&["moon"]).search(&question), Err(VectorError::NoVectors));
    let vectors = Vectors::from_rows(1, [[1.0_f32]]).expect("a direction");
    let error = Index::with_vectors(chunks(&["a", "b"]), vectors).map(|index| index.len());
    assert_eq!(error, Err(VectorError::Count { rows: 1, chunks: 2 }));
}

fn rows() -> impl Strategy<Value = Vec<(String, [f32; 3], bool)>> {
    let row =
        proptest::array::uniform3(-1.0_f32..1.0).prop_filter("a direction", |row| row.iter().any(|n| n.abs() > 0.01));
    proptest::collection::vec(("[a-d ]{0,20}", row, any::<bool>()), 0..20)
}

fn index_of(rows: &[&(String, [f32; 3], bool)]) -> Index {
    let texts: Vec<&str> = rows.iter().map(|(text, _, _)| text.as_str()).collect();
    let vectors = Vectors::from_rows(3, rows.iter().map(|(_, row, _)| row)).expect("directions");
    Index::with_vectors(chunks(&texts), vectors).expect("a row for each chunk")
}

proptest! {
    #[test]
    fn what_is_not_readable_changes_nothing(
        rows in rows(), text in "[a-e ]{0,10}", top in 0_usize..25, by_places in any::<bool>(), by_vector in any::<bool>(),
    ) {
        let fusion = if by_places { Fusion::RANKS } else { Fusion::default() };
        let vector: Option<&[f32]> = by_vector.then_some(&[1.0, 0.5, -0.2]);
        let all: Vec<_> = rows.iter().collect();
        let readable: Vec<_> = rows.iter().filter(|(_, _, readable)| *readable).collect();
        let numbers: Vec<u32> = (0_u32..).zip(&rows).filter(|(_, (_, _, readable))| *readable).map(|(number, _)| number).collect();
        let may_read = |chunk: u32| rows[chunk as usize].2;
        let question = Query { vector, fusion, ..Query::new(&text, top) };
        let found = index_of(&all).search(&Query { is_readable: Some(&may_read), ..question }).expect("it fits");
        let mut wanted = index_of(&readable).search(&question).expect("it fits");
        wanted.iter_mut().for_each(|hit| hit.chunk = numbers[hit.chunk as usize]);
        prop_assert_eq!(found, wanted);
    }

    #[test]
    fn hits_are_ordered_and_bounded(rows in rows(), text in "[a-e ]{0,10}", top in 0_usize..25) {
        let all: Vec<_> = rows.iter().collect();
        let question = Query { vector: Some(&[1.0, 0.5, -0.2]), ..Query::new(&text, top) };
        let hits = index_of(&all).search(&question).expect("it fits");
        prop_assert!(hits.len() <= top);
        prop_assert!(hits.windows(2).all(|pair| pair[0].score >= pair[1].score));
        let mut seen = BTreeMap::new();
        for hit in &hits {
            prop_assert!(seen.insert(hit.chunk, ()).is_none());
            prop_assert!(hit.score.is_finite());
            prop_assert!(hit.by_words.is_some() || hit.by_vector.is_some());
        }
    }

    #[test]
    fn fewer_hits_are_the_first_of_more(rows in rows(), text in "[a-e ]{0,10}", top in 0_usize..25) {
        let all: Vec<_> = rows.iter().collect();
        let index = index_of(&all);
        let question = Query { vector: Some(&[1.0, 0.5, -0.2]), ..Query::new(&text, 25) };
        let mut more = index.search(&question).expect("it fits");
        more.truncate(top);
        prop_assert_eq!(index.search(&Query { top, ..question }).expect("it fits"), more);
    }
}
