//! The cluster of the page on sizing, which has TLS: whom it serves, and whom it refuses.

use super::page::DESK;
use super::{cluster, goes_on};
use crate::{LONG, eventually};

#[test]
fn strangers_and_revoked_nodes_are_refused_and_the_rest_goes_on_without_one_controller() {
    let Some((mut site, id)) = cluster() else { return };
    for (file, mode) in [("keys/ca.key", "600"), ("keys/root.token", "600"), ("keys", "700"), ("w1.token", "600")] {
        assert_eq!(site.typed(DESK, &format!("stat -c %a {file}")).trim(), mode, "{file}");
    }
    assert_eq!(site.typed("w1", "stat -c %a /var/lib/atlas-worker/tls/node.key").trim(), "600");

    // There is a new cluster without backups, in which only its first token exists.
    let said = site.typed(DESK, "atlasctl doctor; true");
    for line in ["ok    certificates  the next to end is that of c", "warn  backups", "warn  identity"] {
        assert!(said.contains(line), "{line}: {said}");
    }

    // One controller dies.
    site.kill("c2");
    goes_on(&mut site, &id);

    // A client that does not speak TLS, one that does not know the cluster, and one without a token.
    site.refused(DESK, "ATLAS_SERVER=http://10.0.0.1:7400 atlasctl cluster status", 3);
    let said = site.refused(DESK, "env -u ATLAS_CA_FILE atlasctl cluster status", 3);
    assert!(said.contains("an authority that this machine does not trust"), "{said}");
    let said = site.refused(DESK, "ATLAS_TOKEN= atlasctl cluster status", 5);
    assert!(said.contains("E2106"), "{said}");

    // Workers without a certificate, with a token that was used, and with the certificate of another node.
    let worker = "timeout 6 atlas-worker --data-dir /var/lib/other --controller 10.0.0.1:7401,10.0.0.3:7401";
    let said = site.refused(DESK, &format!("{worker} --node w2"), 124);
    assert!(!said.contains("session open"), "{said}");
    let said = site.refused(DESK, &format!("{worker} --node w1 --token-file w1.token"), 1);
    assert!(said.contains("the join token is refused"), "{said}");
    site.carry_back("lib/atlas-worker/tls", "w1");
    let said = site.refused(DESK, &format!("{worker} --node w2 --tls-dir tls"), 1);
    assert!(said.contains("is not that of node"), "{said}");
    assert!(!site.typed(DESK, "atlasctl node list").contains("w2"));

    // A node that was revoked loses its session and gets no other.
    assert!(site.typed(DESK, "atlasctl get enrollment").contains("w1"));
    site.typed(DESK, "atlasctl node revoke w1");
    eventually("the node is down", LONG, || {
        let nodes = site.typed(DESK, "atlasctl node list -o json");
        let nodes: serde_json::Value = serde_json::from_str(&nodes).ok()?;
        (nodes[0]["health"] == "down").then_some(())
    });
    assert!(site.said("w1").contains("session closed") || site.said("w1").contains("session ended"));

    // It joins again with another token.
    site.stop("w1");
    site.typed(DESK, "rm w1.token && atlasctl node token w1 --to w1.token");
    site.carry("w1.token", "w1");
    site.start_again("w1");
    goes_on(&mut site, &id);
}
