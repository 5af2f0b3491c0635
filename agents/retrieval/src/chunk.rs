//! Cutting documents into chunks.

/// How documents are cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ChunkSize {
    /// Most characters of a chunk; at least 1.
    pub size: usize,
    /// Characters of the chunk before that a chunk repeats. At most half of `size` counts, so that each chunk has something new.
    pub overlap: usize,
}

/// A part of a document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chunk {
    /// The document.
    pub source: String,
    pub text: String,
}

/// What ends a chunk, the best first: a paragraph, a line, a sentence, a word.
const ENDS: [&str; 4] = ["\n\n", "\n", ". ", " "];

/// The chunks of a document, in order. Chunks without a visible character are left out.
pub fn chunks(source: &str, text: &str, cut: ChunkSize) -> Vec<Chunk> {
    let size = cut.size.max(1);
    let overlap = cut.overlap.min(size / 2);
    let (mut chunks, mut from) = (Vec::new(), 0);
    while from < text.len() {
        let to = end(text, from, size);
        let part = text[from..to].trim();
        if !part.is_empty() {
            chunks.push(Chunk { source: source.to_owned(), text: part.to_owned() });
        }
        if to == text.len() {
            break;
        }
        from = back(text, to, overlap).max(next(text, from));
    }
    chunks
}

/// Where a chunk ends that begins at a place: after the last good end in its second half, or after `size` characters.
fn end(text: &str, from: usize, size: usize) -> usize {
    let rest = &text[from..];
    let Some((most, _)) = rest.char_indices().nth(size) else { return text.len() };
    let whole = &rest[..most];
    let half = whole.char_indices().nth(size / 2).map_or(0, |(place, _)| place);
    let ends = ENDS.iter().filter_map(|end| whole.rfind(end).map(|place| place + end.len()));
    from + ends.filter(|place| *place > half).find(|place| *place > 0).unwrap_or(most)
}

/// The place so many characters before another one, at the beginning of a word if there is one between the two.
fn back(text: &str, to: usize, characters: usize) -> usize {
    if characters == 0 {
        return to;
    }
    let place = text[..to].char_indices().rev().nth(characters - 1).map_or(0, |(place, _)| place);
    let word = text[place..to].find(char::is_whitespace).map(|space| next(text, place + space));
    word.filter(|word| *word < to).unwrap_or(place)
}

/// The place after the character at a place.
fn next(text: &str, place: usize) -> usize {
    place + text[place..].chars().next().map_or(0, char::len_utf8)
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};
    use proptest::prelude::*;

    use super::*;

    fn check(text: &str, size: usize, overlap: usize, expected: &Expect) {
        let shown: String =
            chunks("d", text, ChunkSize { size, overlap }).iter().map(|chunk| format!("{:?}\n", chunk.text)).collect();
        expected.assert_eq(&shown);
    }

    #[test]
    fn chunks_end_at_paragraphs_lines_sentences_and_words() {
        check(
            "One two.\n\nThree four five.\nSix",
            20,
            0,
            &expect![[r#"
                "One two.\n\nThree"
                "four five.\nSix"
            "#]],
        );
        check(
            "aaaa bbbb cccc dddd",
            10,
            0,
            &expect![[r#"
            "aaaa bbbb"
            "cccc dddd"
        "#]],
        );
        check(
            "éééééééééééé",
            5,
            0,
            &expect![[r#"
            "ééééé"
            "ééééé"
            "éé"
        "#]],
        );
        check(" \n ", 5, 0, &expect![""]);
        check("", 5, 0, &expect![""]);
    }

    #[test]
    fn chunks_overlap_by_whole_words() {
        check(
            "aaaa bbbb cccc dddd eeee",
            10,
            5,
            &expect![[r#"
            "aaaa bbbb"
            "bbbb cccc"
            "cccc dddd"
            "dddd eeee"
        "#]],
        );
    }

    proptest! {
        #[test]
        fn every_word_is_in_a_chunk_and_chunks_are_bounded(
            text in "[a-c \\n.é]{0,200}", size in 1_usize..40, overlap in 0_usize..60,
        ) {
            let all = chunks("d", &text, ChunkSize { size, overlap });
            for chunk in &all {
                prop_assert!(chunk.text.chars().count() <= size);
            }
            let visible = |text: &str| text.chars().filter(|c| !c.is_whitespace()).count();
            let total: usize = all.iter().map(|chunk| visible(&chunk.text)).sum();
            prop_assert!(total >= visible(&text));
            prop_assert!(all.len() <= text.chars().count() + 1);
        }
    }
}
