//! Tests the agent that reads sources of document bases, against a website on this machine.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;

use atlas_pages::{COLLECT_CONTRACT, Exemption, Loader};
use atlas_types::ToolEnd;
use atlas_wire::session::{ToLeader, ToWorker};
use serde_json::{Value, json};

use crate::support::{Controller, End, Node, Stage};
use crate::website::Website;

/// What a job handed over.
#[derive(Debug, Default)]
struct Handed {
    /// Documents by their names.
    documents: BTreeMap<String, Value>,
    /// The sources that were read as a whole.
    whole: Vec<String>,
    /// What was said of documents that stay.
    keeps: Vec<Value>,
    end: Value,
}

impl Handed {
    fn names(&self) -> Vec<&str> {
        self.documents.keys().map(String::as_str).collect()
    }

    fn text(&self, name: &str) -> &str {
        self.documents.get(name).and_then(|document| document["text"].as_str()).unwrap_or("nothing")
    }

    /// Whether a document that a source had before is removed.
    fn removes(&self, source: &str, name: &str) -> bool {
        self.keeps.iter().filter(|keep| keep["from"] == source).any(|keep| {
            let is_after = keep["after"].as_str().is_none_or(|after| name > after);
            let is_until = keep["until"].as_str().is_none_or(|until| name <= until);
            is_after && is_until && !keep["seen"].as_array().expect("a list").iter().any(|seen| seen == name)
        })
    }

    fn errors(&self) -> Vec<&str> {
        self.end["errors"].as_array().into_iter().flatten().filter_map(Value::as_str).collect()
    }
}

/// A worker that may read a website, and has loaders.
async fn stage(allowed: Option<&Website>, loaders: &[&str]) -> Stage {
    let mut controller = Controller::start().await;
    let allowed = allowed.map(|site| Exemption::read(&site.address.to_string()).expect("a server"));
    let loaders = loaders.iter().map(|text| Loader::read(text).expect("a loader")).collect();
    let node = Node::start_with(&controller, |options| {
        options.collect_allowed = allowed.into_iter().collect();
        options.loaders = loaders;
    })
    .await;
    let session = controller.welcomed(Vec::new()).await;
    Stage { controller, node, session }
}

/// Runs a job, and takes what it hands over.
async fn collect(stage: &mut Stage, sources: &[String]) -> Handed {
    let agent = stage.controller.publish(&[("agent.yaml", COLLECT_CONTRACT)]);
    let input = json!({"base": "b", "sources": sources}).to_string();
    let assignment = stage.controller.assignment(&agent, &input);
    stage.session.grant(&assignment).await;
    let mut handed = Handed::default();
    loop {
        match stage.session.next().await {
            ToLeader::CallTool { number, call } => {
                let said: Value = serde_json::from_slice(&call.arguments).expect("JSON");
                assert_eq!(said["base"], "b");
                match call.tool.as_str() {
                    "$documents-begin" => {}
                    "$documents-put" => {
                        for document in said["documents"].as_array().expect("a list") {
                            let name = document["source"].as_str().expect("a name").to_owned();
                            assert!(handed.documents.insert(name, document.clone()).is_none(), "twice: {document}");
                        }
                    }
                    "$documents-keep" => {
                        handed.whole.extend(said["from"].as_str().map(str::to_owned));
                        handed.keeps.push(said);
                    }
                    "$documents-end" => handed.end = said,
                    other => panic!("{other}"),
                }
                let end = ToolEnd::Result(br#"{"added": 0}"#.as_slice().into());
                stage.session.say(ToWorker::ToolCalled { number, end }).await;
            }
            ToLeader::Renew { number } => stage.session.say(ToWorker::RenewAck { number }).await,
            ToLeader::Report { number, report } => {
                let result = atlas_types::ReportResult::Applied;
                stage.session.say(ToWorker::ReportAck { number, result }).await;
                if let Some(end) = End::of(report.kind) {
                    let output = end.output(&stage.controller);
                    assert!(output.contains("\"more_errors\":0"), "{output}");
                    return handed;
                }
            }
            _ => {}
        }
    }
}

#[tokio::test]
async fn a_website_is_read_as_far_as_its_links_lead() {
    let site = Website::start().await;
    let root = "<title>Docs</title><h1>Docs</h1><a href='a.html'>a</a><a href='a.html#x'>a</a><a href='/other/b'>b</a>\
                <a href='private/c'>c</a><a href='gone'>gone</a><a href='moved'>moved</a><a href='photo.png'>photo</a><a href='paper.pdf'>paper</a>";
    site.html("/docs/", root);
    site.html("/docs/a.html", "<p>Page a. <a href='./'>back</a> <a href='deep/d'>d</a></p>");
    site.html("/docs/deep/d", "<p>Page d. <a href='../a.html'>a</a></p>");
    site.html("/other/b", "not below");
    site.html("/docs/private/c", "not allowed");
    site.reply("/docs/moved", 302, "location: /docs/a.html", b"");
    site.reply("/docs/photo.png", 200, "content-type: image/png", b"\x89PNG");
    site.reply("/docs/paper.pdf", 200, "content-type: application/pdf", b"%PDF");
    site.reply("/robots.txt", 200, "content-type: text/plain", b"User-agent: *\nDisallow: /docs/private\n");
    let mut stage = stage(Some(&site), &[]).await;
    let source = site.at("/docs/**");
    let handed = collect(&mut stage, std::slice::from_ref(&source)).await;
    assert_eq!(handed.names(), [site.at("/docs/"), site.at("/docs/a.html"), site.at("/docs/deep/d")]);
    assert_eq!(handed.text(&site.at("/docs/a.html")), "Page a. back d\n");
    assert_eq!(handed.documents[&site.at("/docs/")]["metadata"], json!({"url": site.at("/docs/"), "title": "Docs"}));
    assert_eq!(handed.whole, [&*source], "a dead link is no reason to keep what is gone");
    for name in ["/docs/gone", "/docs/private/c", "/docs/never"] {
        assert!(handed.removes(&source, &site.at(name)), "{name}");
    }
    // What is there and cannot be read, and what is elsewhere for a while, stays.
    for name in ["/docs/paper.pdf", "/docs/photo.png", "/docs/moved", "/docs/a.html"] {
        assert!(!handed.removes(&source, &site.at(name)), "{name}");
    }
    let errors = handed.errors().join("\n");
    assert!(errors.contains("/docs/gone: the server answered 404"), "{errors}");
    assert!(errors.contains("--loader pdf='PROGRAM $1'"), "{errors}");
    assert_eq!(handed.errors().len(), 2, "{errors}");
    let asked = site.asked();
    assert!(!asked.contains(&"/docs/private/c".to_owned()) && !asked.contains(&"/other/b".to_owned()), "{asked:?}");
    assert_eq!(asked.iter().filter(|path| *path == "/docs/deep/d").count(), 1);
    stage.node.shutdown().await;
}

#[tokio::test]
async fn a_website_that_fails_loses_nothing() {
    let site = Website::start().await;
    site.html("/docs/", "<p>Docs <a href=a>a</a></p>");
    site.reply("/docs/a", 500, "", b"");
    site.reply("/down/robots.txt", 200, "", b"");
    let mut stage = stage(Some(&site), &[]).await;
    let handed = collect(&mut stage, &[site.at("/docs/**")]).await;
    assert_eq!((handed.names(), handed.whole.len()), (vec![site.at("/docs/").as_str()], 0));
    assert_eq!(handed.errors(), [format!("{}: the server answered 500", site.at("/docs/a"))]);
    // Without its first page, it is not known to be empty.
    let handed = collect(&mut stage, &[site.at("/none/**")]).await;
    assert_eq!((handed.names().len(), handed.whole.len()), (0, 0));
    // A page by itself is gone if the server says so.
    let handed = collect(&mut stage, &[site.at("/none")]).await;
    assert_eq!((handed.names().len(), handed.whole.len()), (0, 1));
    // A website that does not say what may be read is not read.
    site.reply("/robots.txt", 503, "", b"");
    let handed = collect(&mut stage, &[site.at("/docs/**")]).await;
    assert_eq!((handed.names().len(), handed.whole.len()), (0, 0));
    assert_eq!(handed.errors().len(), 1, "{:?}", handed.errors());
    // So it is for one with a sitemap. It is asked once.
    let pages = ["/docs/", "/docs/b"].map(|path| format!("<url><loc>{}</loc></url>", site.at(path))).concat();
    site.reply("/map.xml", 200, "content-type: application/xml", format!("<urlset>{pages}</urlset>").as_bytes());
    for status in [503, 429] {
        site.reply("/robots.txt", status, "", b"");
        site.asked();
        let handed = collect(&mut stage, &[format!("sitemap:{}", site.at("/map.xml"))]).await;
        assert_eq!((handed.names().len(), handed.whole.len()), (0, 0));
        assert_eq!(site.asked(), ["/map.xml", "/robots.txt"]);
        let errors = handed.errors();
        assert!(
            errors.len() == 1 && errors[0].contains(&format!("cannot be read: the server answered {status}")),
            "{errors:?}"
        );
    }
    stage.node.shutdown().await;
}

#[tokio::test]
async fn only_a_page_that_is_gone_is_removed() {
    let site = Website::start().await;
    let mut stage = stage(Some(&site), &["pdf=sh -c 'exit 1' $1"]).await;
    let page = |path: &str| format!("<url><loc>{}</loc></url>", site.at(path));
    let map = format!("<urlset>{}{}</urlset>", page("/kept"), page("/tried"));
    site.reply("/map.xml", 200, "content-type: application/xml", map.as_bytes());
    site.html("/kept", "kept");
    let source = format!("sitemap:{}", site.at("/map.xml"));
    let tried = site.at("/tried");
    for (status, headers, body, is_removed) in [
        (404, "", "", true),
        (410, "", "", true),
        (401, "", "", false),
        (403, "", "", false),
        (408, "", "", false),
        (429, "", "", false),
        (500, "", "", false),
        (503, "", "", false),
        (302, "location: /kept", "", false),
        (301, "location: /kept", "", true),
        (301, "location: /none", "", false),
        (301, "location: /tried", "", false),
        (301, "location: http://other.example/", "", false),
        (302, "", "", false),
        (200, "content-type: application/pdf", "%PDF", false),
        (200, "content-type: application/epub+zip", "PK", false),
        (200, "content-type: image/png", "PNG", false),
        (200, "content-type: text/plain", "a\0b", false),
        (200, "content-type: text/plain\ncontent-encoding: br", "x", false),
        (200, "content-type: text/html; charset=klingon", "x", false),
        (200, "content-type: text/html", "<script>x</script>", false),
        (200, "content-type: text/html", "<meta name=robots content=noindex>x", true),
    ] {
        site.reply("/tried", status, headers, body.as_bytes());
        let handed = collect(&mut stage, std::slice::from_ref(&source)).await;
        let seen = (handed.removes(&source, &tried), handed.removes(&source, &format!("{tried} (part 3)")));
        assert_eq!(seen, (is_removed, is_removed), "{status} {headers}: {handed:?}");
        assert_eq!(handed.names(), [site.at("/kept")], "{status} {headers}");
    }
    // A page that is no longer listed is gone.
    site.reply("/map.xml", 200, "content-type: application/xml", format!("<urlset>{}", page("/kept")).as_bytes());
    let handed = collect(&mut stage, std::slice::from_ref(&source)).await;
    assert!(handed.removes(&source, &tried));
    // So is one that the website forbids to read.
    site.reply("/map.xml", 200, "content-type: application/xml", map.as_bytes());
    site.reply("/robots.txt", 200, "content-type: text/plain", b"User-agent: *\nDisallow: /tried\n");
    let handed = collect(&mut stage, std::slice::from_ref(&source)).await;
    assert!(handed.removes(&source, &tried));
    stage.node.shutdown().await;
}

#[tokio::test]
async fn redirects_are_asked_about() {
    let site = Website::start().await;
    let other = Website::start().await;
    let page = |path: &str| format!("<url><loc>{}</loc></url>", site.at(path));
    let map = format!("<urlset>{}{}{}</urlset>", page("/a"), page("/b"), page("/c"));
    site.reply("/map.xml", 200, "content-type: application/xml", map.as_bytes());
    site.reply("/a", 302, "location: /private/a", b"");
    site.reply("/b", 302, &format!("location: http://localhost:{}/b", other.address.port()), b"");
    site.reply("/c", 302, "location: /d", b"");
    site.html("/d", "page d");
    site.html("/private/a", "private");
    site.reply("/robots.txt", 200, "content-type: text/plain", b"User-agent: *\nDisallow: /private\n");
    let mut stage = stage(Some(&site), &[]).await;
    let source = format!("sitemap:{}", site.at("/map.xml"));
    let handed = collect(&mut stage, std::slice::from_ref(&source)).await;
    assert_eq!(handed.names(), [site.at("/d")]);
    assert!(!site.asked().contains(&"/private/a".to_owned()));
    assert_eq!(other.asked(), Vec::<String>::new());
    assert_eq!(handed.errors().len(), 1, "{:?}", handed.errors());
    assert!(handed.errors()[0].contains("which is outside of the source"), "{:?}", handed.errors());
    stage.node.shutdown().await;
}

#[tokio::test]
async fn a_source_that_is_named_twice_empties_no_base() {
    let site = Website::start().await;
    site.html("/a", "page a");
    let mut stage = stage(Some(&site), &[]).await;
    let handed = collect(&mut stage, &[site.at("/a"), site.at("/a")]).await;
    assert_eq!(handed.whole, [site.at("/a")]);
    assert!(!handed.removes(&site.at("/a"), &site.at("/a")));
    stage.node.shutdown().await;
}

#[tokio::test]
async fn a_page_that_is_hard_to_read_ends_soon() {
    let site = Website::start().await;
    let pages = ["</", "<a \">\"", "<a x=\">\"", "<loc><![CDATA["];
    for (number, piece) in pages.iter().enumerate() {
        site.html(&format!("/{number}"), &format!("text<script>x</script>{}", piece.repeat((1 << 20) / piece.len())));
    }
    let mut stage = stage(Some(&site), &[]).await;
    let sources: Vec<String> = (0..pages.len()).map(|number| site.at(&format!("/{number}"))).collect();
    let clock = atlas_env::Env::system().clock;
    let begun = clock.monotonic();
    let handed = collect(&mut stage, &sources).await;
    assert_eq!(handed.names().len(), pages.len(), "{:?}", handed.errors());
    let took = clock.monotonic() - begun;
    assert!(took < std::time::Duration::from_secs(20), "{took:?}");
    stage.node.shutdown().await;
}

#[tokio::test]
async fn requests_go_to_no_address_that_is_not_public() {
    let site = Website::start().await;
    let other = Website::start().await;
    other.html("/secret", "secret");
    site.html("/page", "page");
    site.reply("/to-other", 302, &format!("location: {}", other.at("/secret")), b"");
    site.reply("/to-name", 302, &format!("location: http://localhost:{}/secret", other.address.port()), b"");
    site.reply("/to-metadata", 302, "location: http://169.254.169.254/latest/meta-data/", b"");
    site.reply("/to-file", 302, "location: file:///etc/passwd", b"");
    site.reply("/loop", 302, "location: /loop", b"");
    let mut stage = stage(Some(&site), &[]).await;
    let paths = ["/page", "/to-other", "/to-name", "/to-metadata", "/to-file", "/loop"];
    let mut sources: Vec<String> = paths.iter().map(|path| site.at(path)).collect();
    sources.push(format!("http://[::ffff:127.0.0.1]:{}/secret", other.address.port()));
    sources.push(format!("http://2130706433:{}/secret", other.address.port()));
    let repository = format!("git:{}", other.at("/git/r"));
    sources.push(repository);
    let handed = collect(&mut stage, &sources).await;
    assert_eq!(handed.names(), [site.at("/page")]);
    assert_eq!(other.asked(), Vec::<String>::new());
    let errors = handed.errors();
    let refused = errors.iter().filter(|error| error.contains("is not a public address")).count();
    assert_eq!((errors.len(), refused), (8, 6), "{errors:#?}");
    assert!(errors.iter().any(|error| error.contains("it redirects more than 5 times")), "{errors:#?}");
    assert!(errors.iter().any(|error| error.contains("it redirects to nowhere")), "{errors:#?}");
    stage.node.shutdown().await;
}

#[tokio::test]
async fn bodies_have_a_bound_and_a_type() {
    let site = Website::start().await;
    site.endless("/endless");
    site.reply("/latin", 200, "content-type: text/plain; charset=iso-8859-1", b"caf\xe9");
    site.reply("/json", 200, "content-type: application/json", br#"{"a": 1}"#);
    site.reply("/binary", 200, "content-type: text/plain", b"a\0b");
    site.reply("/empty", 200, "content-type: text/html", b"<script>x</script>");
    site.reply("/odd", 200, "content-type: text/plain\ncontent-encoding: br", b"x");
    let mut stage = stage(Some(&site), &[]).await;
    let sources: Vec<String> =
        ["/endless", "/latin", "/json", "/binary", "/empty", "/odd"].iter().map(|path| site.at(path)).collect();
    let handed = collect(&mut stage, &sources).await;
    assert_eq!((handed.text(&site.at("/latin")), handed.text(&site.at("/json"))), ("café", "{\"a\": 1}"));
    assert_eq!(handed.names().len(), 2);
    assert_eq!(
        handed.errors(),
        [
            format!("{}: it has more than 10485760 bytes", site.at("/endless")),
            format!("{}: it is binary", site.at("/binary")),
            format!("{}: it has no text", site.at("/empty")),
            format!("{}: its compression \"br\" is not known", site.at("/odd")),
        ]
    );
    stage.node.shutdown().await;
}

#[tokio::test]
async fn sitemaps_list_pages() {
    let site = Website::start().await;
    let index = format!(
        "<sitemapindex><sitemap><loc>{}</loc></sitemap><sitemap><loc>{}</loc></sitemap></sitemapindex>",
        site.at("/1.xml"),
        site.at("/index.xml")
    );
    site.reply("/index.xml", 200, "content-type: application/xml", index.as_bytes());
    let pages =
        format!("<urlset><url><loc>{}</loc></url><url><loc>http://other.org/x</loc></url></urlset>", site.at("/a"));
    site.reply("/1.xml", 200, "content-type: application/xml", pages.as_bytes());
    site.html("/a", "<p>Page a <a href=b>b</a></p>");
    site.html("/b", "not listed");
    let mut stage = stage(Some(&site), &[]).await;
    let source = format!("sitemap:{}", site.at("/index.xml"));
    let handed = collect(&mut stage, std::slice::from_ref(&source)).await;
    assert_eq!((handed.names(), handed.errors()), (vec![site.at("/a").as_str()], vec![]));
    assert_eq!(handed.whole, [source]);
    let handed = collect(&mut stage, &[format!("sitemap:{}", site.at("/a"))]).await;
    assert_eq!(handed.whole.len(), 0);
    assert!(handed.errors()[0].contains("it is no sitemap"), "{:?}", handed.errors());
    stage.node.shutdown().await;
}

#[tokio::test]
async fn loaders_read_files_and_sources() {
    let site = Website::start().await;
    site.reply("/paper", 200, "content-type: application/pdf", b"%PDF the paper");
    let loaders =
        ["pdf=cat $1", "copy:=cp $1 $2", "fails:=sh -c 'echo broken >&2; exit 3' $1", "gone:=no-such-program $1"];
    let mut stage = stage(Some(&site), &loaders).await;
    let sources = [site.at("/paper"), "fails:a".to_owned(), "gone:a".to_owned(), "pdf:/etc/passwd".to_owned()];
    let handed = collect(&mut stage, &sources).await;
    assert_eq!((handed.names(), handed.text(&site.at("/paper"))), (vec![site.at("/paper").as_str()], "%PDF the paper"));
    let errors = handed.errors().join("\n");
    assert!(errors.contains("fails:a: the loader fails failed (exit status: 3): broken"), "{errors}");
    assert!(
        errors.contains("gone:a: the program \"no-such-program\" of gone is not installed on the worker"),
        "{errors}"
    );
    assert!(errors.contains("pdf:/etc/passwd: no worker's option --loader pdf:='PROGRAM $1'"), "{errors}");
    // The folder of the worker and that for temporary files are hidden from such programs.
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a folder");
    let file = folder.path().join("text");
    fs::write(&file, "copied").expect("written");
    let copied = format!("copy:{}", file.display());
    let list = folder.path().join("list");
    let json = r#"[{"path": "x", "contents": "one", "metadata": {"k": 1}}, {"path": "y", "text": "two"}]"#;
    fs::write(&list, json).expect("written");
    let listed = format!("copy:{}", list.display());
    let handed = collect(&mut stage, &[copied.clone(), listed.clone()]).await;
    assert_eq!(handed.text(&copied), "copied", "{handed:?}");
    assert_eq!(handed.documents[&format!("{listed}/x")]["metadata"], json!({"k": 1}));
    assert_eq!(handed.text(&format!("{listed}/y")), "two");
    stage.node.shutdown().await;
}

fn git(folder: &Path, arguments: &[&str]) {
    let mut command = Command::new("git");
    command.current_dir(folder).args([
        "-c",
        "user.name=t",
        "-c",
        "user.email=t@example.org",
        "-c",
        "init.defaultBranch=main",
    ]);
    let done = command.args(arguments).output().expect("git runs");
    assert!(done.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&done.stderr));
}

#[tokio::test]
async fn repositories_are_cloned() {
    let folder = tempfile::tempdir().expect("a folder");
    let work = folder.path().join("r");
    fs::create_dir_all(work.join("docs")).expect("made");
    fs::write(work.join("docs/a.md"), "# A\n").expect("written");
    fs::write(work.join("docs/page.html"), "<h1>Page</h1>").expect("written");
    fs::write(work.join("photo.png"), b"\x89PNG\0").expect("written");
    fs::write(work.join(".hidden"), "hidden").expect("written");
    std::os::unix::fs::symlink("/etc/passwd", work.join("docs/link.md")).expect("a link");
    git(&work, &["init", "--quiet"]);
    git(&work, &["add", "."]);
    git(&work, &["commit", "--quiet", "-m", "first"]);
    git(&work, &["branch", "old"]);
    fs::write(work.join("docs/b.md"), "# B\n").expect("written");
    git(&work, &["add", "."]);
    git(&work, &["commit", "--quiet", "-m", "second"]);
    let site = Website::start().await;
    site.repositories(folder.path().to_owned());
    let mut stage = stage(Some(&site), &[]).await;
    let at = site.at("/git/r/.git");
    let handed = collect(&mut stage, &[format!("git:{at}")]).await;
    let texts: Vec<&str> = handed.documents.values().filter_map(|one| one["text"].as_str()).collect();
    assert_eq!((texts, handed.whole.len()), (vec!["# A\n", "# B\n", "# Page\n"], 1), "{handed:?}");
    let handed = collect(&mut stage, &[format!("git:{at}#old:docs/*.md")]).await;
    let paths: Vec<&Value> = handed.documents.values().map(|one| &one["metadata"]["path"]).collect();
    assert_eq!(paths, ["docs/a.md"]);
    let handed = collect(&mut stage, &[format!("git:{at}#none"), format!("git:{}", site.at("/git/nothing"))]).await;
    assert_eq!((handed.documents.len(), handed.whole.len(), handed.errors().len()), (0, 0, 2), "{:?}", handed.errors());
    stage.node.shutdown().await;
}
