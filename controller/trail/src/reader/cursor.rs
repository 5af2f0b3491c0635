//! How far a reader has read the audits of all controllers.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use atlas_desk::Error;
use atlas_types::MemberId;

/// Most controllers in a cursor.
const MEMBERS_MAX: usize = 64;
/// The word for the position after the newest record.
const END: &str = "end";

/// A position in the audit of one controller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Position {
    /// After the record with this number.
    After(u64),
    /// After the newest record. Which one that is is known when the controller answers.
    End,
}

/// A position in the audit of each controller. A text such as `1:120,2:7,3:end`; `end` alone is the end of all.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuditCursor {
    known: BTreeMap<MemberId, Position>,
    /// That of all other controllers.
    rest: Position,
}

impl AuditCursor {
    /// After the newest record of each controller.
    pub fn end() -> Self {
        Self { known: BTreeMap::new(), rest: Position::End }
    }

    pub(super) fn of(&self, member: MemberId) -> Position {
        self.known.get(&member).copied().unwrap_or(self.rest)
    }

    pub(super) fn set(&mut self, member: MemberId, position: Position) {
        self.known.insert(member, position);
    }

    /// All controllers of the cluster are known: those that join later are read from their first record. Of those that
    /// left, only as many are kept as a cursor may have.
    pub(super) fn settle(&mut self, members: &[MemberId]) {
        self.rest = Position::After(0);
        while self.known.len() > MEMBERS_MAX {
            let left = self.known.keys().copied().find(|member| !members.contains(member));
            let Some(left) = left else { return };
            self.known.remove(&left);
        }
    }
}

impl Default for AuditCursor {
    fn default() -> Self {
        Self { known: BTreeMap::new(), rest: Position::After(0) }
    }
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::After(number) => number.fmt(f),
            Self::End => END.fmt(f),
        }
    }
}

impl fmt::Display for AuditCursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.known.is_empty() && self.rest == Position::End {
            return f.write_str(END);
        }
        for (at, (member, position)) in self.known.iter().enumerate() {
            let comma = if at > 0 { "," } else { "" };
            write!(f, "{comma}{}:{position}", member.0)?;
        }
        Ok(())
    }
}

impl FromStr for AuditCursor {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        if text == END {
            return Ok(Self::end());
        }
        let part = |part: &str| {
            let (member, position) = part.split_once(':')?;
            let position = match position {
                END => Position::End,
                number => Position::After(whole(number)?),
            };
            Some((MemberId(whole(member)?), position))
        };
        let refused = || Error::Malformed("'cursor' must be \"end\" or the cursor of an earlier answer".to_owned());
        let mut cursor = Self::default();
        for text in text.split(',').filter(|_| !text.is_empty()) {
            let (member, position) = part(text).ok_or_else(refused)?;
            if cursor.known.insert(member, position).is_some() || cursor.known.len() > MEMBERS_MAX {
                return Err(refused());
            }
        }
        Ok(cursor)
    }
}

/// A number in digits, without a sign.
fn whole(text: &str) -> Option<u64> {
    text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_is_read_as_it_is_shown() {
        for text in ["", "end", "1:5", "1:5,2:end,18446744073709551615:18446744073709551615"] {
            assert_eq!(text.parse::<AuditCursor>().expect("a cursor").to_string(), text);
        }
    }

    #[test]
    fn hostile_cursors_are_refused() {
        let many: Vec<String> = (0..=MEMBERS_MAX).map(|member| format!("{member}:1")).collect();
        for text in [
            "1",
            "1:",
            ":1",
            "1:-1",
            "1:+1",
            "a:1",
            "1:2,",
            ",",
            "1:2,x",
            "1:2,1:3",
            "END",
            "1:18446744073709551616",
            &many.join(","),
        ] {
            assert!(matches!(text.parse::<AuditCursor>(), Err(Error::Malformed(_))), "{text}");
        }
    }

    #[test]
    fn controllers_that_left_make_room() {
        let mut cursor = AuditCursor::end();
        (0..100).for_each(|member| cursor.set(MemberId(member), Position::After(member)));
        cursor.settle(&[MemberId(0), MemberId(1)]);
        assert_eq!(cursor.known.len(), MEMBERS_MAX);
        assert_eq!((cursor.of(MemberId(1)), cursor.of(MemberId(5))), (Position::After(1), Position::After(0)));
        cursor.to_string().parse::<AuditCursor>().expect("a cursor");
    }
}
