//! How far two words are apart, for "did you mean".

/// The word of a list that is nearest to another, if it is near enough to be meant.
pub(crate) fn nearest<'a>(word: &str, words: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let most = (word.chars().count() / 3).max(1);
    let begins = |known: &str| word.chars().count() >= 2 && known.starts_with(word);
    let measured = words.map(|known| (if begins(known) { 0 } else { distance(word, known) }, known));
    measured.filter(|(count, _)| *count <= most).min_by_key(|(count, _)| *count).map(|(_, known)| known)
}

/// How many characters have to be changed, added, removed or exchanged with their neighbour.
fn distance(one: &str, other: &str) -> usize {
    let (one, other): (Vec<char>, Vec<char>) = (one.chars().collect(), other.chars().collect());
    let mut rows: Vec<Vec<usize>> = vec![(0..=other.len()).collect()];
    for (at, mine) in one.iter().enumerate() {
        let mut row = vec![at + 1];
        for (place, theirs) in other.iter().enumerate() {
            let changed = rows[at][place] + usize::from(mine != theirs);
            let mut least = changed.min(rows[at][place + 1] + 1).min(row[place] + 1);
            if at > 0 && place > 0 && one[at - 1] == *theirs && *mine == other[place - 1] {
                least = least.min(rows[at - 1][place - 1] + 1);
            }
            row.push(least);
        }
        rows.push(row);
    }
    rows[one.len()][other.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn near_words_are_meant() {
        let words = ["model", "copy", "continue", "exit"];
        let near = |word: &str| nearest(word, words.into_iter());
        assert_eq!(near("modle"), Some("model"));
        assert_eq!(near("cont"), Some("continue"));
        assert_eq!(near("copi"), Some("copy"));
        assert_eq!(near("quit"), None);
        assert_eq!(near(""), None);
    }
}
