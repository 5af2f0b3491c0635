//! Characters that control a terminal, or that nobody sees, in a form that can be read.
//!
//! A model repeats what it read in files, pages and results of tools. An escape sequence in there could move the cursor, change the title or
//! the clipboard; a bidirectional override shows a command other than the one that is copied; tag characters hide text for other models.

/// The text with such characters replaced: `^[` for an escape, `\u{202e}` for a character that turns the direction of text around. Line
/// ends, also `\r\n`, and tabs stay.
///
/// ```
/// # use atlas_terminal::visible;
/// assert_eq!(visible("a\u{1b}[2Jb\u{202e}c\r\n"), "a^[[2Jb\\u{202e}c\n");
/// ```
pub fn visible(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    let mut before = ' ';
    let mut letters = text.chars().peekable();
    while let Some(letter) = letters.next() {
        match letter {
            '\n' | '\t' => shown.push(letter),
            '\r' if letters.peek() == Some(&'\n') => continue,
            _ => replace(letter, before, &mut |letter| shown.push(letter)),
        }
        before = letter;
    }
    shown
}

/// Passes on `letter`, or the letters that stand for it. `before` is the letter before it: joiners are part of a word or an emoji only
/// behind another letter of it.
pub(crate) fn replace(letter: char, before: char, put: &mut dyn FnMut(char)) {
    match letter {
        ' '..='~' => put(letter),
        '\u{0}'..='\u{1f}' | '\u{7f}' => {
            put('^');
            put(char::from_u32(u32::from(letter) ^ 0x40).unwrap_or('?'));
        }
        _ if is_hidden(letter, before) => letter.escape_unicode().for_each(put),
        _ => put(letter),
    }
}

/// Whether nobody would see the letter, though it is not in the range of ASCII.
fn is_hidden(letter: char, before: char) -> bool {
    match letter {
        // Joiners of emoji and of words in Persian, Hindi and others. Selectors of a presentation belong to the emoji before them.
        '\u{200c}' | '\u{200d}' | '\u{fe0e}' | '\u{fe0f}' => {
            let is_keycap = matches!(letter, '\u{fe0e}' | '\u{fe0f}') && matches!(before, '0'..='9' | '#' | '*');
            (before.is_ascii() && !is_keycap) || is_blank(before) || matches!(before, '\u{200c}'..='\u{200d}')
        }
        '\u{80}'..='\u{9f}' | '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' => {
            true
        }
        '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' => true,
        '\u{2800}' | '\u{3164}' | '\u{fe00}'..='\u{fe0d}' | '\u{feff}' | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}' => true,
        '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e0fff}' => true,
        _ => false,
    }
}

fn is_blank(letter: char) -> bool {
    letter.is_whitespace() || letter.is_control()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn controls_are_shown_and_never_sent() {
        let hostile = "\u{1b}]0;x\u{7}\u{9b}2J\u{8}\u{7f}\u{0}\rY\u{85}\u{2028}\u{2066}\u{200b}\u{e0041}\u{ad}";
        let shown = visible(hostile);
        assert_eq!(shown, "^[]0;x^G\\u{9b}2J^H^?^@^MY\\u{85}\\u{2028}\\u{2066}\\u{200b}\\u{e0041}\\u{ad}");
    }

    #[test]
    fn text_of_people_stays() {
        for text in ["naïve 日本語 한국어", "👩‍👩‍👧‍👦 ☂️ 1️⃣ 🇫🇷", "نامه‌ای", "क्‍ष", "a\tb\n", "e\u{301}"]
        {
            assert_eq!(visible(text), text);
        }
        assert_eq!(visible("a\u{200d}b"), "a\\u{200d}b", "a joiner joins nothing here");
    }
}
