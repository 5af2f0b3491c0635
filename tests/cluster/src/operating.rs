//! Runs the pages of `docs/operating`: each command of a page runs in order, on the machine in its prompt. The tests
//! here do and check what the text around the commands says.

mod kubernetes;
mod page;
mod site;
mod tls;

use page::{DESK, Page};
use site::{KEYS, Site};

use crate::{Agent, write_agent};

/// Returns a fixed greeting.
const HELLO: Agent<'static> = Agent {
    name: "hello",
    version: "1.0.0",
    contract: "",
    script: r#"cat >/dev/null; printf '{"greeting": "Hello"}'"#,
};

/// Builds a cluster by the page on sizing, with an agent and a job that has ended; returns it with the job's id.
fn cluster() -> Option<(Site, String)> {
    let mut site = Site::of_three()?;
    write_agent(&site.home(DESK), &HELLO);
    site.typed(DESK, "atlasctl deploy ./hello");
    let id = site.typed(DESK, "atlasctl run hello --detach").trim().to_owned();
    site.typed(DESK, &format!("atlasctl job wait {id}"));
    Some((site, id))
}

/// Checks that the job still has its result and that the cluster runs another job.
fn goes_on(site: &mut Site, id: &str) {
    let result = site.typed(DESK, &format!("atlasctl job result {id}"));
    assert!(result.contains("Hello"), "{result}");
    assert!(site.typed(DESK, "atlasctl run hello").contains("Hello"));
}

#[test]
fn a_backup_is_made_looked_at_and_restored_as_the_pages_say() {
    let Some((mut site, id)) = cluster() else { return };
    let mut page = Page::open("backup.md");
    site.run(&page.next("atlasctl operator snapshot save"));
    assert_eq!(site.typed(DESK, "stat -c %a atlas.tar").trim(), "600");
    site.run(&page.next("atlasctl operator snapshot inspect"));
    let sums = site.run(&page.next("mkdir look && tar"));
    assert!(sums.lines().all(|line| line.ends_with(": OK")), "{sums}");
    for part in ["about.json", "state.snapshot", "history.sqlite", "manifest.json"] {
        assert!(sums.contains(&format!("{part}: OK")), "{part} is not summed: {sums}");
    }
    page.end();

    // The whole cluster is lost.
    for machine in ["c1", "c2", "c3"] {
        site.lose(machine);
    }
    site.carry("atlas.tar", "c1");
    site.carry(KEYS, "c1");
    let mut page = Page::open("restore.md");
    site.run(&page.next("atlasctl operator snapshot inspect"));
    site.run(&page.next("atlasctl operator snapshot restore"));
    site.start(&page.next("atlas-controller"));
    site.run(&page.next("atlasctl cluster status"));
    assert!(site.run(&page.next("atlasctl job list")).contains(id.trim_start_matches("job-").split_at(4).0));
    assert!(site.run(&page.next("atlasctl node list")).contains("w1"));
    page.end();
    goes_on(&mut site, &id);

    // Further controllers join by the page on sizing.
    let mut page = Page::open("sizing.md");
    page.next("atlasctl operator init");
    page.next("atlas-controller");
    page.next("export");
    page.next("export");
    page.next("export");
    for machine in ["c2", "c3"] {
        site.join(&mut page, machine);
    }
    site.all_vote();
    goes_on(&mut site, &id);
}

#[test]
fn what_is_lost_is_replaced_as_the_page_on_disasters_says() {
    let Some((mut site, id)) = cluster() else { return };
    let mut page = Page::open("disaster-recovery.md");
    let status = page.next("atlasctl cluster status");
    site.run(&status);
    // One controller is down, and is started again.
    site.stop("c2");
    site.typed(DESK, "for i in $(seq 40); do atlasctl cluster status >/dev/null || exit 0; sleep 0.5; done; exit 1");
    site.run_to(&status, 1);
    goes_on(&mut site, &id);
    site.start_again("c2");
    site.all_vote();

    // One disk is lost.
    site.lose("c3");
    site.run(&page.next("atlasctl cluster remove"));
    site.join(&mut page, "c3");
    site.all_vote();
    site.run(&page.next("atlasctl cluster transfer-leader"));
    goes_on(&mut site, &id);

    // The majority is lost.
    site.lose("c2");
    site.lose("c3");
    site.stop("c1");
    site.run(&page.next("atlasctl operator raft log"));
    let told = site.run_to(&page.next("atlasctl operator raft recover"), 2);
    let confirm = told.split_once("--confirm ").map(|(_, id)| id.split_whitespace().next().unwrap_or_default());
    let cluster = confirm.expect("it tells the command").to_owned();
    site.run(&page.next("atlasctl operator raft recover").with("CLUSTER_ID", &cluster));
    site.start(&page.next("atlas-controller"));
    site.run(&page.next("atlasctl cluster status"));
    goes_on(&mut site, &id);
    for machine in ["c2", "c3"] {
        site.join(&mut page, machine);
    }
    page.end();
    site.all_vote();
    goes_on(&mut site, &id);
}

#[test]
fn programs_are_replaced_one_after_the_other_as_the_page_on_upgrades_says() {
    let Some((mut site, id)) = cluster() else { return };
    let mut page = Page::open("upgrade.md");
    site.run(&page.next("atlasctl operator snapshot save"));
    let status = page.next("atlasctl cluster status");
    // The page says to restart the leader last. The order does not matter here, because a stopping leader transfers its
    // leadership.
    for machine in ["c2", "c3", "c1"] {
        site.stop(machine);
        site.start_again(machine);
        site.all_vote();
        site.run(&status);
        goes_on(&mut site, &id);
    }
    site.run(&page.next("atlasctl node drain"));
    site.stop("w1");
    site.start_again("w1");
    site.run(&page.next("atlasctl node uncordon"));
    goes_on(&mut site, &id);
    let members = site.run(&page.next("atlasctl cluster members"));
    assert!(["c1", "c2", "c3"].iter().all(|name| members.contains(name)), "{members}");
    page.end();
}
