//! What is asked costs no copy of what was said before.

use atlas_model::Message;
use serde_json::json;

use super::check::*;
use crate::{NoChecks, Settings, Turn};

#[test]
fn a_request_shares_the_messages_of_its_turn() {
    let mut turn = Turn::new(Settings::default());
    turn.step(start(json!({})), &NoChecks);
    let request = turn.request();
    let place = |messages: &[Message]| messages.as_ptr();
    assert_eq!(place(turn.messages()), place(&request.messages));
    turn.step(calls(&[("x", "unknown", json!({}))]), &NoChecks);
    assert_eq!((turn.messages().len(), request.messages.len()), (3, 1));
}
