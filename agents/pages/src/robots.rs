//! `robots.txt`: what a website lets programs read (RFC 9309).

/// The name of this program in such files.
const NAME: &str = "atlas";

/// Most rules that are kept; further ones are left out.
const RULES_MAX: usize = 10_000;

/// Most bytes of the path of a rule.
const PATH_BYTES_MAX: usize = 2_048;

/// The rules of one website for this program.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Robots(Vec<Rule>);

#[derive(Debug, Clone, PartialEq, Eq)]
struct Rule {
    allows: bool,
    path: String,
}

impl Robots {
    /// Reads a file. What is no rule is skipped, as the standard demands.
    pub fn read(text: &str) -> Self {
        // Rules for this program, and those for all.
        let (mut own, mut all) = (Vec::new(), Vec::new());
        let (mut is_own, mut is_all, mut has_own) = (false, false, false);
        let mut in_names = false;
        for line in text.trim_start_matches('\u{feff}').lines() {
            let line = line.split('#').next().unwrap_or_default();
            let Some((key, value)) = line.split_once(':') else { continue };
            let (key, value) = (key.trim().to_ascii_lowercase(), value.trim());
            match key.as_str() {
                "user-agent" => {
                    if !in_names {
                        (is_own, is_all) = (false, false);
                    }
                    in_names = true;
                    is_all |= value == "*";
                    let name = value.split(|c: char| !c.is_ascii_alphanumeric() && !matches!(c, '-' | '_')).next();
                    is_own |= name.is_some_and(|name| name.eq_ignore_ascii_case(NAME));
                    has_own |= is_own;
                }
                "allow" | "disallow" => {
                    in_names = false;
                    if value.is_empty() || value.len() > PATH_BYTES_MAX || own.len() + all.len() >= RULES_MAX {
                        continue;
                    }
                    let rule = Rule { allows: key == "allow", path: in_one_form(value) };
                    if is_own {
                        own.push(rule.clone());
                    }
                    if is_all {
                        all.push(rule);
                    }
                }
                // Lines with other keys do not part the names of a group: they are for others, and read as if they were not there.
                _ => {}
            }
        }
        Self(if has_own { own } else { all })
    }

    /// Whether a path, with its query, may be read: the longest rule that fits decides, and one that allows before one that does not.
    pub fn allows(&self, path: &str) -> bool {
        let path = in_one_form(path);
        let fitting = self.0.iter().filter(|rule| fits(&rule.path, &path));
        fitting.max_by_key(|rule| (rule.path.len(), rule.allows)).is_none_or(|rule| rule.allows)
    }
}

/// A path in the form in which two are compared: letters, digits and `-._~` as they are, characters beyond ASCII as `%C3`, and other escapes in
/// capital letters.
fn in_one_form(path: &str) -> String {
    let (mut form, mut rest) = (String::with_capacity(path.len()), path.as_bytes());
    while let Some((first, behind)) = rest.split_first() {
        let escaped = behind.get(..2).filter(|digits| *first == b'%' && digits.iter().all(u8::is_ascii_hexdigit));
        let escaped = escaped.and_then(|digits| u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok());
        let byte = escaped.unwrap_or(*first);
        let is_plain = byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
        match escaped {
            Some(byte) if !is_plain => form += &format!("%{byte:02X}"),
            None if !byte.is_ascii() => form += &format!("%{byte:02X}"),
            _ => form.push(char::from(byte)),
        }
        rest = behind.get(if escaped.is_some() { 2 } else { 0 }..).unwrap_or_default();
    }
    form
}

/// Whether a path begins like a pattern, in which `*` is any text and a `$` at the end is the end.
fn fits(pattern: &str, path: &str) -> bool {
    let (pattern, is_whole) = pattern.strip_suffix('$').map_or((pattern, false), |pattern| (pattern, true));
    let mut parts = pattern.split('*');
    let Some(mut rest) = path.strip_prefix(parts.next().unwrap_or_default()) else { return false };
    let mut parts: Vec<&str> = parts.collect();
    let Some(last) = parts.pop() else { return !is_whole || rest.is_empty() };
    for part in parts {
        let Some((_, behind)) = rest.split_once(part) else { return false };
        rest = behind;
    }
    if is_whole { rest.ends_with(last) } else { rest.contains(last) }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn check(robots: &str, paths: &[(&str, bool)]) {
        let robots = Robots::read(robots);
        for (path, expected) in paths {
            assert_eq!(robots.allows(path), *expected, "{path} by {robots:?}");
        }
    }

    #[test]
    fn the_longest_rule_decides() {
        check(
            "User-agent: *\nDisallow: /private\nAllow: /private/open\nDisallow: /*.zip$\nDisallow: /a?*x=1",
            &[
                ("/", true),
                ("/private/x", false),
                ("/private/open/x", true),
                ("/b.zip", false),
                ("/b.zip?x", true),
                ("/a?y=2&x=1", false),
                ("/a?y=2", true),
            ],
        );
        check("User-agent: *\nDisallow: /", &[("/", false), ("/x", false)]);
        check("User-agent: *\nDisallow:", &[("/x", true)]);
        check("User-agent: *\nDisallow: /x\nAllow: /x", &[("/x", true)]);
    }

    #[test]
    fn own_rules_come_before_those_for_all() {
        let robots =
            "user-agent: other\nuser-agent: Atlas/1.0\nDisallow: /own # why\n\nUser-agent: *\nDisallow: /all\n";
        check(robots, &[("/own", false), ("/all", true)]);
        check("User-agent: other\nDisallow: /\n", &[("/x", true)]);
        check("User-agent: atlas\nUser-agent: *\nDisallow: /x", &[("/x", false)]);
    }

    #[test]
    fn paths_are_compared_in_one_form() {
        check(
            "User-agent: *\nDisallow: /caf%c3%a9\nDisallow: /tüv\nDisallow: /%7Ejoe\nDisallow: /a%2fb\nDisallow: /50%",
            &[
                ("/caf%C3%A9/x", false),
                ("/t%C3%BCv", false),
                ("/~joe", false),
                ("/a%2Fb", false),
                ("/a/b", true),
                ("/50%25", false),
                ("/50%", false),
            ],
        );
    }

    #[test]
    fn other_lines_part_no_names() {
        check("User-agent: a\nCrawl-delay: 5\nUser-agent: *\nDisallow: /x", &[("/x", false)]);
    }

    #[test]
    fn what_is_no_rule_is_skipped() {
        check("<html>no robots</html>", &[("/", true)]);
        check("Disallow: /x", &[("/x", true)]);
        check("\u{feff}User-agent: *\r\nCrawl-delay: 5\r\nDisallow: /x\r\n", &[("/x", false)]);
        let many = format!("User-agent: *\n{}", "Disallow: /x\n".repeat(RULES_MAX + 5));
        assert_eq!(Robots::read(&many).0.len(), RULES_MAX);
    }

    #[test]
    fn many_stars_take_no_longer_than_the_path_is_long() {
        let robots = Robots::read(&format!("User-agent: *\nDisallow: /{}$\n", "*a".repeat(1_000)));
        assert!(robots.allows(&format!("/{}", "b".repeat(100_000))));
    }

    proptest! {
        #[test]
        fn any_text_has_rules(text in "(User-agent|Allow|Disallow|: |\\*|\\$|/|a|\n|#){0,60}", path in "[/a*$]{0,20}") {
            Robots::read(&text).allows(&path);
        }
    }
}
