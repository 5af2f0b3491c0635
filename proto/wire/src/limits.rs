//! Bounds on what a peer may send; a frame beyond them is refused.

/// Largest frame that a controller reads from a worker: the largest report (input, output and metadata inline) with room.
pub const WORKER_FRAME_BYTES_MAX: usize = 4 << 20;

/// Largest frame that a worker reads from its controller. A welcome carries the node's whole lease set with inputs.
pub const CONTROLLER_FRAME_BYTES_MAX: usize = 64 << 20;

/// Largest frame between controllers: an entry or two and a snapshot's part, with room.
pub const PEER_FRAME_BYTES_MAX: usize = 16 << 20;

/// Size of the parts in which packages, payloads and snapshots are sent.
pub const CHUNK_BYTES: usize = 256 << 10;

/// Most leases in a hello or a welcome.
pub const LEASES_MAX: usize = 65_536;

/// Most controllers in a welcome.
pub const CONTROLLERS_MAX: usize = 64;

/// Most GPUs, device files or labels of a node, each.
pub const INVENTORY_ITEMS_MAX: usize = 1_024;

/// Most stream events in one frame.
pub const STREAM_EVENTS_MAX: usize = 4_096;

/// Most bytes of a label, a device path, a GPU's words or an address.
pub const WORD_BYTES_MAX: usize = 4_096;

/// Most bytes of an error text or a line of a stream.
pub const TEXT_BYTES_MAX: usize = 64 << 10;

/// Most tries of model calls in an announcement, and most numbers of those before; each.
pub const MODEL_USES_MAX: usize = 16_384;

/// Most bytes of a tool's arguments, and of its result.
pub const TOOL_BYTES_MAX: usize = 1 << 20;

/// Most bytes of a job's metadata.
pub const METADATA_BYTES_MAX: usize = 64 << 10;
