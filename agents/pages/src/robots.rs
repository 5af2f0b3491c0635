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
                    let rule = Rule { allows: key == "allow", path: value.to_owned() };
                    if is_own {
                        own.push(rule.clone());
                    }
                    if is_all {
                        all.push(rule);
                    }
                }
                _ => {}
            }
        }
        Self(if has_own { own } else { all })
    }

    /// Whether a path, with its query, may be read: the longest rule that fits decides, and one that allows before one that does not.
    pub fn allows(&self, path: &str) -> bool {
        let fitting = self.0.iter().filter(|rule| fits(&rule.path, path));
        fitting.max_by_key(|rule| (rule.path.len(), rule.allows)).is_none_or(|rule| rule.allows)
    }
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
