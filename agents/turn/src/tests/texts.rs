//! The output of a helper: the texts of all its answers.

use expect_test::{Expect, expect};
use serde_json::json;

use super::check::*;
use crate::{AtLimit, Format, Limits, Settings};

fn check_texts(all_texts: bool, requests: u32, expected: &Expect) {
    let limits = Limits { requests, at_limit: AtLimit::Partial, ..Limits::default() };
    let settings = Settings { format: Format::Text, all_texts, limits, ..with_tools(&["a"]) };
    let works = |id: &str, said: &str| answer(vec![text(said), tool(id, "a", json!({}))]);
    let done = |id: &str| returned(&[(id, json!(1))]);
    let events = vec![start(json!({})), works("1", "first"), done("1"), works("2", " "), done("2"), says("last\nline")];
    check(settings, events, expected);
}

#[test]
fn a_helper_returns_the_texts_of_all_its_answers() {
    check_texts(
        true,
        5,
        &expect![[r#"
        call
          user: {}
        tools: 1 a{}
        call
          assistant: first | 1 a{}
          user: 1 = 1
        tools: 2 a{}
        call
          assistant:   | 2 a{}
          user: 2 = 1
        finish (Answer): {"result":"first\nlast\nline"}
    "#]],
    );
    check_texts(
        true,
        2,
        &expect![[r#"
        call
          user: {}
        tools: 1 a{}
        call
          assistant: first | 1 a{}
          user: 1 = 1
        tools: 2 a{}
        finish (Limit): {"result":"first\n\n[The agent was stopped after 2 requests. This answer is incomplete.]"}
    "#]],
    );
}

#[test]
fn another_agent_returns_its_last_answer() {
    check_texts(
        false,
        5,
        &expect![[r#"
        call
          user: {}
        tools: 1 a{}
        call
          assistant: first | 1 a{}
          user: 1 = 1
        tools: 2 a{}
        call
          assistant:   | 2 a{}
          user: 2 = 1
        finish (Answer): {"result":"last\nline"}
    "#]],
    );
}
