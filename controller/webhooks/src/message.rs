//! What is sent: the id, the body and the headers of a delivery.

use atlas_service::{Error, EventLabel, Service, json};
use atlas_types::{EventRecord, EventSeq, ObjectKey};
use sha2::{Digest, Sha256};

use crate::signature::hex;
use crate::status::Gap;

/// The most bytes of an event in a body. Events of jobs with larger payloads are shortened.
const EVENT_BYTES_MAX: usize = 256 << 10;

/// The webhook that a delivery belongs to.
#[derive(Debug, Clone)]
pub(crate) struct Sender {
    pub(crate) cluster: u128,
    pub(crate) key: ObjectKey,
    pub(crate) uid: EventSeq,
}

/// One delivery. Each attempt at it has the same id and the same body.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Message {
    pub(crate) id: String,
    /// `KIND.CHANGE`, or `gap`.
    pub(crate) event: String,
    pub(crate) body: Vec<u8>,
}

impl Sender {
    /// The delivery of an event.
    pub(crate) async fn event(&self, service: &Service, record: &EventRecord) -> Result<Message, Error> {
        let EventLabel { kind, change, .. } = EventLabel::of(record);
        let id = self.id(b'e', record.seq.0, record.seq.0);
        let mut body = self.head(&id, "event");
        service.write_event_within(&mut body, record, EVENT_BYTES_MAX).await?;
        body.push(b'}');
        Ok(Message { id, event: format!("{}.{change}", kind.as_str()), body })
    }

    /// The notice that events were not delivered.
    pub(crate) fn gap(&self, gap: &Gap) -> Message {
        let id = self.id(b'g', gap.after, gap.through);
        let mut body = self.head(&id, "gap");
        body.extend(serde_json::to_vec(gap).unwrap_or_default());
        body.push(b'}');
        Message { id, event: "gap".to_owned(), body }
    }

    /// An id that depends on the webhook and the event alone, so that it is the same under every leader.
    fn id(&self, kind: u8, after: u64, through: u64) -> String {
        let mut hash = Sha256::new();
        hash.update(self.cluster.to_be_bytes());
        hash.update(self.uid.0.to_be_bytes());
        hash.update([kind]);
        hash.update(after.to_be_bytes());
        hash.update(through.to_be_bytes());
        let mut id = "delivery-".to_owned();
        hex(&mut id, hash.finalize().get(..8).unwrap_or_default());
        id
    }

    /// The body up to the value of its last member.
    fn head(&self, id: &str, member: &str) -> Vec<u8> {
        let mut body =
            format!("{{\"delivery\":\"{id}\",\"cluster\":\"{:032x}\",\"webhook\":", self.cluster).into_bytes();
        body.extend_from_slice(b"{\"namespace\":");
        json::string(&mut body, self.key.namespace.as_str());
        body.extend_from_slice(b",\"name\":");
        json::string(&mut body, self.key.name.as_str());
        body.extend_from_slice(format!("}},\"{member}\":").as_bytes());
        body
    }
}

#[cfg(test)]
mod tests {
    use atlas_types::{Namespace, ObjectKind, ObjectName};
    use expect_test::expect;

    use super::*;
    use crate::status::Loss;

    fn sender(uid: u64) -> Sender {
        let key = ObjectKey {
            namespace: Namespace::default_namespace(),
            kind: ObjectKind::new("webhook").expect("a word"),
            name: ObjectName::new("ci").expect("a name"),
        };
        Sender { cluster: 7, key, uid: EventSeq(uid) }
    }

    #[test]
    fn a_gap_names_the_events_around_it() {
        let gap = Gap { after: 4, through: 9, reasons: vec![Loss::Attempts, Loss::Retention] };
        let message = sender(3).gap(&gap);
        expect![[r#"{"delivery":"delivery-9928f4e00e2c9468","cluster":"00000000000000000000000000000007","webhook":{"namespace":"default","name":"ci"},"gap":{"after":4,"through":9,"reasons":["attempts","retention"]}}"#]].assert_eq(&String::from_utf8(message.body).expect("JSON is text"));
        assert_eq!(message.event, "gap");
    }

    #[test]
    fn ids_depend_on_the_webhook_and_the_event() {
        let id = |uid, kind, event| sender(uid).id(kind, event, event);
        assert_eq!(id(3, b'e', 4), id(3, b'e', 4));
        let others = [id(2, b'e', 4), id(3, b'e', 5), id(3, b'g', 4)];
        assert!(!others.contains(&id(3, b'e', 4)));
        let other_cluster = Sender { cluster: 8, ..sender(3) };
        assert_ne!(other_cluster.id(b'e', 4, 4), id(3, b'e', 4));
    }
}
