//! Tools for pages and searches.

use std::io::{Read as _, Write as _};
use std::net::TcpListener;

use serde_json::json;

use crate::bench::{Bench, is_here};

/// A server that answers each request by its first line, until the program ends.
#[expect(clippy::disallowed_methods, reason = "the server of a test has a thread of its own")]
fn server(answer: fn(&str) -> String) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address");
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let mut bytes = vec![0; 16 << 10];
            let count = stream.read(&mut bytes).unwrap_or(0);
            let request = String::from_utf8_lossy(&bytes[..count]).into_owned();
            let _ = stream.write_all(answer(&request).as_bytes());
        }
    });
    format!("http://{address}")
}

fn ok(kind: &str, body: &str) -> String {
    format!(
        "HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
        body.len()
    )
}

#[test]
fn pages_are_read_as_text() {
    if !is_here("python3") {
        return;
    }
    let url = server(|request| match request.split(' ').nth(1).unwrap_or_default() {
        "/page" => ok(
            "text/html; charset=utf-8",
            "<html><head><title>T</title><style>x{}</style></head><body><h1>Héad</h1><p>a&amp;b <a href='https://x.org/y'>link</a></p><script>alert(1)</script><ul><li>one<li>two</ul>\u{1b}[0m</body></html>",
        ),
        "/hidden" => ok("text/html", &format!("{}{}end", "<svg>".repeat(100_000), "</style>".repeat(100_000))),
        "/colors" => ok("text/plain", "x\u{1b}[31m\r\ny\u{9b}\n"),
        "/broken" => ok("text/html", &"<div><script><p>".repeat(2000)),
        "/%C3%A9?a%20b" => ok("text/plain", "accents\n"),
        "/odd" => ok("text/plain; charset=none-such", "plain\n"),
        "/binary" => ok("image/png", "a\0b"),
        "/giant" => ok("text/plain", &"z".repeat(5 << 20)),
        "/cut" => "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nshort".to_owned(),
        "/away" => "HTTP/1.1 302 Found\r\nLocation: file:///etc/passwd\r\nContent-Length: 0\r\n\r\n".to_owned(),
        "/round" => "HTTP/1.1 302 Found\r\nLocation: /round\r\nContent-Length: 0\r\n\r\n".to_owned(),
        _ => "HTTP/1.1 404 Not Found\r\nContent-Length: 5\r\n\r\nwhat?".to_owned(),
    });
    let bench = Bench::new().with("allow_private_addresses", "true");
    let read = |path: &str| json!({ "url": format!("{url}{path}") });
    let page = bench.said("fetch_url_via_curl", read("/page"));
    assert!(
        page.contains("# Héad") && page.contains("a&b link (https://x.org/y)") && page.contains("- one\n"),
        "{page}"
    );
    assert!(!page.contains("alert") && !page.contains("x{}") && page.contains("\\x1b[0m"), "{page}");
    assert_eq!(bench.said("fetch_url_via_curl", read("/broken")), "(the page has no text)");
    assert_eq!(bench.said("fetch_url_via_curl", read("/odd")), "plain\n");
    assert_eq!(bench.said("fetch_url_via_curl", read("/é?a b")), "accents\n");
    assert_eq!(bench.said("fetch_url_via_curl", read("/hidden")), "(the page has no text)");
    assert_eq!(bench.said("fetch_url_via_curl", read("/colors")), "x\\x1b[31m\ny\\x9b\n");
    bench.fails("fetch_url_via_curl", read("/binary"), "is no text");
    bench.fails("fetch_url_via_curl", read("/giant"), "more than 4194304 bytes");
    bench.fails("fetch_url_via_curl", read("/cut"), "could not read");
    bench.fails("fetch_url_via_curl", read("/away"), "is not allowed");
    bench.fails("fetch_url_via_curl", read("/round"), "302");
    bench.fails("fetch_url_via_curl", read("/none"), "answered 404");
    for url in
        ["file:///etc/passwd", "ftp://x/y", "http://", "http://[", "nonsense", "http://a\nb/", "http://exa mple/"]
    {
        let called = bench.call("fetch_url_via_curl", &json!({ "url": url }));
        assert!(called.failed && !called.value.to_string().contains("Traceback"), "{url}: {}", called.value);
    }
    let guarded = Bench::new();
    guarded.fails("fetch_url_via_curl", read("/page"), "is a private address");
    guarded.fails("fetch_url_via_curl", json!({"url": "http://169.254.169.254/latest"}), "is a private address");
}

#[test]
fn searches_ask_their_servers() {
    if !is_here("python3") {
        return;
    }
    let url = server(|request| {
        let (line, body) = (request.lines().next().unwrap_or_default(), request.to_ascii_lowercase());
        match line.split([' ', '?']).nth(1).unwrap_or_default() {
            "/arxiv" if line.contains("all%3Aq+%26&max_results=2") => ok(
                "application/atom+xml",
                "<feed xmlns='http://www.w3.org/2005/Atom'><entry><id>http://arxiv.org/abs/1</id><title>A\n title</title><published>2020-01-02T00:00:00Z</published><summary> S </summary><author><name>N</name></author></entry></feed>",
            ),
            "/bomb" => ok("application/xml", "<!DOCTYPE x [<!ENTITY a 'b'>]><x>&a;</x>"),
            "/wiki" => ok(
                "application/json",
                r#"{"query":{"pages":{"2":{"title":"B","index":2,"extract":"later"},"1":{"title":"A","index":1,"fullurl":"https://w/A","extract":"first"}}}}"#,
            ),
            "/tavily" if body.contains("authorization: bearer k1") => ok(
                "application/json",
                r#"{"answer":"It is.","results":[{"title":"T","url":"https://t","content":"C"},5]}"#,
            ),
            "/perplexity" if body.contains("authorization: bearer k2") => {
                ok("application/json", r#"{"choices":[{"message":{"content":"Yes"}}],"citations":["https://p"]}"#)
            }
            "/moved" => {
                let host = body.lines().find_map(|line| line.strip_prefix("host: 127.0.0.1")).unwrap_or_default();
                format!("HTTP/1.1 302 Found\r\nLocation: http://localhost{host}/other\r\nContent-Length: 0\r\n\r\n")
            }
            "/other" if body.contains("authorization") => ok("application/json", r#"{"answer":"with a key"}"#),
            "/other" => ok("application/json", r#"{"answer":"without a key"}"#),
            "/searx" => ok("application/json", r#"{"results":[{"title":"X","url":"https://x","content":"found"}]}"#),
            "/list" => ok("application/json", "[1]"),
            _ => ok("text/html", "<html>"),
        }
    });
    let of = |name: &str, path: &str| Bench::new().with(name, &format!("{url}{path}"));
    let query = || json!({"query": "q &"});
    let arxiv = of("arxiv_url", "/arxiv").with("arxiv_max_results", "2").said("search_arxiv", query());
    assert_eq!(arxiv, "# A title\nN; 2020-01-02\nhttp://arxiv.org/abs/1\nS");
    of("arxiv_url", "/bomb").fails("search_arxiv", query(), "a document type");
    of("arxiv_url", "/none").fails("search_arxiv", query(), "is not XML");
    assert_eq!(
        of("wikipedia_url", "/wiki").said("search_wikipedia", query()),
        "# A\nhttps://w/A\nfirst\n\n# B\n\nlater"
    );
    of("wikipedia_url", "/none").fails("search_wikipedia", query(), "unknown form");
    of("wikipedia_url", "/list").fails("search_wikipedia", query(), "unknown form");
    let tavily = of("tavily_url", "/tavily");
    tavily.fails("web_search_tavily", query(), "no key is configured");
    let tavily = tavily.with("tavily_api_key", "k1");
    assert_eq!(tavily.said("web_search_tavily", query()), "It is.\n\n# T\nhttps://t\nC");
    assert_eq!(tavily.said("web_search_loki", query()), "It is.\n\n# T\nhttps://t\nC");
    let moved = of("tavily_url", "/moved").with("tavily_api_key", "k1");
    assert_eq!(moved.said("web_search_tavily", query()), "without a key");
    let perplexity = of("perplexity_url", "/perplexity").with("perplexity_api_key", "k2");
    assert_eq!(perplexity.said("web_search_perplexity", query()), "Yes\n[1] https://p");
    of("perplexity_url", "/list").with("perplexity_api_key", "k2").fails(
        "web_search_perplexity",
        query(),
        "unknown form",
    );
    assert_eq!(of("search_url", "/searx").said("web_search_loki", query()), "# X\nhttps://x\nfound");
    of("search_url", "/none").fails("web_search_loki", query(), "not JSON");
    Bench::new().fails("web_search_loki", query(), "no search is configured");
}

/// A name service whose second answer is another one, and connections that only say where they would lead.
const REBINDING: &str = "
import os, socket
import _web
asked = []
def resolve(host, port, *others, **named):
    asked.append(host)
    return [(socket.AF_INET, socket.SOCK_STREAM, 6, '', ('8.8.8.8' if len(asked) == 1 else '127.0.0.1', port or 80))]
def connect(one, place):
    raise OSError(f'tried {place[0]}')
socket.getaddrinfo, socket.socket.connect = resolve, connect
os.environ['http_proxy'] = 'http://127.0.0.1:1'
print(_web.exists('http://rebound.example/', 5))";

#[test]
fn what_is_checked_is_what_is_reached() {
    if !is_here("python3") {
        return;
    }
    let bench = Bench::new();
    assert_eq!(bench.python(REBINDING, &[], ""), "(False, 'tried 8.8.8.8')\n");
    let public = "import json, sys, _web\nprint([_web.is_public(one) for one in json.load(sys.stdin)])";
    let addresses = [
        "8.8.8.8",
        "2606:4700::1",
        "::ffff:8.8.8.8",
        "127.0.0.1",
        "10.0.0.1",
        "169.254.169.254",
        "0.0.0.0",
        "224.0.0.1",
        "::1",
        "::ffff:127.0.0.1",
        "::7f00:1",
        "64:ff9b::7f00:1",
        "2002:7f00:1::",
        "fec0::1",
        "fe80::1%eth0",
        "ff02::1",
    ];
    let expected = format!("[True, True, True{}]\n", ", False".repeat(addresses.len() - 3));
    assert_eq!(bench.python(public, &[], &json!(addresses).to_string()), expected);
}

#[test]
fn sources_of_a_report_are_found() {
    if !is_here("python3") {
        return;
    }
    let url = server(|request| match request.split(' ').nth(1).unwrap_or_default() {
        "/a_(law)" | "/%C3%A9" => ok("text/plain", "x"),
        _ => "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n".to_owned(),
    });
    let report = format!("Laws ({url}/a_(law)), [one]({url}/é). Also {url}/gone.\n");
    let bench = Bench::new().with("allow_private_addresses", "true");
    let scripts = bench.copy_scripts_of("deep-research");
    let run = "import os, runpy, sys\nos.environ['GRAPH_STATE'] = sys.stdin.read()\nsys.path.insert(0, os.path.dirname(sys.argv[1]))\nrunpy.run_path(sys.argv[1])";
    let script = scripts.join("verify_sources.py").display().to_string();
    let said = bench.python(run, &[&script], &json!({ "report": report }).to_string());
    let checked = serde_json::from_str::<serde_json::Value>(&said).expect("JSON");
    let expected =
        format!("3 addresses checked, 1 not found.\nOK {url}/a_(law)\nOK {url}/é\nNOT FOUND {url}/gone (404)");
    assert_eq!(checked["source_check"], expected);
}
