//! The requests that wait for an answer, on transports whose answers come by a stream of their own.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use rmcp::model::{ClientJsonRpcMessage, NumberOrString, RequestId};
use serde_json::Value;

use crate::reading::{Awaited, Kind, cancelled, id_of};

#[derive(Default)]
pub(crate) struct Waiting(Mutex<Inner>);

#[derive(Default)]
struct Inner {
    open: BTreeMap<i64, Kind>,
    /// The largest id so far.
    last: Option<i64>,
}

impl Waiting {
    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A message goes out.
    pub(crate) fn sent(&self, message: &ClientJsonRpcMessage) {
        let mut inner = self.inner();
        if let Some(Awaited { id: NumberOrString::Number(id), kind }) = Awaited::of(message) {
            inner.open.insert(id, kind);
            inner.last = inner.last.max(Some(id));
        }
        if let Some(NumberOrString::Number(id)) = cancelled(message) {
            inner.open.remove(id);
        }
    }

    /// A message did not go out.
    pub(crate) fn failed(&self, message: &ClientJsonRpcMessage) {
        if let Some(Awaited { id: NumberOrString::Number(id), .. }) = Awaited::of(message) {
            self.inner().open.remove(&id);
        }
    }

    /// The request of an answer. An id that was never sent, or none, means the only one that waits; a late answer means none.
    pub(crate) fn whose(&self, id: &Value) -> Option<Awaited> {
        let mut inner = self.inner();
        let (number, is_sent) = match id_of(id) {
            Some(RequestId::Number(number)) => (Some(number), number >= 0 && Some(number) <= inner.last),
            _ => (None, false),
        };
        if let Some(kind) = number.and_then(|number| inner.open.remove(&number)) {
            return number.map(|number| Awaited { id: RequestId::Number(number), kind });
        }
        if is_sent || inner.open.len() != 1 {
            return None;
        }
        inner.open.pop_first().map(|(id, kind)| Awaited { id: RequestId::Number(id), kind })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn asks(waiting: &Waiting, id: i64) {
        let message = json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": {"name": "t"}});
        waiting.sent(&serde_json::from_value(message).expect("a message"));
    }

    #[test]
    fn an_answer_without_a_known_id_is_that_of_the_only_request() {
        let waiting = Waiting::default();
        let whose = |id: Value| waiting.whose(&id).map(|awaited| awaited.id);
        assert_eq!(whose(Value::Null), None);
        for id in [Value::Null, json!("server-error"), json!(99), json!(-1), json!("0")] {
            asks(&waiting, 0);
            assert_eq!(whose(id), Some(RequestId::Number(0)));
        }
        asks(&waiting, 1);
        // The answer to a request that was given up.
        assert_eq!(whose(json!(0)), None);
        asks(&waiting, 2);
        assert_eq!(whose(Value::Null), None);
        assert_eq!((whose(json!(2)), whose(json!(2))), (Some(RequestId::Number(2)), None));
    }
}
