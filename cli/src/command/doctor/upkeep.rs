//! Checks of what operators look after: certificates, backups, and how people sign in.

use crate::api::{Cluster, Controller};
use crate::client::Client;
use crate::command::object;
use crate::words;

use super::{Finding, ok, warn};

/// A certificate that should have been replaced this long ago is reported.
const DUE_LATE_S: f64 = 600.0;
/// A last backup that is older is reported: two days, so that one a day may be missed.
const BACKUP_OLD_S: f64 = 2.0 * 86_400.0;

/// None without TLS. Controllers replace their certificates themselves, so one that is due for long could not be replaced.
pub(super) fn certificates(cluster: &Cluster, now: f64) -> Option<Finding> {
    let ends = |member: &Controller| Some((member.certificate_ends_at?, member.name.clone()));
    let (first, name) = cluster.members.iter().filter_map(ends).min_by(|a, b| a.0.total_cmp(&b.0))?;
    let late = |member: &&Controller| member.certificate_due_at.is_some_and(|due| due + DUE_LATE_S < now);
    let late: Vec<&str> = cluster.members.iter().filter(late).map(|member| member.name.as_str()).collect();
    if first <= now {
        return Some(warn(
            "certificates",
            format!("the certificate of {name} has ended: its log says why it has no new one"),
        ));
    }
    let text = format!("the next to end is that of {name}, in {}", words::age(first - now));
    if late.is_empty() {
        return Some(ok("certificates", text));
    }
    Some(warn("certificates", format!("{text}; not replaced in time: {}, whose log says why", late.join(", "))))
}

pub(super) fn backups(cluster: &Cluster, now: f64) -> Finding {
    let last = cluster.members.iter().filter_map(|member| member.backup_at).max_by(f64::total_cmp);
    let Some(age) = last.map(|at| now - at) else {
        return warn("backups", "no controller has made one: atlasctl operator snapshot save FILE");
    };
    let text = format!("the last one {} ago", words::age(age.max(0.0)));
    if age > BACKUP_OLD_S {
        return warn("backups", format!("{text}: check what makes them"));
    }
    ok("backups", text)
}

/// None if it cannot be known: only those who may read tokens see them.
pub(super) async fn identity(client: &Client) -> Option<Finding> {
    let count = async |kind: &str| Some(object::all(client, kind).await.ok()?.len());
    Some(judged(count("issuer").await?, count("token").await?))
}

fn judged(issuers: usize, tokens: usize) -> Finding {
    let both = format!("{}, {}", words::count(issuers as u64, "issuer"), words::count(tokens as u64, "token"));
    if issuers == 0 && tokens <= 1 {
        let add = "atlasctl auth oidc set NAME --url URL --audience TEXT";
        return warn("identity", format!("only the first token exists; let people sign in: {add}"));
    }
    ok("identity", both)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::super::tests::told;
    use super::*;
    use crate::api;

    #[test]
    fn certificates_and_backups_are_looked_at() {
        let read = |members: Value| api::read::<Cluster>(&json!({"members": members})).expect("readable");
        let member = |name: &str, due: f64, ends: f64, backup: Option<f64>| json!({"name": name, "certificate_due_at": due, "certificate_ends_at": ends, "backup_at": backup});
        let (now, day) = (1_000_000.0, 86_400.0);
        let two = |due: f64, ends: f64, backup: Option<f64>| {
            read(json!([member("c1", now + day, now + 3.0 * day, None), member("c2", due, ends, backup)]))
        };
        let tls = |cluster: &Cluster| certificates(cluster, now).map(|finding| told(&finding));
        assert_eq!(tls(&read(json!([{"name": "c1"}]))), None);
        let well = two(now + day, now + 2.0 * day, Some(now - 3_600.0));
        assert_eq!(tls(&well).as_deref(), Some("ok the next to end is that of c2, in 2 d"));
        assert_eq!(told(&backups(&well, now)), "ok the last one 1 h ago");
        let late = two(now - 700.0, now + day, Some(now - 3.0 * day));
        assert_eq!(
            tls(&late).as_deref(),
            Some("warn the next to end is that of c2, in 24 h; not replaced in time: c2, whose log says why")
        );
        assert_eq!(told(&backups(&late, now)), "warn the last one 3 d ago: check what makes them");
        let over = two(now - day, now - 1.0, None);
        assert_eq!(
            tls(&over).as_deref(),
            Some("warn the certificate of c2 has ended: its log says why it has no new one")
        );
        assert!(!backups(&over, now).ok);
    }

    #[test]
    fn a_cluster_with_one_token_is_new() {
        assert!(!judged(0, 1).ok && judged(0, 2).ok);
        assert_eq!(told(&judged(1, 1)), "ok 1 issuer, 1 token");
    }
}
