//! Tests of what controllers are asked while documents are handed over.

use std::sync::Mutex;

use super::*;

/// Takes what it gets, and says that all of it is new.
#[derive(Default)]
struct Taker(Mutex<Vec<(String, Value)>>);

impl Controllers for Taker {
    async fn ask(&self, tool: &str, arguments: &Value) -> Result<Answer, Stopped> {
        let added = arguments["documents"].as_array().map_or(0, Vec::len);
        assert!(arguments.to_string().len() < 1 << 20, "a message of {tool} is too large");
        self.0.lock().expect("not poisoned").push((tool.to_owned(), arguments.clone()));
        Ok(Answer::Completed(json!({"added": added}).to_string().into_bytes().into()))
    }
}

/// Takes no document.
#[derive(Default)]
struct Refuser(Taker);

impl Controllers for Refuser {
    async fn ask(&self, tool: &str, arguments: &Value) -> Result<Answer, Stopped> {
        let documents = arguments["documents"].as_array().into_iter().flatten();
        let refused: Vec<Value> =
            documents.map(|document| json!({"source": document["source"], "reason": "the base is full"})).collect();
        self.0.ask(tool, arguments).await?;
        Ok(Answer::Completed(json!({"refused": refused}).to_string().into_bytes().into()))
    }
}

fn read(name: &str, text: String) -> Read {
    Read { name: name.to_owned(), text, metadata: Map::new() }
}

#[tokio::test]
async fn long_texts_are_parted_and_messages_stay_small() {
    let taker = Taker::default();
    let mut handing = Handing::new(&taker, "b");
    handing.begin("s");
    // Each quotation mark takes two bytes in a message.
    handing.document(read("long", "\"line\"\n".repeat(200_000))).await.expect("taken");
    handing.document(read("short", "text".to_owned())).await.expect("taken");
    handing.document(read("short", "again".to_owned())).await.expect("taken once");
    handing.document(read("huge", "x".repeat(TEXT_BYTES_MAX + 1))).await.expect("noted");
    handing.end().await.expect("ended");
    let sums = handing.finish(&["s".to_owned()]).await.expect("finished");
    assert_eq!(sums.errors, [format!("huge: its text has {} bytes, more than {TEXT_BYTES_MAX}", TEXT_BYTES_MAX + 1)]);
    let said = taker.0.lock().expect("not poisoned");
    let puts = said.iter().filter(|(tool, _)| tool == "$documents-put");
    let documents: Vec<&Value> = puts.flat_map(|(_, put)| put["documents"].as_array().into_iter().flatten()).collect();
    assert_eq!(documents.len() as u64, sums.documents);
    let text: String =
        documents.iter().filter(|one| one["source"] != "short").filter_map(|one| one["text"].as_str()).collect();
    assert_eq!(text, "\"line\"\n".repeat(200_000));
    assert_eq!(documents[0]["source"], "long (part 1)");
    let (last, end) = said.last().expect("an end");
    assert_eq!((last.as_str(), &end["documents"]), ("$documents-end", &json!(sums.documents)));
}

#[tokio::test]
async fn many_names_are_listed_in_ranges() {
    let taker = Taker::default();
    let mut handing = Handing::new(&taker, "b");
    handing.begin("s");
    let names: Vec<String> = (0..2_000).map(|number| format!("{number:04}{}", "n".repeat(500))).collect();
    for name in &names {
        handing.document(read(name, "text".to_owned())).await.expect("taken");
    }
    handing.end().await.expect("ended");
    let said = taker.0.lock().expect("not poisoned");
    let keeps: Vec<&Value> = said.iter().filter(|(tool, _)| tool == "$documents-keep").map(|(_, keep)| keep).collect();
    assert!(keeps.len() > 1, "{} messages", keeps.len());
    let listed: Vec<&str> =
        keeps.iter().flat_map(|keep| keep["seen"].as_array().into_iter().flatten()).filter_map(Value::as_str).collect();
    assert_eq!(listed, names);
    assert_eq!((&keeps[0]["after"], &keeps[keeps.len() - 1]["until"]), (&Value::Null, &Value::Null));
    for pair in keeps.windows(2) {
        assert_eq!(pair[0]["until"], pair[1]["after"]);
    }
}

/// Whether what a taker was asked for removes a document of a source.
fn removes(taker: &Taker, from: &str, name: &str) -> bool {
    let said = taker.0.lock().expect("not poisoned");
    said.iter().filter(|(tool, keep)| tool == "$documents-keep" && keep["from"] == from).any(|(_, keep)| {
        let is_after = keep["after"].as_str().is_none_or(|after| name > after);
        let is_until = keep["until"].as_str().is_none_or(|until| name <= until);
        is_after && is_until && !keep["seen"].as_array().expect("a list").iter().any(|seen| seen == name)
    })
}

#[tokio::test]
async fn a_source_that_is_not_whole_removes_nothing() {
    let taker = Taker::default();
    let mut handing = Handing::new(&taker, "b");
    handing.begin("s");
    handing.document(read("a", "text".to_owned())).await.expect("taken");
    handing.missing("b", "the server answered 503");
    handing.end().await.expect("ended");
    assert!(!removes(&taker, "s", "b"));
    // It says nothing of the next one.
    handing.begin("t");
    handing.gone("c", "the server answered 404");
    handing.end().await.expect("ended");
    assert!(removes(&taker, "t", "c") && !removes(&taker, "s", "b"));
    let sums = handing.finish(&[]).await.expect("finished");
    assert_eq!(sums.errors, ["b: the server answered 503", "c: the server answered 404"]);
}

#[tokio::test]
async fn what_could_not_be_read_stays_with_all_its_parts() {
    let taker = Taker::default();
    let mut handing = Handing::new(&taker, "b");
    handing.begin("s");
    handing.document(read("b", "text".to_owned())).await.expect("taken");
    handing.unread("a", "the loader failed");
    handing.document(read("huge", "x".repeat(TEXT_BYTES_MAX + 1))).await.expect("noted");
    let metadata = Map::from_iter([("k".to_owned(), "v".repeat(METADATA_BYTES_MAX).into())]);
    let large = Read { metadata, ..read("large", "text".to_owned()) };
    handing.document(large).await.expect("noted");
    handing.document(read(&"n".repeat(NAME_BYTES_MAX + 1), "text".to_owned())).await.expect("noted");
    handing.end().await.expect("ended");
    for name in ["a", "a (part 1)", "a (part 12)", "b", "huge", "huge (part 9)", "large"] {
        assert!(!removes(&taker, "s", name), "{name}");
    }
    for name in ["0", "a (copy)", "ab", "c", "large2"] {
        assert!(removes(&taker, "s", name), "{name}");
    }
    let sums = handing.finish(&[]).await.expect("finished");
    let count = sums.errors.iter().filter(|error| error.contains("more than")).count();
    assert_eq!((sums.documents, sums.errors.len(), count), (1, 4, 3), "{:?}", sums.errors);
}

#[test]
fn the_longest_text_has_no_more_parts_than_are_kept() {
    let line = "\u{1}".repeat(PART_BYTES_MAX / 6 - 1);
    for piece in [line + "\n", "\u{1}".to_owned(), "\n\n\u{1}\u{1}".to_owned()] {
        let text = piece.repeat(TEXT_BYTES_MAX / piece.len());
        let count = parts(&text, PART_BYTES_MAX).len();
        assert!(count <= PARTS_MAX, "{count} parts");
    }
}

#[tokio::test]
async fn many_unread_documents_are_listed_in_ranges() {
    let taker = Taker::default();
    let mut handing = Handing::new(&taker, "b");
    handing.begin("s");
    // The names of others are between those of the parts.
    for number in 0..300 {
        let name = format!("{number:03}{}", "n".repeat(100));
        handing.keep(&name);
        for other in [format!("{name} (a"), format!("{name} (part 1) of"), format!("{name} z")] {
            handing.document(read(&other, "text".to_owned())).await.expect("taken");
        }
    }
    handing.end().await.expect("ended");
    let messages = taker.0.lock().expect("not poisoned").iter().filter(|(tool, _)| tool == "$documents-keep").count();
    assert!(messages > 1, "{messages} messages");
    for number in 0..300 {
        let name = format!("{number:03}{}", "n".repeat(100));
        for stays in ["", " (part 1)", " (part 42)", " (a", " (part 1) of", " z"] {
            assert!(!removes(&taker, "s", &format!("{name}{stays}")), "{number} {stays}");
        }
        for goes in [" (b", " y", "~"] {
            assert!(removes(&taker, "s", &format!("{name}{goes}")), "{number} {goes}");
        }
    }
}

#[tokio::test]
async fn too_many_unread_documents_let_all_stay() {
    let taker = Taker::default();
    let mut handing = Handing::new(&taker, "b");
    handing.begin("s");
    for number in 0..=UNREAD_MAX + 5 {
        handing.keep(&number.to_string());
    }
    handing.end().await.expect("ended");
    assert!(!removes(&taker, "s", "x"));
    let sums = handing.finish(&[]).await.expect("finished");
    assert_eq!(sums.errors.len(), 1, "{:?}", sums.errors);
}

#[tokio::test]
async fn a_source_that_is_named_twice_is_read_once() {
    let taker = Taker::default();
    let mut handing = Handing::new(&taker, "b");
    for _ in 0..2 {
        if handing.begin("s") {
            handing.document(read("a", "text".to_owned())).await.expect("taken");
            handing.end().await.expect("ended");
        }
    }
    assert!(!removes(&taker, "s", "a") && removes(&taker, "s", "b"));
    // Another source with the same document takes none from the first one.
    assert!(handing.begin("t"));
    handing.document(read("a", "text".to_owned())).await.expect("taken once");
    handing.end().await.expect("ended");
    assert!(!removes(&taker, "s", "a"));
}

#[tokio::test]
async fn what_controllers_refuse_stays_as_it_was() {
    let refuser = Refuser::default();
    let mut handing = Handing::new(&refuser, "b");
    for source in ["s", "t"] {
        assert!(handing.begin(source));
        handing.document(read("a", "text".to_owned())).await.expect("noted");
        handing.end().await.expect("ended");
    }
    assert!(!removes(&refuser.0, "s", "a") && !removes(&refuser.0, "t", "a"));
    let sums = handing.finish(&[]).await.expect("finished");
    assert_eq!((sums.documents, sums.errors.len()), (0, 2));
}
