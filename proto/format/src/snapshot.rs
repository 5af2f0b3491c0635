//! Snapshots: a state image as a stream of small records, so that neither end ever holds all bytes.
//!
//! Magic, then records (four bytes of length, one message), then BLAKE3 of everything before. A reader fails on a
//! record it does not understand, and never allocates more memory for a record than bytes have arrived.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, ErrorKind, Read, Write};
use std::sync::Arc;

use atlas_types::{
    AgentName, Bucket, ClusterTime, EndedImage, Envelope, EnvelopeImage, EventSeq, FencingToken, InboxImage, Job,
    JobId, JournalImage, Level, LimitKey, MemberId, Namespace, NodeImage, Principal, RequestId, RequestImage, RunSpec,
    Seq, SinkImage, StateImage, StepKey, Timestamp,
};
use prost::Message as _;

mod jobs;

use self::jobs::JobRecords;

use crate::convert::{fixed, name, required};
use crate::proto::snapshot_record::Kind;
use crate::{FormatError, SnapshotError, proto};

const MAGIC: [u8; 8] = *b"ATLSNAP1";

/// Most bytes of one record. A job comes from at most two entries, which have 1 MiB each; the rest is room.
pub const RECORD_BYTES_MAX: usize = 8 << 20;

/// Writes a snapshot. The writer should be buffered; it is flushed at the end, not synced.
pub fn encode_snapshot(image: &StateImage, out: &mut impl Write) -> Result<(), SnapshotError> {
    let write = |source| SnapshotError::Io { doing: "write", source };
    let digest = write_records(image, out).map_err(write)?;
    out.write_all(&digest).and_then(|()| out.flush()).map_err(write)
}

/// The digest of a whole state: the checksum that ends its snapshot. Equal states have equal digests.
pub fn digest_state(image: &StateImage) -> [u8; 32] {
    write_records(image, &mut io::sink()).unwrap_or_else(|_| unreachable!("a sink takes everything"))
}

/// Writes everything but the checksum, which it returns.
fn write_records(image: &StateImage, out: &mut impl Write) -> io::Result<[u8; 32]> {
    let mut records = RecordWriter { out, hasher: blake3::Hasher::new(), buffer: Vec::new(), records: 0 };
    records.bytes(&MAGIC)?;
    records.record(Kind::Head(head_out(image)))?;
    for agent in &image.agents {
        records.record(Kind::Agent((&**agent).into()))?;
    }
    for node in &image.nodes {
        let message = proto::NodeRecord { node: Some((&*node.node).into()), inventory_since: node.inventory_since.0 };
        records.record(Kind::Node(message))?;
    }
    for job in &image.jobs {
        records.record(Kind::Job((&**job).into()))?;
    }
    for ended in &image.ended {
        records.record(Kind::Ended(proto::EndedRecord { event_seq: ended.event.0, job_id: ended.job.0 }))?;
    }
    for request in &image.requests {
        records.record(Kind::Request(request_out(request)))?;
    }
    for sink in &image.sinks {
        records.record(Kind::Sink(proto::SinkRecord { member_id: sink.member.0, event_seq: sink.event.0 }))?;
    }
    for token in &image.join_tokens {
        records.record(Kind::JoinToken(token.into()))?;
    }
    for JournalImage { job, journal } in &image.journals {
        let message = proto::JournalRecord { job_id: job.0, journal: Some((&**journal).into()) };
        records.record(Kind::Journal(message))?;
    }
    for EnvelopeImage { job, envelope } in &image.envelopes {
        records.record(Kind::Envelope(envelope_out(*job, envelope)))?;
    }
    for InboxImage { job, inbox } in &image.inboxes {
        let message = proto::InboxRecord { job_id: job.0, inbox: Some((&**inbox).into()) };
        records.record(Kind::Inbox(message))?;
    }
    for question in &image.questions {
        records.record(Kind::Question((&**question).into()))?;
    }
    for object in &image.objects {
        records.record(Kind::Object((&**object).into()))?;
    }
    for run in &image.runs {
        records.record(Kind::Run((&**run).into()))?;
    }
    for bucket in &image.buckets {
        records.record(Kind::Bucket(bucket_out(bucket)))?;
    }
    for (namespace, progress) in &image.progress_of {
        let message = proto::ProgressRecord { namespace: namespace.to_string(), progress: *progress };
        records.record(Kind::Progress(message))?;
    }
    let end = proto::SnapshotEnd { records: records.records };
    records.record(Kind::End(end))?;
    Ok(*records.hasher.finalize().as_bytes())
}

struct RecordWriter<'a, W> {
    out: &'a mut W,
    hasher: blake3::Hasher,
    buffer: Vec<u8>,
    records: u64,
}

impl<W: Write> RecordWriter<'_, W> {
    fn bytes(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.hasher.update(bytes);
        self.out.write_all(bytes)
    }

    fn record(&mut self, kind: Kind) -> io::Result<()> {
        let record = proto::SnapshotRecord { kind: Some(kind) };
        let mut buffer = std::mem::take(&mut self.buffer);
        buffer.clear();
        let too_large = |_| io::Error::from(ErrorKind::InvalidData);
        let len = u32::try_from(record.encoded_len()).map_err(too_large)?;
        buffer.extend_from_slice(&len.to_le_bytes());
        record.encode_raw(&mut buffer);
        self.bytes(&buffer)?;
        self.buffer = buffer;
        self.records += 1;
        Ok(())
    }
}

/// Reads a snapshot to its end. What is damaged, cut short, out of order or not understood is an error.
pub fn decode_snapshot(input: impl Read) -> Result<StateImage, SnapshotError> {
    std::thread::scope(|scope| {
        let mut jobs = JobRecords::new(scope);
        let read = decode_records(input, &mut jobs);
        // A job that cannot be read comes before whatever ended the reading.
        let jobs = jobs.finish()?;
        Ok(StateImage { jobs, ..read? })
    })
}

fn decode_records(input: impl Read, jobs: &mut JobRecords<'_, '_>) -> Result<StateImage, SnapshotError> {
    let mut reader = RecordReader { input, hasher: blake3::Hasher::new(), buffer: Vec::new(), record: 0 };
    let mut magic = [0; MAGIC.len()];
    reader.exact(&mut magic)?;
    if magic != MAGIC {
        return Err(SnapshotError::NotASnapshot);
    }
    let Kind::Head(head) = reader.next()? else {
        return Err(SnapshotError::Order { record: 0 });
    };
    let mut image = head_in(&head).map_err(|source| SnapshotError::Record { record: 0, source })?;
    let mut shared = Shared::default();
    let mut rank = 1;
    loop {
        let record = reader.record;
        let order = SnapshotError::Order { record };
        let bytes = reader.next_bytes()?;
        if jobs::is_job(bytes) {
            if rank > jobs::RANK {
                return Err(order);
            }
            rank = jobs::RANK;
            jobs.push(record, bytes, &mut shared);
            continue;
        }
        let kind = read_record(bytes).map_err(|source| SnapshotError::Record { record, source })?;
        if rank_of(&kind) < rank {
            return Err(order);
        }
        rank = rank_of(&kind);
        let added = match kind {
            Kind::Head(_) => return Err(order),
            Kind::End(end) if end.records == record => break,
            Kind::End(_) => return Err(order),
            other => add(&mut image, &mut shared, other),
        };
        added.map_err(|source| SnapshotError::Record { record, source })?;
    }
    reader.finish()?;
    Ok(image)
}

fn rank_of(kind: &Kind) -> u8 {
    match kind {
        Kind::Head(_) => 1,
        Kind::Agent(_) => 2,
        Kind::Node(_) => 3,
        Kind::Job(_) => jobs::RANK,
        Kind::Ended(_) => 5,
        Kind::Request(_) => 6,
        Kind::Sink(_) => 7,
        Kind::JoinToken(_) => 8,
        Kind::Journal(_) => 9,
        Kind::Envelope(_) => 10,
        Kind::Inbox(_) => 11,
        Kind::Question(_) => 12,
        Kind::Object(_) => 13,
        Kind::Run(_) => 14,
        Kind::Bucket(_) => 15,
        Kind::Progress(_) => 16,
        Kind::End(_) => 17,
    }
}

/// Adds one record of the middle to the image.
fn add(image: &mut StateImage, shared: &mut Shared, kind: Kind) -> Result<(), FormatError> {
    match kind {
        Kind::Head(_) | Kind::End(_) => {}
        Kind::Agent(message) => {
            let mut agent = atlas_types::AgentVersion::try_from(message)?;
            agent.spec = shared.spec(proto::RunSpec::from(&*agent.spec))?;
            image.agents.push(Arc::new(agent));
        }
        Kind::Node(message) => image.nodes.push(NodeImage {
            node: Arc::new(required("node_record.node", message.node)?.try_into()?),
            inventory_since: FencingToken(message.inventory_since),
        }),
        Kind::Job(message) => image.jobs.push(shared.job(message)?),
        Kind::Ended(message) => {
            image.ended.push(EndedImage { event: EventSeq(message.event_seq), job: JobId(message.job_id) });
        }
        Kind::Request(message) => image.requests.push(request_in(&message)?),
        Kind::Sink(message) => {
            image.sinks.push(SinkImage { member: MemberId(message.member_id), event: EventSeq(message.event_seq) });
        }
        Kind::JoinToken(message) => image.join_tokens.push(message.try_into()?),
        Kind::Journal(message) => image.journals.push(JournalImage {
            job: JobId(message.job_id),
            journal: Arc::new(required("journal_record.journal", message.journal)?.try_into()?),
        }),
        Kind::Envelope(message) => image
            .envelopes
            .push(EnvelopeImage { job: JobId(message.job_id), envelope: Arc::new(envelope_in(message)?) }),
        Kind::Inbox(message) => image.inboxes.push(InboxImage {
            job: JobId(message.job_id),
            inbox: Arc::new(required("inbox_record.inbox", message.inbox)?.try_into()?),
        }),
        Kind::Question(message) => image.questions.push(Arc::new(message.try_into()?)),
        Kind::Object(message) => image.objects.push(Arc::new(message.try_into()?)),
        Kind::Run(message) => image.runs.push(Arc::new(message.try_into()?)),
        Kind::Bucket(message) => image.buckets.push(bucket_in(message)?),
        Kind::Progress(message) => {
            let namespace = name("progress_record.namespace", &message.namespace, Namespace::new)?;
            image.progress_of.push((namespace, message.progress));
        }
    }
    Ok(())
}

/// Equal parts become one in memory again, as they were before the snapshot: a version and all its jobs share one spec and one name.
#[derive(Clone, Default)]
struct Shared {
    /// Specs by their bytes.
    specs: BTreeMap<Vec<u8>, Arc<RunSpec>>,
    bytes: Vec<u8>,
    namespaces: BTreeSet<Namespace>,
    agents: BTreeSet<AgentName>,
    principals: BTreeSet<Principal>,
}

impl Shared {
    /// Reads a spec, unless one of the same bytes was read before.
    fn spec(&mut self, message: proto::RunSpec) -> Result<Arc<RunSpec>, FormatError> {
        self.bytes.clear();
        message.encode_raw(&mut self.bytes);
        if let Some(known) = self.specs.get(&self.bytes) {
            return Ok(Arc::clone(known));
        }
        let spec = Arc::new(message.try_into()?);
        self.specs.insert(self.bytes.clone(), Arc::clone(&spec));
        Ok(spec)
    }

    fn job(&mut self, mut message: proto::Job) -> Result<Arc<Job>, FormatError> {
        let spec = message.spec.take().map(|spec| self.spec(spec)).transpose()?;
        let mut job = Job { spec, ..Job::try_from(message)? };
        job.share(None);
        share(&mut self.namespaces, &mut job.namespace);
        share(&mut self.agents, &mut job.agent);
        share(&mut self.principals, &mut job.principal);
        Ok(Arc::new(job))
    }
}

/// Replaces a value by a known one that is equal to it.
fn share<T: Ord + Clone>(known: &mut BTreeSet<T>, value: &mut T) {
    match known.get(value) {
        Some(same) => value.clone_from(same),
        None => drop(known.insert(value.clone())),
    }
}

struct RecordReader<R> {
    input: R,
    hasher: blake3::Hasher,
    buffer: Vec<u8>,
    record: u64,
}

impl<R: Read> RecordReader<R> {
    fn exact(&mut self, bytes: &mut [u8]) -> Result<(), SnapshotError> {
        self.input.read_exact(bytes).map_err(|source| self.read_error(source))?;
        self.hasher.update(bytes);
        Ok(())
    }

    fn next(&mut self) -> Result<Kind, SnapshotError> {
        let record = self.record;
        read_record(self.next_bytes()?).map_err(|source| SnapshotError::Record { record, source })
    }

    /// The bytes of the next record.
    fn next_bytes(&mut self) -> Result<&[u8], SnapshotError> {
        let record = self.record;
        let mut len = [0; 4];
        self.exact(&mut len)?;
        let len = u32::from_le_bytes(len) as usize;
        if len > RECORD_BYTES_MAX {
            return Err(SnapshotError::RecordTooLarge { record, found: len, max: RECORD_BYTES_MAX });
        }
        self.buffer.clear();
        let read = self.input.by_ref().take(len as u64).read_to_end(&mut self.buffer);
        if read.map_err(|source| self.read_error(source))? < len {
            return Err(SnapshotError::Truncated { records: record });
        }
        self.hasher.update(&self.buffer);
        self.record += 1;
        Ok(&self.buffer)
    }

    /// Compares the checksum and makes sure that nothing follows it.
    fn finish(mut self) -> Result<(), SnapshotError> {
        let wanted = *self.hasher.finalize().as_bytes();
        let mut found = [0; 32];
        self.exact(&mut found)?;
        if found != wanted {
            return Err(SnapshotError::Damaged);
        }
        let rest = self.input.take(1).read_to_end(&mut self.buffer);
        match rest.map_err(|source| SnapshotError::Io { doing: "read", source })? {
            0 => Ok(()),
            _ => Err(SnapshotError::Trailing),
        }
    }

    fn read_error(&self, source: io::Error) -> SnapshotError {
        match source.kind() {
            ErrorKind::UnexpectedEof => SnapshotError::Truncated { records: self.record },
            _ => SnapshotError::Io { doing: "read", source },
        }
    }
}

fn read_record(bytes: &[u8]) -> Result<Kind, FormatError> {
    let record = proto::SnapshotRecord::decode(bytes).map_err(|source| FormatError::Malformed { source })?;
    if let Some(Kind::Head(head)) = &record.kind
        && Level(head.min_reader_level) > Level::CURRENT
    {
        return Err(FormatError::Level { wanted: Level(head.min_reader_level) });
    }
    let understood = record.encoded_len();
    if understood != bytes.len() {
        return Err(FormatError::UnknownField { found: bytes.len(), understood });
    }
    required("record.kind", record.kind)
}

fn head_out(image: &StateImage) -> proto::SnapshotHead {
    proto::SnapshotHead {
        cluster_id: image.cluster_id.to_be_bytes().to_vec(),
        level: image.level.0,
        // A program below the active level cannot go on from this state, whatever is in it.
        min_reader_level: image.level.0,
        seq: image.seq.0,
        chain: image.chain.to_vec(),
        at_us: image.at.0,
        clock_us: image.clock.0,
        grant_seq: image.grant_seq.0,
        event_seq: image.event_seq.0,
        queue_seq: image.queue_seq,
        member_last: image.member_last.0,
        progress: image.progress,
        config: Some((&image.config).into()),
    }
}

/// An image with everything that the head says and no lists yet.
fn head_in(head: &proto::SnapshotHead) -> Result<StateImage, FormatError> {
    Ok(StateImage {
        cluster_id: u128::from_be_bytes(fixed("head.cluster_id", &head.cluster_id)?),
        level: Level(head.level),
        seq: Seq(head.seq),
        chain: fixed("head.chain", &head.chain)?,
        at: Timestamp(head.at_us),
        clock: ClusterTime(head.clock_us),
        grant_seq: FencingToken(head.grant_seq),
        event_seq: EventSeq(head.event_seq),
        queue_seq: head.queue_seq,
        member_last: MemberId(head.member_last),
        config: required("head.config", head.config)?.try_into()?,
        agents: Vec::new(),
        nodes: Vec::new(),
        jobs: Vec::new(),
        ended: Vec::new(),
        requests: Vec::new(),
        sinks: Vec::new(),
        join_tokens: Vec::new(),
        journals: Vec::new(),
        envelopes: Vec::new(),
        inboxes: Vec::new(),
        questions: Vec::new(),
        objects: Vec::new(),
        runs: Vec::new(),
        buckets: Vec::new(),
        progress: head.progress,
        progress_of: Vec::new(),
    })
}

fn envelope_out(job: JobId, envelope: &Envelope) -> proto::EnvelopeRecord {
    let reservation = |((job, key), nanodollars): (&(JobId, StepKey), &u64)| proto::Reservation {
        job_id: job.0,
        key: key.0.to_vec(),
        nanodollars: *nanodollars,
    };
    let reserved = envelope.reserved.iter().map(reservation).collect();
    proto::EnvelopeRecord { job_id: job.0, spent_nanodollars: envelope.spent, reserved }
}

fn envelope_in(message: proto::EnvelopeRecord) -> Result<Envelope, FormatError> {
    let mut envelope = Envelope { spent: message.spent_nanodollars, ..Envelope::default() };
    for proto::Reservation { job_id, key, nanodollars } in message.reserved {
        let key = StepKey(fixed("reservation.key", &key)?);
        envelope.reserved.insert((JobId(job_id), key), nanodollars);
    }
    Ok(envelope)
}

fn request_out(request: &RequestImage) -> proto::RequestRecord {
    proto::RequestRecord {
        namespace: request.namespace.to_string(),
        principal: request.principal.to_string(),
        request_id: request.request_id.to_string(),
        body_hash: request.body_hash,
        at_us: request.at.0,
        outcome: Some((&request.outcome).into()),
    }
}

fn bucket_out(Bucket { key, full }: &Bucket) -> proto::BucketRecord {
    proto::BucketRecord {
        namespace: key.namespace.to_string(),
        agent: key.agent.as_ref().map(ToString::to_string),
        value: key.value.as_deref().map(str::to_owned),
        full_us: full.0,
    }
}

fn bucket_in(message: proto::BucketRecord) -> Result<Bucket, FormatError> {
    let agent = message.agent.map(|agent| name("bucket_record.agent", &agent, AgentName::new)).transpose()?;
    let namespace = name("bucket_record.namespace", &message.namespace, Namespace::new)?;
    let key = LimitKey { namespace, agent, value: message.value.map(Into::into) };
    Ok(Bucket { key, full: ClusterTime(message.full_us) })
}

fn request_in(message: &proto::RequestRecord) -> Result<RequestImage, FormatError> {
    Ok(RequestImage {
        namespace: name("request_record.namespace", &message.namespace, Namespace::new)?,
        principal: name("request_record.principal", &message.principal, Principal::new)?,
        request_id: name("request_record.request_id", &message.request_id, RequestId::new)?,
        body_hash: message.body_hash,
        at: ClusterTime(message.at_us),
        outcome: required("request_record.outcome", message.outcome.clone())?.try_into()?,
    })
}
