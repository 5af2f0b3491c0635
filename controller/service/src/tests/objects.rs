//! Objects through the service: what each refusal says, dry runs, pages.

use std::collections::BTreeMap;

use atlas_types::{ErrorKind, Expect};
use expect_test::expect;
use serde_json::{Value, json};

use super::{Node, caller};
use crate::testing::Net;
use crate::{Consistency, Error, ObjectChange, ObjectFilter, ShownObject};

impl Node {
    pub(super) async fn put(&self, kind: &str, name: &str, expect: Expect, spec: Value) -> Result<ShownObject, Error> {
        let change = ObjectChange { kind: kind.into(), name: name.into(), expect, dry_run: false };
        let labels = BTreeMap::from([("team".to_owned(), name.to_owned())]);
        self.service.put_object(&caller(), &change, labels, &spec).await
    }
}

#[tokio::test]
async fn an_object_is_written_read_and_deleted() {
    let net = Net::new(1);
    let node = Node::start(&net, 1).await;
    let (service, caller) = (&node.service, caller());
    let made = node.put("namespace", "a", Expect::Absent, json!({ "agents_max": 5 })).await.expect("made");
    let again = node.put("namespace", "a", Expect::Any, json!({ "agents_max": 5 })).await.expect("the same");
    assert_eq!(made, again);
    assert_eq!(made.value.spec, json!({ "agents_max": 5 }));
    assert_eq!(service.object(&caller, "namespace", "a", Consistency::Linearizable).await.expect("found"), made);

    let mut change = ObjectChange {
        kind: "namespace".into(),
        name: "a".into(),
        expect: Expect::Revision(made.revision),
        dry_run: true,
    };
    let tried = service.put_object(&caller, &change, BTreeMap::new(), &json!({})).await.expect("a dry run");
    assert_eq!(tried.value.spec, json!({}));
    service.delete_object(&caller, &change).await.expect("a dry run");
    assert_eq!(service.object(&caller, "namespace", "a", Consistency::Stale).await.expect("still there"), made);

    change.dry_run = false;
    service.delete_object(&caller, &change).await.expect("deleted");
    let error = service.delete_object(&caller, &change).await.expect_err("it is gone");
    assert_eq!((error.entry().code, error.kind()), ("E1115", ErrorKind::NotFound));
}

#[tokio::test]
async fn refusals_say_what_is_wrong() {
    let net = Net::new(1);
    let node = Node::start(&net, 1).await;
    node.put("namespace", "b", Expect::Any, json!({})).await.expect("made");
    let mut out = String::new();
    for (kind, expect, spec) in [
        ("gizmo", Expect::Any, json!({})),
        ("namespace", Expect::Any, json!({ "agents_maxx": 1 })),
        ("webhook", Expect::Any, json!({ "url": "http://a:b@c", "events": ["job"] })),
        ("webhook", Expect::Any, json!({ "url": 1 })),
        ("namespace", Expect::Absent, json!({})),
        ("model", Expect::Any, json!({ "provider": "openai", "name": "m", "key": "sk-live" })),
        ("model", Expect::Any, json!({ "provider": "openai", "name": "m", "prices": { "input": "x", "output": 1 } })),
        ("model", Expect::Any, json!({ "provider": "openai", "name": "m", "patch": { "body": { "top_p": 0.5 } } })),
        ("model", Expect::Any, json!({ "provider": "openai", "name": "m", "fallbacks": ["c"] })),
        ("namespace", Expect::Any, json!({ "description": "x".repeat(65_536) })),
    ] {
        let error = node.put(kind, "b", expect, spec).await.expect_err("a refusal");
        let places: Vec<&str> = error.violations().iter().map(|violation| violation.pointer.as_str()).collect();
        out += &format!("{} {error} {places:?}\n", error.entry().code);
    }
    expect![[r#"
        E1117 no such kind of object: "gizmo"; kinds are base, binding, chain, conversation, enrollment, issuer, knowledge, mcp-server, memory, model, namespace, orchestrator, pin, policy, role, routing, secret, skill, tier, token, trigger, webhook []
        E1118 the namespace "b" is refused: "agents_maxx" is not allowed here; did you mean "agents_max"? ["/spec/agents_maxx"]
        E1118 the webhook "b" is refused: `spec.url` contains a user name; keep credentials out of addresses ["/spec/url"]
        E1118 the webhook "b" is refused: "events" is required; 1 is not of type 'string' ["/spec", "/spec/url"]
        E1116 the object is at revision 1, not at the expected one []
        E1118 the model "b" is refused: `spec.key` is not a reference: write secret://NAME or ${VARIABLE}, never the value itself ["/spec/key"]
        E1118 the model "b" is refused: `spec` cannot be read: an amount is a decimal number such as 0.40 at line 1 column 33 ["/spec"]
        E1118 the model "b" is refused: 0.5 is not of type 'null', 'boolean', 'integer', 'string', 'array', 'object' ["/spec/patch/body/top_p"]
        E1118 the model "b" is refused: `spec.fallbacks` names the model "c", which does not exist ["/spec/fallbacks"]
        E3006 the spec of the object is larger than 65536 bytes []
    "#]]
    .assert_eq(&out);
}

#[tokio::test]
async fn lists_have_pages_and_a_filter() {
    let net = Net::new(1);
    let node = Node::start(&net, 1).await;
    for name in ["c", "a", "b"] {
        node.put("namespace", name, Expect::Any, json!({})).await.expect("made");
    }
    let list = async |filter: ObjectFilter| {
        let (objects, next) =
            node.service.objects(&caller(), "namespace", &filter, Consistency::Stale).await.expect("a list");
        let names = objects.iter().map(|object| object.metadata.name.clone());
        (names.collect::<Vec<_>>().join(" "), next)
    };
    assert_eq!(list(ObjectFilter { limit: 2, ..ObjectFilter::default() }).await, ("a b".into(), Some("b".into())));
    let after = Some("b".to_owned());
    assert_eq!(list(ObjectFilter { after, limit: 2, ..ObjectFilter::default() }).await, ("c".into(), None));
    let label = Some(("team".to_owned(), Some("b".to_owned())));
    assert_eq!(list(ObjectFilter { label, limit: 9, ..ObjectFilter::default() }).await, ("b".into(), None));
}

#[tokio::test]
async fn what_belongs_to_the_cluster_is_found_from_every_namespace() {
    let net = Net::new(1);
    let node = Node::start(&net, 1).await;
    let service = &node.service;
    let made = node.put("namespace", "a", Expect::Any, json!({})).await.expect("made");
    let elsewhere = caller().in_namespace("team").expect("a name");
    let all = ObjectFilter { limit: 9, ..ObjectFilter::default() };
    let (found, _) = service.objects(&elsewhere, "namespace", &all, Consistency::Linearizable).await.expect("a list");
    assert_eq!(found, std::slice::from_ref(&made.value));
    assert_eq!(service.object(&elsewhere, "namespace", "a", Consistency::Linearizable).await.expect("found"), made);
    let change = ObjectChange { kind: "namespace".into(), name: "a".into(), expect: Expect::Any, dry_run: false };
    // A document says where it belongs, so one that says it wrongly is refused.
    let wrong = service.put_object(&elsewhere, &change, BTreeMap::new(), &json!({})).await;
    assert_eq!(wrong.expect_err("refused").entry().code, "E1118");
    service.delete_object(&elsewhere, &change).await.expect("deleted");
}
