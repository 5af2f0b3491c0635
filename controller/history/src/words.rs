//! Texts by which jobs are found: the words of their errors and labels.
//!
//! Words are cut here and not in SQL, so that jobs in the state and jobs in the history are found alike.

use atlas_types::Job;

/// The most words of one job, and of one question.
const WORDS_MAX: usize = 256;
/// The most bytes of a word; the rest is left out.
const WORD_BYTES_MAX: usize = 64;

/// The words of a text: letters and digits, in lower case.
pub fn words(text: &str) -> Vec<String> {
    let words = text.split(|character: char| !character.is_alphanumeric()).filter(|word| !word.is_empty());
    words.take(WORDS_MAX).map(shortened).collect()
}

fn shortened(word: &str) -> String {
    let mut word = word.to_lowercase();
    let mut end = word.len().min(WORD_BYTES_MAX);
    while !word.is_char_boundary(end) {
        end -= 1;
    }
    word.truncate(end);
    word
}

/// The words of a job's labels and error. Those of the labels come first: of a long error, the last words are left out.
fn words_of(job: &Job) -> Vec<String> {
    let labels = job.labels.iter().flat_map(|(key, value)| [key.as_str(), value.as_str()]);
    let error = job.failure.as_ref().map(|failure| &*failure.error);
    let mut found: Vec<String> = labels.chain(error).flat_map(words).collect();
    found.truncate(WORDS_MAX);
    found
}

/// What is stored of a job, if it has any words.
pub(crate) fn stored(job: &Job) -> Option<String> {
    let words = words_of(job);
    (!words.is_empty()).then(|| words.join(" "))
}

/// Whether a job has all these words.
pub fn has_words(job: &Job, wanted: &[String]) -> bool {
    if wanted.is_empty() {
        return true;
    }
    let words = words_of(job);
    wanted.iter().all(|wanted| words.contains(wanted))
}

/// The question in the language of FTS5. Words have no characters that mean anything there.
pub(crate) fn question(wanted: &[String]) -> String {
    let wanted: Vec<String> = wanted.iter().map(|word| format!("\"{word}\"")).collect();
    wanted.join(" AND ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_letters_and_digits_in_lower_case() {
        assert_eq!(words("Connection REFUSED (os error 111)"), ["connection", "refused", "os", "error", "111"]);
        assert_eq!(words("Größe=\"10\" OR *"), ["größe", "10", "or"]);
        assert_eq!(words(" -- \u{0} ''"), Vec::<String>::new());
        assert_eq!(words(&"a ".repeat(1_000)).len(), WORDS_MAX);
        assert_eq!(words(&"ä".repeat(1_000))[0].len(), WORD_BYTES_MAX);
    }

    #[test]
    fn a_question_has_no_operators_of_a_caller() {
        assert_eq!(question(&words("a\" OR namespace:b*")), "\"a\" AND \"or\" AND \"namespace\" AND \"b\"");
    }
}
