//! Checks of what operators look after: certificates, backups, and how people sign in.

use atlas_api::types::{ClusterView, Member};
use serde_json::Value;

use crate::client::Client;
use crate::command::object;
use crate::words;

use super::{Finding, ok, warn};

/// A certificate that should have been replaced this long ago is reported.
const DUE_LATE_S: f64 = 600.0;
/// A last backup that is older is reported: two days, so that one a day may be missed.
const BACKUP_OLD_S: f64 = 2.0 * 86_400.0;

/// A token that ends sooner is reported, as its holders need another one.
const TOKEN_ENDS_SOON_S: f64 = 7.0 * 86_400.0;

/// None without TLS. Controllers replace their certificates themselves, so one that is due for long could not be replaced.
pub(super) fn certificates(cluster: &ClusterView, now: f64) -> Option<Finding> {
    let ends = |member: &Member| Some((member.certificate_ends_at?, member.name.clone()));
    let (first, name) = cluster.members.iter().filter_map(ends).min_by(|a, b| a.0.total_cmp(&b.0))?;
    let late = |member: &&Member| member.certificate_due_at.is_some_and(|due| due + DUE_LATE_S < now);
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

pub(super) fn backups(cluster: &ClusterView, now: f64) -> Finding {
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
pub(super) async fn identity(client: &Client, now: f64) -> Option<Finding> {
    let all = async |kind: &str| object::all(client, kind).await.ok();
    Some(judged(all("issuer").await?.len(), &all("token").await?, now))
}

fn judged(issuers: usize, tokens: &[Value], now: f64) -> Finding {
    let both = format!("{}, {}", words::count(issuers as u64, "issuer"), words::count(tokens.len() as u64, "token"));
    if issuers == 0 && tokens.len() <= 1 {
        let add = "atlasctl auth oidc set NAME --url URL --audience TEXT";
        return warn("identity", format!("only the first token exists; let people sign in: {add}"));
    }
    let left = |token: &Value| Some(token["spec"]["expires_ms"].as_u64()? as f64 / 1e3 - now);
    let ends_soon = |token: &&Value| left(token).is_some_and(|left| (0.0..TOKEN_ENDS_SOON_S).contains(&left));
    let soon = tokens.iter().filter(ends_soon).filter_map(|token| token["metadata"]["name"].as_str());
    let soon = soon.collect::<Vec<_>>().join(", ");
    if !soon.is_empty() {
        let within = words::age(TOKEN_ENDS_SOON_S);
        let make = "make others for the same principal: atlasctl auth token create";
        return warn("identity", format!("{both}; ending within {within}: {soon}; {make}"));
    }
    match tokens.iter().filter(|token| left(token).is_none()).count() {
        0 => ok("identity", both),
        lasting => ok("identity", format!("{both}, {lasting} of which never end")),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::State;
    use super::super::tests::told;
    use super::*;
    use crate::answers;

    #[test]
    fn certificates_and_backups_are_looked_at() {
        let read = |members: Value| answers::read::<ClusterView>(&json!({"members": members})).expect("readable");
        let member = |name: &str, due: f64, ends: f64, backup: Option<f64>| json!({"name": name, "certificate_due_at": due, "certificate_ends_at": ends, "backup_at": backup});
        let (now, day) = (1_000_000.0, 86_400.0);
        let two = |due: f64, ends: f64, backup: Option<f64>| {
            read(json!([member("c1", now + day, now + 3.0 * day, None), member("c2", due, ends, backup)]))
        };
        let tls = |cluster: &ClusterView| certificates(cluster, now).map(|finding| told(&finding));
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
        assert_eq!(backups(&over, now).state, State::Warning);
    }

    #[test]
    fn a_cluster_with_one_token_is_new() {
        let day = 86_400_000_u64;
        let token = |name: &str, ends: Option<u64>| json!({"metadata": {"name": name}, "spec": {"expires_ms": ends}});
        let first = [token("first", Some(30 * day))];
        assert_eq!(judged(0, &first, 0.0).state, State::Warning);
        assert_eq!(told(&judged(1, &first, 0.0)), "ok 1 issuer, 1 token");
        let two = [token("first", Some(30 * day)), token("ci", None)];
        assert_eq!(told(&judged(0, &two, 0.0)), "ok 0 issuers, 2 tokens, 1 of which never end");
        let soon = "warn 0 issuers, 2 tokens; ending within 7 d: first; make others for the same principal: atlasctl auth token create";
        assert_eq!(told(&judged(0, &two, 25.0 * 86_400.0)), soon);
        // One that has ended is refused already.
        assert_eq!(judged(0, &two, 31.0 * 86_400.0).state, State::Well);
    }
}
