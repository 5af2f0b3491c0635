//! What a server may send.

use std::time::Duration;

/// The largest message.
pub(crate) const MESSAGE_BYTES_MAX: usize = 8 << 20;
/// Most messages of one connection in ten seconds.
pub(crate) const MESSAGES_MAX: usize = 10_000;
pub(crate) const MESSAGES_TIME: Duration = Duration::from_secs(10);
/// Most of the text of an error.
pub(crate) const ERROR_BYTES_MAX: usize = 4 << 10;
/// The longest scope that an error repeats.
pub(crate) const SCOPE_MAX: usize = 128;
/// Most pages of the list of tools, and most bytes of all definitions of a server.
pub(crate) const PAGES_MAX: usize = 64;
pub(crate) const DEFINITIONS_BYTES_MAX: usize = 4 << 20;
/// How old a list of tools may be, and how old that of a pinned server may be when one of its tools is called.
pub(crate) const TOOLS_AGE_MAX: Duration = Duration::from_secs(60);
pub(crate) const PINNED_AGE_MAX: Duration = Duration::from_secs(5);
/// The result of a call, as JSON.
pub(crate) const RESULT_BYTES_MAX: usize = 1 << 20;
/// The time that a server gets for its goodbye.
pub(crate) const CLOSE_MAX: Duration = Duration::from_secs(2);
/// The time in which a server must answer a probe.
pub(crate) const PROBE_MAX: Duration = Duration::from_secs(3);
/// The time in which a server of unknown age must answer `server/discover`, before it is asked as an older one.
pub(crate) const DISCOVER_MAX: Duration = Duration::from_millis(1_500);
/// How often one call may ask for more input.
pub(crate) const ROUNDS_MAX: usize = 4;
/// Of how many servers it is remembered what they speak.
pub(crate) const SERVERS_MAX: usize = 1_024;
/// Most connections of one pool.
pub(crate) const CONNECTIONS_MAX: usize = 512;
/// The pause after the first failure; it doubles up to the second value.
pub(crate) const PAUSE: Duration = Duration::from_millis(500);
pub(crate) const PAUSE_MAX: Duration = Duration::from_secs(60);
