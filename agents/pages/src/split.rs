//! Long texts as parts that fit into messages.

/// The bytes of a text as it is in JSON.
pub fn written(text: &str) -> usize {
    text.bytes().map(of_byte).sum()
}

fn of_byte(byte: u8) -> usize {
    match byte {
        b'"' | b'\\' | b'\n' | b'\r' | b'\t' => 2,
        0..32 => 6,
        _ => 1,
    }
}

/// The parts of a text, each of at most so many bytes in JSON, but at least one character: cut behind an empty line if there is one in the
/// second half of a part, or else behind a line.
pub fn parts(text: &str, most: usize) -> Vec<&str> {
    let (mut parts, mut rest) = (Vec::new(), text);
    while !rest.is_empty() {
        let (part, behind) = rest.split_at(end(rest, most));
        parts.push(part);
        rest = behind;
    }
    parts
}

fn end(text: &str, most: usize) -> usize {
    let mut bytes = 0;
    let fitting = text.char_indices().find_map(|(place, character)| {
        bytes += text[place..place + character.len_utf8()].bytes().map(of_byte).sum::<usize>();
        (bytes > most).then_some(place)
    });
    let Some(fitting) = fitting else { return text.len() };
    let first = text.chars().next().map_or(0, char::len_utf8);
    let fitting = fitting.max(first);
    let within = &text[..fitting];
    let cut = within.rfind("\n\n").map(|place| place + 2).filter(|place| *place > fitting / 2);
    let cut = cut.or_else(|| within.rfind('\n').map(|place| place + 1));
    cut.unwrap_or(fitting)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_text_is_cut_where_it_reads_best() {
        assert_eq!(parts("one\n\ntwo\nthree\n", 13), ["one\n\ntwo\n", "three\n"]);
        assert_eq!(parts("aaaa\n\nbbbb\n\ncc", 12), ["aaaa\n\n", "bbbb\n\ncc"]);
        assert_eq!(parts("aaaabbbb", 3), ["aaa", "abb", "bb"]);
        assert_eq!(parts("", 3), Vec::<&str>::new());
        assert_eq!(parts("é", 1), ["é"]);
    }

    proptest! {
        #[test]
        fn parts_are_the_whole(text in "[a\né\"\u{1}]{0,60}", most in 6_usize..20) {
            let parts = parts(&text, most);
            prop_assert_eq!(parts.concat(), text.as_str());
            prop_assert!(parts.iter().all(|part| written(part) <= most));
        }
    }
}
