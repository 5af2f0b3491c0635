//! Tests that a member can be backed up, restored and recovered, and that truncated and damaged archives are refused.

use std::fs;
use std::io::Read as _;
use std::path::Path;
use std::sync::Arc;

use atlas_env::Env;
use atlas_history::{History, SqliteHistory};
use atlas_raft::offline::{Beginning, begin};
use atlas_raft::{Handle, Member, Options, Service, start};
use atlas_state::State;
use atlas_types::{ClusterConfig, Command, ConfigureCluster, Digest, EventSeq, MemberId, Namespace, Origin, Request};
use sha2::{Digest as _, Sha256};

use crate::archive::{About, ArchiveError, Encoder, HISTORY, STATE, artifact_part, read};
use crate::recover::Plan;
use crate::restore::{inspect, restore};
use crate::{RecoveryError, generation};

const PACKAGE: &[u8] = b"a package";

async fn running(data_dir: &Path) -> (Handle, Service) {
    start(Options { history: false, ..Options::new(data_dir.to_owned()) }, Env::system()).await.expect("started")
}

async fn configure(handle: &Handle, jobs_active_max: u64) {
    let config = ClusterConfig { jobs_active_max, ..ClusterConfig::default() };
    let command = Command::ConfigureCluster(ConfigureCluster { config });
    let request = Request { origin: Origin::duty(Namespace::default_namespace()), command };
    handle.propose(vec![request]).await.expect("proposed")[0].as_ref().expect("accepted");
}

/// A stopped member whose state has the limit 9, with a history and the lock file of a controller.
async fn stopped(data_dir: &Path) -> State {
    let (handle, service) = running(data_dir).await;
    configure(&handle, 9).await;
    let state = handle.read().await.expect("it leads alone");
    service.shutdown().await;
    let history =
        SqliteHistory::open(atlas_history::Options::new(data_dir.join("history.sqlite")), Env::system(), |_| ());
    let history = history.expect("opens");
    history.bind(state.cluster_id()).expect("bound");
    history.resync(Vec::new(), state.event_seq()).await.expect("queued");
    history.close().await.expect("closed");
    fs::write(data_dir.join("lock"), "").expect("written");
    state
}

/// A backup of a state as a controller makes it.
fn archive(state: &State, history: &Path) -> Vec<u8> {
    let image = state.to_image();
    let mut body = Vec::new();
    atlas_format::encode_snapshot(&image, &mut body).expect("encodes");
    let history = fs::read(history).expect("readable");
    let package = artifact_part(&Digest(Sha256::digest(PACKAGE).into()));
    let (mut encoder, mut bytes) = Encoder::new(&About::of(&image, "0.1.0", 1_795_348_867));
    for (name, part) in [(STATE, &body[..]), (HISTORY, &history), (&package, PACKAGE)] {
        bytes.extend(encoder.begin(name, part.len() as u64));
        encoder.data(part);
        bytes.extend_from_slice(part);
        bytes.extend(encoder.end().expect("as announced"));
    }
    bytes.extend(encoder.finish(&[Digest([3; 32])]));
    bytes
}

#[tokio::test]
async fn a_backup_becomes_a_cluster_of_its_own() {
    let dir = tempfile::tempdir().expect("a directory");
    let old = dir.path().join("old");
    let state = stopped(&old).await;
    let backup = dir.path().join("atlas.tar");
    fs::write(&backup, archive(&state, &old.join("history.sqlite"))).expect("written");
    let inspected = inspect(&backup).expect("whole");
    assert_eq!(inspected.state.config().jobs_active_max, 9);
    assert_eq!(inspected.found.manifest.missing, ["03".repeat(32)]);

    let new = dir.path().join("new");
    let restored = restore(&backup, &new, "c1", &Env::system()).expect("restored");
    assert_ne!(restored.cluster_id, state.cluster_id());
    assert_eq!(restored.grant_seq, state.grant_seq().0 + generation::TOKENS_SKIPPED);
    assert!(matches!(restore(&backup, &new, "c1", &Env::system()), Err(RecoveryError::Taken { .. })));
    let hex = Digest(Sha256::digest(PACKAGE).into()).hex();
    assert_eq!(fs::read(new.join("artifacts").join(&hex[..2]).join(&hex[2..])).expect("there"), PACKAGE);
    let (handle, service) = running(&new).await;
    assert_eq!(handle.cluster_id(), restored.cluster_id);
    assert_eq!(handle.members().members[0].peer.name, "c1");
    let again = handle.read().await.expect("it leads alone");
    assert_eq!((again.config().jobs_active_max, again.grant_seq().0), (9, restored.grant_seq));
    configure(&handle, 10).await;
    service.shutdown().await;
    let history = SqliteHistory::open(atlas_history::Options::new(new.join("history.sqlite")), Env::system(), |_| ());
    history.expect("opens").bind(restored.cluster_id).expect("the history came along");
}

/// A volume of Kubernetes cannot be replaced, and nothing can be written beside it.
#[tokio::test]
async fn a_backup_is_restored_into_a_directory_that_exists() {
    let dir = tempfile::tempdir().expect("a directory");
    let old = dir.path().join("old");
    let state = stopped(&old).await;
    let backup = dir.path().join("atlas.tar");
    fs::write(&backup, archive(&state, &old.join("history.sqlite"))).expect("written");
    let volume = dir.path().join("volume");
    for left_over in ["lost+found", "restore.partial/raft"] {
        fs::create_dir_all(volume.join(left_over)).expect("a folder");
    }
    // As if an attempt had been interrupted while it moved the files.
    fs::create_dir_all(volume.join("artifacts/aa")).expect("a folder");
    fs::write(volume.join("history.sqlite"), "of before").expect("written");
    fs::write(dir.path().join("volume.partial"), "in the way").expect("written");
    let restored = restore(&backup, &volume, "c1", &Env::system()).expect("restored");
    let mut names: Vec<_> =
        fs::read_dir(&volume).expect("there").map(|entry| entry.expect("an entry").file_name()).collect();
    names.sort();
    assert_eq!(names, ["artifacts", "history.sqlite", "lost+found", "member.json", "raft"]);
    assert!(matches!(restore(&backup, &volume, "c1", &Env::system()), Err(RecoveryError::Taken { .. })));
    let (handle, service) = running(&volume).await;
    assert_eq!(handle.cluster_id(), restored.cluster_id);
    assert_eq!(handle.read().await.expect("it leads alone").config().jobs_active_max, 9);
    service.shutdown().await;
}

#[tokio::test]
async fn a_member_of_a_lost_majority_goes_on_alone_once_that_is_confirmed() {
    let dir = tempfile::tempdir().expect("a directory");
    let state = stopped(dir.path()).await;
    let plan = Plan::new(dir.path(), &Env::system()).expect("stopped");
    assert!(
        matches!(Plan::new(dir.path(), &Env::system()), Err(RecoveryError::Running { .. })),
        "the plan holds the lock"
    );
    assert!(matches!(plan.confirm("yes"), Err(RecoveryError::NotConfirmed { .. })));
    let plan = Plan::new(dir.path(), &Env::system()).expect("stopped");
    let confirmed = plan.confirm(&format!("{:032x}", state.cluster_id())).expect("typed");
    let recovered = confirmed.carry_out(&Env::system()).expect("recovered");
    assert_eq!(recovered.old_cluster_id, state.cluster_id());
    assert!(recovered.kept.join("log").is_dir(), "the old log is kept");
    let (handle, service) = running(dir.path()).await;
    assert_eq!(handle.cluster_id(), recovered.cluster_id);
    let again = handle.read().await.expect("it leads alone");
    assert_eq!(again.config().jobs_active_max, 9);
    assert_eq!(again.grant_seq().0, state.grant_seq().0 + generation::TOKENS_SKIPPED);
    assert_eq!(again.event_seq(), EventSeq(state.event_seq().0));
    service.shutdown().await;
}

#[test]
fn a_member_that_does_not_say_which_it_is_goes_on_only_as_the_first() {
    for (member, refused) in [(1, false), (3, true)] {
        let dir = tempfile::tempdir().expect("a directory");
        let known = Member::default();
        let beginning = Beginning { member: MemberId(member), known, state: State::new(7), term: 1, index: 5 };
        begin(&dir.path().join("raft"), beginning, &Env::system()).expect("writable");
        fs::write(dir.path().join("lock"), "").expect("written");
        let error = Plan::new(dir.path(), &Env::system()).err();
        assert!(matches!(error, Some(RecoveryError::Nameless { .. })) == refused, "member {member}: {error:?}");
    }
}

#[tokio::test]
async fn sums_are_of_every_part_or_in_older_backups_of_the_manifest_alone() {
    let dir = tempfile::tempdir().expect("a directory");
    let state = stopped(dir.path()).await;
    let whole = archive(&state, &dir.path().join("history.sqlite"));
    let with_sums = |change: &dyn Fn(&str) -> String| {
        let mut again = tar::Builder::new(Vec::new());
        for part in tar::Archive::new(&whole[..]).entries().expect("a tar file") {
            let mut part = part.expect("whole");
            let mut header = part.header().clone();
            let mut bytes = Vec::new();
            part.read_to_end(&mut bytes).expect("whole");
            if part.path_bytes() == b"manifest.sha256".as_slice() {
                bytes = change(std::str::from_utf8(&bytes).expect("text")).into_bytes();
            }
            header.set_size(bytes.len() as u64);
            header.set_cksum();
            again.append(&header, &bytes[..]).expect("appended");
        }
        let bytes = again.into_inner().expect("written");
        read(&bytes[..], |_, _| Ok(())).map(drop)
    };
    with_sums(&|sums| {
        let parts: Vec<&str> = sums.lines().filter_map(|line| line.split_once("  ")).map(|(_, part)| part).collect();
        let package = artifact_part(&Digest(Sha256::digest(PACKAGE).into()));
        assert_eq!(parts, ["about.json", STATE, HISTORY, &package, "manifest.json"]);
        sums.to_owned()
    })
    .expect("as it was written");
    with_sums(&|sums| format!("{}\n", sums.lines().last().expect("a line"))).expect("of an older program");
    for wrong in [|sums: &str| sums.replacen('0', "1", 1), |sums: &str| format!("{sums}\n"), |_: &str| String::new()] {
        assert!(matches!(with_sums(&wrong), Err(ArchiveError::Damaged { .. })));
    }
}

#[tokio::test]
async fn damage_and_cuts_are_noticed_wherever_they_are() {
    let dir = tempfile::tempdir().expect("a directory");
    let state = stopped(dir.path()).await;
    let whole = archive(&state, &dir.path().join("history.sqlite"));
    let verdict = |bytes: &[u8]| read(bytes, |_, _| Ok(()));
    verdict(&whole).expect("whole");
    // The last two blocks mark the end of a tar file. They may be missing.
    for cut in (0..whole.len() - 1024).step_by(509) {
        assert!(verdict(&whole[..cut]).is_err(), "cut at {cut}");
    }
    let mut noticed = 0;
    for at in (0..whole.len()).step_by(97) {
        let mut damaged = whole.clone();
        damaged[at] ^= 0x20;
        match verdict(&damaged) {
            Err(_) => noticed += 1,
            // The damaged byte may be in the zeros between the parts or in an unused field.
            Ok(found) => assert_eq!(Ok(found), verdict(&whole).map_err(drop), "byte {at}"),
        }
    }
    assert!(noticed > whole.len() / 97 / 2, "{noticed}");
}

#[test]
fn what_is_no_backup_is_told() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("x");
    fs::write(&path, b"no tar at all, but longer than a block".repeat(40)).expect("written");
    assert!(matches!(inspect(&path), Err(RecoveryError::Archive(ArchiveError::Io(_)))));
    fs::write(&path, b"").expect("written");
    assert!(matches!(inspect(&path), Err(RecoveryError::Archive(ArchiveError::Cut))));
    let mut other = tar::Builder::new(Vec::new());
    let mut header = tar::Header::new_gnu();
    header.set_size(0);
    other.append_data(&mut header, "etc/passwd", &[][..]).expect("appended");
    fs::write(&path, other.into_inner().expect("finished")).expect("written");
    let error = inspect(&path).expect_err("no backup");
    let cause = std::error::Error::source(&error).map(ToString::to_string).unwrap_or_default();
    assert_eq!(cause, "\"etc/passwd\" is not a part of a backup at this place");
}

/// Makes a copy through a trait object, because the controller uses the history that way.
#[tokio::test]
async fn a_copy_is_made_of_what_the_controller_holds() {
    let dir = tempfile::tempdir().expect("a directory");
    let state = stopped(dir.path()).await;
    let options = atlas_history::Options::new(dir.path().join("history.sqlite"));
    let history: Arc<dyn History> = Arc::new(SqliteHistory::open(options, Env::system(), |_| ()).expect("opens"));
    let to = dir.path().join("copy.sqlite");
    history.copy(to.clone(), state.event_seq()).await.expect("copied");
    archive(&state, &to);
}
