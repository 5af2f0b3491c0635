//! The audits of all controllers, read as one: each controller has the records of its own doors.

mod cursor;
mod merge;

use std::collections::BTreeMap;
use std::time::Duration;

use atlas_artifacts::{AuditAsk, AuditPage};
use atlas_audit::Filter;
use atlas_desk::{Desk, Error};
use atlas_types::MemberId;

pub use self::cursor::AuditCursor;
use self::cursor::Position;
use self::merge::{Merged, merge};

/// Most records of a page.
const RECORDS_MAX: usize = 1_000;
/// After this number there is no record.
const AFTER_ALL: u64 = u64::MAX;
/// Longest wait for this controller's own files. Other controllers have the limit of calls between controllers.
const OWN_MAX: Duration = Duration::from_secs(8);

/// A question to all controllers.
#[derive(Debug, Clone, Default)]
pub struct AuditQuery {
    pub cursor: AuditCursor,
    pub filter: Filter,
    /// The most records.
    pub limit: usize,
    /// Only this controller.
    pub member: Option<MemberId>,
}

/// Records of all controllers.
#[derive(Debug)]
pub struct MergedAudit {
    /// Lines as they were written, each with the controller that has it.
    pub lines: Vec<(MemberId, String)>,
    /// Where the next page begins.
    pub cursor: AuditCursor,
    /// Whether there is a next page.
    pub more: bool,
    /// The controllers that answered, each with the number of its newest record.
    pub answered: BTreeMap<MemberId, u64>,
    pub missing: Vec<MissingAudit>,
}

/// A controller that did not answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MissingAudit {
    pub member: MemberId,
    pub reason: String,
}

/// Records of all controllers, by time. A controller that does not answer is named, and keeps its position.
pub async fn read(desk: &Desk, query: AuditQuery) -> Result<MergedAudit, Error> {
    let AuditQuery { cursor, filter, limit, member } = query;
    let limit = limit.clamp(1, RECORDS_MAX);
    let group = desk.peers.group();
    let members: Vec<MemberId> = group.others.iter().copied().chain([group.own]).collect();
    let asked: Vec<MemberId> =
        members.iter().copied().filter(|asked| member.is_none_or(|member| member == *asked)).collect();
    if asked == [group.own] {
        desk.audit.check_on()?;
    }
    let answers = asked.into_iter().map(|member| {
        let (after, limit) = match cursor.of(member) {
            Position::After(number) => (number, limit),
            Position::End => (AFTER_ALL, 1),
        };
        let ask = AuditAsk { after, filter: filter.clone(), limit };
        async move {
            let own = member == group.own;
            (member, after, if own { own_audit(desk, ask).await } else { audit_of(desk, member, ask).await })
        }
    });
    let answers = futures::future::join_all(answers).await;
    let mut found = gather(cursor, answers, limit);
    found.cursor.settle(&members);
    Ok(found)
}

/// A page of this controller, or why there is none.
async fn own_audit(desk: &Desk, ask: AuditAsk) -> Result<AuditPage, String> {
    let mut over = desk.env.clock.sleep(OWN_MAX);
    tokio::select! {
        biased;
        page = desk.audit.page(ask) => page.map_err(|error| error.to_string()),
        () = &mut over => Err("its disk does not answer".to_owned()),
    }
}

/// The same of another one.
async fn audit_of(desk: &Desk, member: MemberId, ask: AuditAsk) -> Result<AuditPage, String> {
    desk.peers.audit(member, ask).await.map_err(|error| error.reason().to_owned())
}

/// What a controller answered: the number after which it was asked, and its page, or why there is none.
type Answer = (MemberId, u64, Result<AuditPage, String>);

/// Merges answers, and moves the cursor of those who answered.
fn gather(mut cursor: AuditCursor, answers: Vec<Answer>, limit: usize) -> MergedAudit {
    let (mut pages, mut answered, mut missing) = (BTreeMap::new(), BTreeMap::new(), Vec::new());
    for (member, after, answer) in answers {
        match answer {
            Ok(page) => {
                answered.insert(member, page.end);
                let at_end = AuditPage { last: page.end, end: page.end, ..AuditPage::default() };
                pages.insert(member, if after == AFTER_ALL { (page.end, at_end) } else { (after, page) });
            }
            Err(reason) => {
                cursor.set(member, cursor.of(member));
                missing.push(MissingAudit { member, reason });
            }
        }
    }
    let Merged { lines, reached, more } = merge(pages, limit);
    reached.into_iter().for_each(|(member, number)| cursor.set(member, Position::After(number)));
    MergedAudit { lines, cursor, more, answered, missing }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(last: u64, end: u64) -> AuditPage {
        AuditPage { last, end, ..AuditPage::default() }
    }

    #[test]
    fn a_controller_that_is_away_is_named_and_keeps_its_position() {
        let cursor = "1:5,3:8".parse().expect("a cursor");
        let answers = vec![
            (MemberId(1), 5, Ok(page(9, 9))),
            (MemberId(2), 0, Err("no route".to_owned())),
            (MemberId(3), 8, Err("no answer in 8 s".to_owned())),
        ];
        let found = gather(cursor, answers, 9);
        assert_eq!(found.cursor.to_string(), "1:9,2:0,3:8");
        assert_eq!(found.answered, [(MemberId(1), 9)].into());
        let missing: Vec<_> = found.missing.iter().map(|away| (away.member.0, away.reason.as_str())).collect();
        assert_eq!(missing, [(2, "no route"), (3, "no answer in 8 s")]);
    }

    #[test]
    fn the_end_is_known_when_a_controller_answers() {
        let away = (MemberId(2), AFTER_ALL, Err("no route".to_owned()));
        let found = gather(AuditCursor::end(), vec![(MemberId(1), AFTER_ALL, Ok(page(AFTER_ALL, 7))), away], 9);
        assert_eq!(found.cursor.to_string(), "1:7,2:end");
        assert!(!found.more && found.lines.is_empty());
        let found = gather(found.cursor, vec![(MemberId(2), AFTER_ALL, Ok(page(AFTER_ALL, 3)))], 9);
        assert_eq!(found.cursor.to_string(), "1:7,2:3");
    }
}
