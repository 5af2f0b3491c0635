//! Tests that a stopped member's files can be read, and that another member starts from the data.

use atlas_env::Env;
use atlas_types::{ClusterConfig, Command, ConfigureCluster, MemberId, Namespace, Origin, Request};

use super::*;
use crate::{Member, Options, start};

fn configure(jobs_active_max: u64) -> Vec<Request> {
    let config = ClusterConfig { jobs_active_max, ..ClusterConfig::default() };
    let command = Command::ConfigureCluster(ConfigureCluster { config });
    vec![Request { origin: Origin::duty(Namespace::default_namespace()), command }]
}

fn options(data_dir: &Path) -> Options {
    Options { history: false, ..Options::new(data_dir.to_owned()) }
}

#[tokio::test]
async fn a_stopped_member_is_read_without_a_change() {
    let dir = tempfile::tempdir().expect("a directory");
    let (handle, service) = start(options(dir.path()), Env::system()).await.expect("started");
    for limit in 7..10 {
        handle.propose(configure(limit)).await.expect("proposed")[0].as_ref().expect("accepted");
    }
    let running = StoppedMember::open(dir.path());
    assert!(matches!(running, Err(OfflineError::Log(LogError::Locked { .. }))));
    let cluster_id = handle.cluster_id();
    drop(handle);
    service.shutdown().await;

    let files = || -> Vec<_> {
        let log = std::fs::read_dir(dir.path().join("raft/log")).expect("a log");
        log.flatten().map(|file| (file.file_name(), std::fs::read(file.path()).expect("readable"))).collect()
    };
    let before = files();
    let member = StoppedMember::open(dir.path()).expect("stopped");
    let about = member.about();
    assert_eq!((about.cluster_id, about.voters.as_slice(), about.torn), (cluster_id, &[MemberId(1)][..], false));
    let entries: Vec<_> = member.entries(0).collect::<Result<_, _>>().expect("readable");
    assert_eq!(entries.last().map(|entry| entry.id), about.last);
    let commands = entries.iter().filter(|entry| matches!(entry.says, LogContent::Commands(_))).count();
    assert!(commands >= 3, "{entries:?}");
    assert!(entries.iter().any(|entry| matches!(entry.says, LogContent::Membership { .. })), "{entries:?}");
    assert_eq!(member.state().expect("replayed").config().jobs_active_max, 9);
    drop(member);
    assert!(before == files(), "reading changes nothing");
}

#[tokio::test]
async fn a_member_begins_from_a_state() {
    let dir = tempfile::tempdir().expect("a directory");
    let (handle, service) = start(options(&dir.path().join("old")), Env::system()).await.expect("started");
    handle.propose(configure(5)).await.expect("proposed")[0].as_ref().expect("accepted");
    drop(handle);
    service.shutdown().await;
    let mut image =
        StoppedMember::open(&dir.path().join("old")).expect("stopped").state().expect("replayed").to_image();
    image.cluster_id = 42;
    let state = State::from_image(image).expect("a state");

    let new = dir.path().join("new");
    let beginning = Beginning { member: MemberId(4), known: Member::at("h:1"), state, term: 3, index: 90 };
    begin(&new.join("raft"), beginning.clone(), &Env::system()).expect("begun");
    let again = begin(&new.join("raft"), beginning, &Env::system());
    assert!(matches!(again, Err(OfflineError::Exists { .. })));
    let (handle, service) =
        start(Options { member: MemberId(4), ..options(&new) }, Env::system()).await.expect("started");
    assert_eq!(handle.cluster_id(), 42);
    assert_eq!(handle.read().await.expect("it leads alone").config().jobs_active_max, 5);
    handle.propose(configure(6)).await.expect("proposed")[0].as_ref().expect("accepted");
    drop(handle);
    service.shutdown().await;
    let about = StoppedMember::open(&new).expect("stopped").about();
    assert_eq!(about.voters, [MemberId(4)]);
    assert!(about.last.is_some_and(|last| last.index > 90 && last.term > 3), "{about:?}");
}

#[tokio::test]
async fn a_log_whose_last_group_is_damaged_is_read_without_it_only_if_that_is_asked_for() {
    let dir = tempfile::tempdir().expect("a directory");
    let (handle, service) = start(options(&dir.path().join("old")), Env::system()).await.expect("started");
    for limit in 7..10 {
        handle.propose(configure(limit)).await.expect("proposed")[0].as_ref().expect("accepted");
    }
    // A copy of the files as a killed process leaves them.
    let copy = dir.path().join("copy");
    std::fs::create_dir_all(copy.join("raft/log")).expect("a directory");
    for file in std::fs::read_dir(dir.path().join("old/raft/log")).expect("a log").flatten() {
        std::fs::copy(file.path(), copy.join("raft/log").join(file.file_name())).expect("copied");
    }
    drop(handle);
    service.shutdown().await;
    let segment = copy.join("raft/log/log-0000000000000001.seg");
    let mut bytes = std::fs::read(&segment).expect("readable");
    let last = bytes.iter().rposition(|&byte| byte != 0).expect("something is written");
    bytes[last] ^= 1;
    std::fs::write(&segment, &bytes).expect("written");

    let refused = StoppedMember::open(&copy).err().expect("refused");
    let text = atlas_env::chain(&refused);
    assert!(text.contains("\"log-0000000000000001.seg\" at byte "), "{text}");
    assert!(text.contains("atlasctl operator raft recover --drop-damaged-tail"), "{text}");
    let member = StoppedMember::open_with(&copy, Tail::DropDamaged).expect("read");
    assert!(member.about().cut_short && !member.about().torn);
    assert_eq!(member.state().expect("replayed").config().jobs_active_max, 8, "the last entry is given up");
}

#[test]
fn a_directory_without_a_log_is_told() {
    let dir = tempfile::tempdir().expect("a directory");
    let error = StoppedMember::open(dir.path()).err().expect("nothing there");
    assert!(error.to_string().ends_with("raft/log\" contains no controller log"), "{error}");
}
