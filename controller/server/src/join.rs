//! The identity of this controller: a member, the first member of a new cluster, or one that joins an existing cluster.

use std::time::Duration;

use atlas_env::Env;
use atlas_raft::offline::StoppedMember;
use atlas_raft::{Identity, Member};
use atlas_types::MemberId;
use atlas_wire::proto::peer::v1 as wire;
use tonic::{Code, Status};

use crate::{JoinError, Options, StartError, authentication, cluster};

/// How long a cluster may take to answer. Its members may all be starting or electing.
const PATIENCE: Duration = Duration::from_secs(120);
/// The pause before the members are asked again.
const PAUSE: Duration = Duration::from_millis(500);
/// How long nothing may listen at the addresses of members before a controller forms a new cluster.
const ALONE: Duration = Duration::from_secs(10);
/// How long one of these addresses may take to accept a connection.
const CONNECT_MAX: Duration = Duration::from_secs(1);
/// The first member of a cluster.
const FIRST: MemberId = MemberId(1);

/// The identity of a controller when it starts.
pub(crate) struct Who {
    /// Its number.
    pub(crate) member: MemberId,
    /// Its name for people.
    pub(crate) name: String,
    /// Its cluster. None for a directory without a stored name, whose log contains the cluster.
    pub(crate) cluster_id: Option<u128>,
    /// True if it was admitted to a cluster. It then never forms one.
    pub(crate) joins: bool,
}

/// Determines the identity of this controller, and joins a cluster if configured. `own` is its address, and `peers_env`
/// leads to members.
pub(crate) async fn identify(
    options: &Options,
    own: &Member,
    (env, peers_env): (&Env, &Env),
) -> Result<Who, StartError> {
    let failed = |source| StartError::DataDir { path: options.data_dir.clone(), source };
    let found = Identity::read(&*env.files, &options.data_dir).map_err(failed)?;
    let request_id = match found {
        Some(Identity::Member { cluster_id, member, name }) => {
            return Ok(Who { member, name, cluster_id: Some(cluster_id), joins: true });
        }
        Some(Identity::Joining { request_id }) => Some(request_id),
        None => None,
    };
    if options.join.is_empty() && request_id.is_some() {
        return Err(JoinError::Unfinished.into());
    }
    let has_log = options.data_dir.join("raft").exists();
    if options.join.is_empty() || (request_id.is_none() && has_log) {
        if has_log {
            check_is_first(options, env).await?;
        }
        let name = if own.name.is_empty() { format!("c{FIRST}") } else { own.name.clone() };
        return Ok(Who { member: FIRST, name, cluster_id: None, joins: false });
    }
    if own.peer.is_empty() {
        return Err(JoinError::NoAddress.into());
    }
    // The same list is given to all members, so it can have this one.
    let members: Vec<String> = options.join.iter().filter(|address| **address != own.peer).cloned().collect();
    if options.bootstrap && request_id.is_none() && nobody_listens(&members, env).await {
        tracing::info!("nothing listens at the addresses of other members: this controller forms a new cluster");
        let name = if own.name.is_empty() { format!("c{FIRST}") } else { own.name.clone() };
        return Ok(Who { member: FIRST, name, cluster_id: None, joins: false });
    }
    let token = match (&options.token, authentication::root_text(options)?) {
        (Some(token), _) => token.clone(),
        (None, Some(root)) => root,
        (None, None) => return Err(JoinError::NoToken.into()),
    };
    let request_id = match request_id {
        Some(request_id) => request_id,
        None => {
            let request_id = format!("join-{:032x}", env.entropy.u128());
            let joining = Identity::Joining { request_id: request_id.clone() };
            joining.write(&*env.files, &options.data_dir).map_err(failed)?;
            request_id
        }
    };
    let Member { name, peer, worker, http } = own.clone();
    let feature_level = options.level.0;
    let request = wire::JoinRequest { token, request_id, name, peer, worker, http, feature_level, forwarded: false };
    let wire::JoinResponse { cluster_id, member_id, name } = ask(&members, request, peers_env).await?;
    let cluster_id: [u8; 16] = cluster_id.as_ref().try_into().map_err(|_| JoinError::Malformed)?;
    let (cluster_id, member) = (u128::from_be_bytes(cluster_id), MemberId(member_id));
    let identity = Identity::Member { cluster_id, member, name: name.clone() };
    identity.write(&*env.files, &options.data_dir).map_err(failed)?;
    tracing::info!(%member, %name, "joined the cluster as a learner");
    Ok(Who { member, name, cluster_id: Some(cluster_id), joins: true })
}

/// Checks that a log without `member.json` belongs to a first member, created before that file existed. If the file was
/// lost instead, the controller must not start: with another member's number, two controllers would vote as one.
async fn check_is_first(options: &Options, env: &Env) -> Result<(), StartError> {
    let data_dir = options.data_dir.clone();
    let opened = env.spawn_blocking("read-log", move || StoppedMember::open(&data_dir));
    match opened.join().await.map_err(|_| StartError::Thread)? {
        Ok(member) if member.about().knows_no_other_than(FIRST) => Ok(()),
        Ok(_) => Err(JoinError::Nameless { path: options.data_dir.clone() }.into()),
        // There is no log, so a new one is created later. Other errors are reported when it is opened.
        Err(_) => Ok(()),
    }
}

/// Asks the members in turn until one answers for the cluster.
async fn ask(addresses: &[String], request: wire::JoinRequest, env: &Env) -> Result<wire::JoinResponse, JoinError> {
    let deadline = env.clock.monotonic() + PATIENCE;
    let mut told = false;
    loop {
        let mut reason = String::new();
        for address in addresses {
            match cluster::ask_to_join(env, address, request.clone()).await {
                Ok(answer) => return Ok(answer),
                Err(status) if is_final(&status) => {
                    return Err(JoinError::Refused { reason: status.message().to_owned() });
                }
                Err(status) => reason = status.message().to_owned(),
            }
        }
        if env.clock.monotonic() > deadline {
            return Err(JoinError::Unreachable { addresses: addresses.join(", "), reason });
        }
        if !told {
            tracing::warn!(%reason, "no member has accepted this controller yet, trying again");
            told = true;
        }
        env.clock.sleep(PAUSE).await;
    }
}

/// Whether no address accepts a connection for [`ALONE`].
async fn nobody_listens(addresses: &[String], env: &Env) -> bool {
    let deadline = env.clock.monotonic() + ALONE;
    loop {
        for address in addresses {
            let connected = tokio::time::timeout(CONNECT_MAX, env.net.connect(address)).await;
            if connected.is_ok_and(|connection| connection.is_ok()) {
                return false;
            }
        }
        if env.clock.monotonic() > deadline {
            return true;
        }
        env.clock.sleep(PAUSE).await;
    }
}

/// True if a repeat would get the same answer.
fn is_final(status: &Status) -> bool {
    let again = [Code::Unavailable, Code::DeadlineExceeded, Code::Cancelled, Code::Unknown, Code::Internal];
    !again.contains(&status.code())
}

#[cfg(test)]
mod tests {
    use atlas_raft::offline::{Beginning, begin};
    use atlas_state::State;

    use super::*;

    /// The member that is assumed for a directory with only the log of `member`.
    async fn taken_for(member: u64) -> Result<MemberId, StartError> {
        let dir = tempfile::tempdir().expect("temporary directory");
        let env = Env::system();
        let member = MemberId(member);
        let beginning = Beginning { member, known: Member::default(), state: State::new(7), term: 1, index: 5 };
        begin(&dir.path().join("raft"), beginning, &env).expect("writable");
        let options = Options::new(dir.path().to_owned());
        identify(&options, &Member::default(), (&env, &env)).await.map(|who| who.member)
    }

    #[tokio::test]
    async fn a_log_without_a_name_is_that_of_a_first_member_or_refused() {
        assert_eq!(taken_for(1).await.expect("the first"), FIRST);
        let refused = taken_for(3).await;
        assert!(matches!(refused, Err(StartError::Join(JoinError::Nameless { .. }))), "{refused:?}");
    }
}
