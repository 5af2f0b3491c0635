//! Environment markers: `python_version < "3.12" and sys_platform == "linux"`.

/// The variables of an environment.
const VARIABLES: [&str; 12] = [
    "python_version",
    "python_full_version",
    "os_name",
    "os.name",
    "sys_platform",
    "sys.platform",
    "platform_release",
    "platform_system",
    "platform_version",
    "platform_machine",
    "platform_python_implementation",
    "implementation_name",
];
const MORE: [&str; 3] = ["implementation_version", "python_implementation", "extra"];

/// How deep parentheses may be nested.
const DEPTH_MAX: usize = 16;

/// Says what is wrong with a marker.
pub(super) fn check(text: &str) -> Result<(), String> {
    let wrong = |why: String| format!("its marker \"{}\" is wrong: {why}", text.trim());
    let words = words(text).map_err(wrong)?;
    let mut rest = words.as_slice();
    conditions(&mut rest, 0).map_err(wrong)?;
    rest.first().map_or(Ok(()), |word| Err(wrong(format!("{word} is unexpected"))))
}

/// Texts keep their first quote.
fn words(text: &str) -> Result<Vec<&str>, String> {
    let mut found = Vec::new();
    let mut rest = text.trim_start();
    while let Some(first) = rest.chars().next() {
        let end = match first {
            '"' | '\'' => 1 + rest[1..].find(first).ok_or("a text does not end")?,
            '(' | ')' => 1,
            c if "<>=!~".contains(c) => rest.find(|c| !"<>=!~".contains(c)).unwrap_or(rest.len()),
            _ => rest.find(|c: char| !(c.is_ascii_alphanumeric() || "._".contains(c))).unwrap_or(rest.len()),
        };
        if end == 0 {
            return Err(format!("{first} is unexpected"));
        }
        let (word, after) = rest.split_at(end);
        found.push(word);
        rest = if matches!(first, '"' | '\'') { &after[1..] } else { after }.trim_start();
    }
    Ok(found)
}

fn conditions(words: &mut &[&str], depth: usize) -> Result<(), String> {
    if depth > DEPTH_MAX {
        return Err("its parentheses are nested too deep".to_owned());
    }
    loop {
        if take(words, "(") {
            conditions(words, depth + 1)?;
            if !take(words, ")") {
                return Err("a parenthesis is not closed".to_owned());
            }
        } else {
            comparison(words)?;
        }
        if !(take(words, "and") || take(words, "or")) {
            return Ok(());
        }
    }
}

fn comparison(words: &mut &[&str]) -> Result<(), String> {
    let left = value(words)?;
    let operator = words.split_off_first().copied().unwrap_or("");
    let known = matches!(operator, "<" | "<=" | ">" | ">=" | "==" | "!=" | "~=" | "===" | "in");
    let known = known || (operator == "not" && take(words, "in"));
    if !known {
        return Err(format!("a comparison is missing after {left}"));
    }
    value(words).map(|_| ())
}

/// A variable or a text.
fn value<'w>(words: &mut &[&'w str]) -> Result<&'w str, String> {
    let word = words.split_off_first().copied().ok_or("a variable or a text is missing")?;
    if word.starts_with(['"', '\'']) || VARIABLES.contains(&word) || MORE.contains(&word) {
        return Ok(word);
    }
    let meant = crate::violation::nearest(word, VARIABLES.into_iter().chain(MORE));
    let meant = meant.map_or(String::new(), |meant| format!("; did you mean {meant}?"));
    Err(format!("{word} is no variable of an environment{meant}"))
}

fn take(words: &mut &[&str], word: &str) -> bool {
    let there = words.first() == Some(&word);
    if there {
        *words = &words[1..];
    }
    there
}
