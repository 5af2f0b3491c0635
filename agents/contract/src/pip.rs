//! Requirements of Python packages, as `pip install` reads them from its command line: a name with extras, versions and a marker, or an
//! address. Options and files of requirements are not among them, because pip gets every entry as one requirement.

mod marker;
#[cfg(test)]
mod tests;

/// The longest entry.
const BYTES_MAX: usize = 2_000;

/// The schemes of addresses that pip fetches.
const SCHEMES: [&str; 4] = ["http", "https", "file", "ftp"];
const REPOSITORIES: [&str; 4] = ["git", "hg", "svn", "bzr"];

/// The operators between a package and a version, longer ones first.
const OPERATORS: [&str; 8] = ["===", "==", "~=", "!=", "<=", ">=", "<", ">"];

const EXAMPLE: &str = "a requirement looks like \"requests>=2.31\"";

/// What an entry asks pip for, without its comment. None of an empty entry or one that is only a comment.
pub fn pip_requirement(entry: &str) -> Option<&str> {
    let entry = entry.trim();
    let comment = entry.match_indices('#').map(|(at, _)| at);
    let mut comment = comment.filter(|&at| entry[..at].chars().next_back().is_none_or(char::is_whitespace));
    let wanted = entry[..comment.next().unwrap_or(entry.len())].trim_end();
    (!wanted.is_empty()).then_some(wanted)
}

/// Says what is wrong with an entry that pip would refuse.
pub fn check_pip_requirement(entry: &str) -> Result<(), String> {
    let Some(wanted) = pip_requirement(entry) else { return Ok(()) };
    if wanted.len() > BYTES_MAX {
        return Err(format!("it has more than {BYTES_MAX} bytes"));
    }
    if wanted.contains(char::is_control) {
        return Err(
            "it has more than one line or a control character; write each package as an entry of its own".to_owned()
        );
    }
    if wanted.starts_with('-') || wanted.contains(" --") {
        let options = "options of pip are set on workers, as variables such as PIP_INDEX_URL";
        return Err(format!("it has an option of pip; {EXAMPLE}, and {options}"));
    }
    if wanted.contains("${") {
        return Err("it names a variable, and nothing replaces it; pip's variables are set on workers".to_owned());
    }
    if wanted.starts_with('/') {
        return Ok(());
    }
    if is_address(wanted) {
        return address(wanted);
    }
    if wanted.starts_with('.') || wanted.split(['[', ';', '<', '=', '@']).next().is_some_and(|name| name.contains('/'))
    {
        return Err(format!(
            "it is a path, and workers have only the agent's own folder, from which it needs no installation; {EXAMPLE}"
        ));
    }
    named(wanted)
}

fn is_address(text: &str) -> bool {
    let before = text.split_once("://").map(|(scheme, _)| scheme);
    before.is_some_and(|scheme| scheme.chars().all(|c| c.is_ascii_alphanumeric() || "+-.".contains(c)))
}

/// `https://host/file.whl`, `git+https://host/repository@tag`, with a marker after a blank.
fn address(text: &str) -> Result<(), String> {
    let (scheme, rest) = text.split_once("://").unwrap_or((text, ""));
    let known = match scheme.split_once('+') {
        Some((kind, _)) => REPOSITORIES.contains(&kind),
        None => SCHEMES.contains(&scheme),
    };
    if !known {
        return Err(format!("pip does not fetch from addresses with \"{scheme}://\""));
    }
    let (place, marker) = rest.split_once(" ;").map_or((rest, None), |(place, marker)| (place, Some(marker)));
    let place = place.trim();
    if place.is_empty() || place.contains(char::is_whitespace) {
        return Err(format!("\"{scheme}://{place}\" is no address"));
    }
    marker.map_or(Ok(()), marker::check)
}

/// `name[extra]>=1,<2; marker` or `name @ address`.
fn named(text: &str) -> Result<(), String> {
    let end = text.find(|c: char| !(c.is_ascii_alphanumeric() || "._-".contains(c))).unwrap_or(text.len());
    let (name, rest) = text.split_at(end);
    let outer = |c: Option<char>| c.is_some_and(|c| c.is_ascii_alphanumeric());
    if !outer(name.chars().next()) || !outer(name.chars().next_back()) {
        return Err(format!("it does not begin with the name of a package; {EXAMPLE}"));
    }
    let mut rest = rest.trim_start();
    if let Some(inside) = rest.strip_prefix('[') {
        let (extras, after) = inside.split_once(']').ok_or("the bracket of its extras is not closed")?;
        let is_extra = |extra: &str| {
            outer(extra.chars().next()) && extra.chars().all(|c| c.is_ascii_alphanumeric() || "._-".contains(c))
        };
        if !extras.trim().is_empty() && !extras.split(',').map(str::trim).all(is_extra) {
            return Err(format!("\"[{extras}]\" is no list of extras"));
        }
        rest = after.trim_start();
    }
    if let Some(place) = rest.strip_prefix('@') {
        let place = place.trim_start();
        return if is_address(place) {
            address(place)
        } else {
            Err(format!("after \"@\" it has no address; {EXAMPLE}"))
        };
    }
    let (versions, marker) = rest.split_once(';').map_or((rest, None), |(versions, marker)| (versions, Some(marker)));
    let versions = versions.trim();
    let versions = versions.strip_prefix('(').and_then(|inner| inner.strip_suffix(')')).unwrap_or(versions).trim();
    let versions = versions.strip_suffix(',').unwrap_or(versions);
    if !versions.is_empty() {
        versions.split(',').map(str::trim).try_for_each(|part| version(name, part))?;
    }
    marker.map_or(Ok(()), marker::check)
}

/// `>=2.31`.
fn version(name: &str, part: &str) -> Result<(), String> {
    let Some(operator) = OPERATORS.into_iter().find(|operator| part.starts_with(operator)) else {
        let bare = part.trim_start_matches('=').trim();
        let meant = if bare.starts_with(|c: char| c.is_ascii_digit()) {
            format!("; did you mean \"{name}=={bare}\"?")
        } else {
            String::new()
        };
        return Err(format!("\"{part}\" is no version with an operator such as >= or =={meant}"));
    };
    let wanted = part[operator.len()..].trim();
    let fine = if operator == "===" { is_word(wanted) } else { is_version(operator, wanted) };
    if fine { Ok(()) } else { Err(format!("\"{wanted}\" after \"{operator}\" is no version")) }
}

fn is_word(text: &str) -> bool {
    !text.is_empty() && !text.contains(char::is_whitespace)
}

/// `1.2.3`, `1!2.0rc1.post1.dev2+local`, and `1.2.*` after `==` and `!=`.
fn is_version(operator: &str, text: &str) -> bool {
    let (text, any) = text.strip_suffix(".*").map_or((text, false), |text| (text, true));
    let plain = text.strip_prefix(['v', 'V']).unwrap_or(text);
    let plain = plain.split_once('!').map_or(plain, |(_, rest)| rest);
    let letters = text.chars().all(|c| c.is_ascii_alphanumeric() || "._-+!".contains(c));
    let release = plain.split(|c: char| !(c.is_ascii_digit() || c == '.')).next().unwrap_or_default();
    let parts = release.split('.').filter(|part| !part.is_empty()).count();
    letters
        && plain.starts_with(|c: char| c.is_ascii_digit())
        && (!any || operator == "==" || operator == "!=")
        && (operator != "~=" || parts > 1)
}
