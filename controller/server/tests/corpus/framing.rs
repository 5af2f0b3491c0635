//! Connections: bytes that are HTTP, nearly HTTP, or something else.

use crate::write::{Cases, Kind};

/// What goes before a body.
const HEAD: &str = "POST /api/jobs HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n";

/// Request lines and headers that are answered, with what is at their end.
const ANSWERED: &[(&str, &str)] = &[
    ("get", "GET /api/health HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n"),
    ("http-1-0", "GET /api/health HTTP/1.0\r\n\r\n"),
    ("absolute", "GET http://localhost/api/health HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n"),
    ("head", "HEAD /api/health HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n"),
    ("query", "GET /api/jobs?limit=%zz&&=&agent=%00&status HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n"),
    ("empty-line-before", "\r\nGET /api/health HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n"),
    ("line-feeds", "GET /api/health HTTP/1.1\nhost: localhost\nconnection: close\n\n"),
];

/// Those that are refused, or not answered at all.
const REFUSED: &[(&str, &str)] = &[
    ("nothing", ""),
    ("line-ends", "\r\n\r\n\r\n\r\n"),
    ("word", "GET"),
    ("no-version", "GET /\r\n\r\n"),
    ("version-9", "GET / HTTP/9.9\r\n\r\n"),
    ("version-2", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"),
    ("lower-case", "get /api/health HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n"),
    ("blank-in-path", "GET /api/ health HTTP/1.1\r\nhost: localhost\r\n\r\n"),
    ("nul-in-path", "GET /api/\0 HTTP/1.1\r\nhost: localhost\r\n\r\n"),
    ("no-path", "GET nothing HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n"),
    ("star", "OPTIONS * HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n"),
    ("connect", "CONNECT localhost:22 HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n"),
    ("unknown-path", "GET /nowhere HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n"),
    ("traversal", "GET /api/../../etc/passwd HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n"),
    ("encoded-traversal", "GET /api/jobs/%2e%2e%2f HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n"),
    ("path-not-utf-8", "GET /api/jobs/%ff HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n"),
    ("unknown-method", "BREW /api/jobs HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n"),
    ("trace", "TRACE /api/health HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n"),
    ("other-host", "GET /api/health HTTP/1.1\r\nhost: evil.example\r\nconnection: close\r\n\r\n"),
    ("header-without-colon", "GET /api/health HTTP/1.1\r\nhost localhost\r\n\r\n"),
    ("header-with-blank", "GET /api/health HTTP/1.1\r\nho st: localhost\r\n\r\n"),
    ("header-with-nul", "GET /api/health HTTP/1.1\r\nhost: a\0b\r\n\r\n"),
    ("folded-header", "GET /api/health HTTP/1.1\r\nhost: localhost\r\nx: a\r\n b\r\n\r\n"),
    ("unfinished-head", "GET /api/health HTTP/1.1\r\nhost: localhost\r\n"),
    ("index", "GET /api/health HTTP/1.1\r\nhost: localhost\r\nx-atlas-index: soon\r\nconnection: close\r\n\r\n"),
    (
        "socket-without-key",
        "GET /ws HTTP/1.1\r\nhost: localhost\r\nconnection: upgrade, close\r\nupgrade: websocket\r\n\r\n",
    ),
    (
        "socket-old-version",
        "GET /ws HTTP/1.1\r\nhost: localhost\r\nconnection: upgrade, close\r\nupgrade: websocket\r\nsec-websocket-version: 7\r\nsec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n",
    ),
    (
        "socket-of-another-site",
        "GET /ws HTTP/1.1\r\nhost: localhost\r\norigin: http://evil.example\r\nconnection: upgrade, close\r\nupgrade: websocket\r\nsec-websocket-version: 13\r\nsec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n",
    ),
    (
        "socket-of-an-unknown-job",
        "GET /api/jobs/job-zz/events HTTP/1.1\r\nhost: localhost\r\nconnection: upgrade, close\r\nupgrade: websocket\r\nsec-websocket-version: 13\r\nsec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n",
    ),
    ("stream-without-accept", "GET /api/events HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n"),
];

/// Headers and bodies after [`HEAD`] that are refused.
const BODIES: &[(&str, &str)] = &[
    ("no-body", "\r\n"),
    ("length-negative", "content-length: -5\r\n\r\n"),
    ("length-text", "content-length: five\r\n\r\n12345"),
    ("length-hexadecimal", "content-length: 0x5\r\n\r\n12345"),
    ("length-huge", "content-length: 99999999999999999999999\r\n\r\n{}"),
    ("length-large", "content-length: 4294967296\r\n\r\n{}"),
    ("length-twice", "content-length: 2\r\ncontent-length: 3\r\n\r\n{} "),
    ("length-list", "content-length: 2, 3\r\n\r\n{} "),
    ("length-too-long", "content-length: 100\r\n\r\n{\"agent\""),
    ("length-and-chunks", "content-length: 5\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n"),
    ("chunk-size", "transfer-encoding: chunked\r\n\r\nzz\r\n"),
    ("chunk-size-huge", "transfer-encoding: chunked\r\n\r\nffffffffffffffffff\r\n"),
    ("chunk-size-negative", "transfer-encoding: chunked\r\n\r\n-1\r\n"),
    ("chunk-cut", "transfer-encoding: chunked\r\n\r\n10\r\n{\"agent\""),
    ("chunk-without-end", "transfer-encoding: chunked\r\n\r\n2\r\n{}X\r\n"),
    ("chunk-nothing", "transfer-encoding: chunked\r\n\r\n0\r\n\r\n"),
    ("encoding-unknown", "transfer-encoding: gzip\r\n\r\n{}"),
    ("encoding-twice", "transfer-encoding: chunked, chunked\r\n\r\n0\r\n\r\n"),
    ("encoding-not-last", "transfer-encoding: chunked, gzip\r\n\r\n0\r\n\r\n"),
    ("expectation", "expect: miracles\r\ncontent-length: 2\r\n\r\n{}"),
    ("key-empty", "idempotency-key:\r\ncontent-length: 20\r\n\r\n{\"agent\": \"nobody\"} "),
    ("other-site", "origin: http://evil.example\r\ncontent-length: 19\r\n\r\n{\"agent\": \"nobody\"}"),
];

pub(crate) fn cases() -> Cases {
    let mut cases = Cases::of(Kind::Http);
    ANSWERED.iter().for_each(|(what, bytes)| cases.accepted(what, *bytes));
    REFUSED.iter().for_each(|(what, bytes)| cases.refused(what, *bytes));
    BODIES.iter().for_each(|(what, rest)| cases.refused(what, format!("{HEAD}{rest}")));
    let chunked = "transfer-encoding: chunked\r\n\r\n";
    let body = "{\"agent\": \"nobody\"}";
    cases.accepted("chunks", format!("{HEAD}{chunked}1;x=y\r\n{{\r\n12\r\n{}\r\n0\r\nx: y\r\n\r\n", &body[1..]));
    let one_by_one: String = body.chars().map(|c| format!("1\r\n{c}\r\n")).collect();
    cases.accepted("chunks-of-one", format!("{HEAD}{chunked}{one_by_one}0\r\n\r\n"));
    let get = "GET /api/health HTTP/1.1\r\nhost: localhost\r\n";
    cases.accepted("pipelined", format!("{get}\r\n").repeat(20) + get + "connection: close\r\n\r\n");
    cases.accepted(
        "long-query",
        format!("GET /api/jobs?x={} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n", "y".repeat(10_000)),
    );
    cases.refused(
        "long-path",
        format!("GET /{} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n", "x".repeat(200_000)),
    );
    cases.refused("many-headers", format!("{get}{}\r\n", "a: b\r\n".repeat(500)));
    cases.refused("long-header", format!("{get}a: {}\r\n\r\n", "b".repeat(200_000)));
    cases.refused("long-header-name", format!("{get}{}: b\r\n\r\n", "a".repeat(200_000)));
    cases.refused("tls", b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03".as_slice());
    cases.refused("zeros", vec![0; 5_000]);
    cases.refused("line-without-end", vec![b'G'; 300_000]);
    cases.refused("not-ascii", "GÉT / HTTP/1.1\r\n\r\n");
    cases.refused(
        "host-not-utf-8",
        b"GET /api/health HTTP/1.1\r\nhost: \xff\xfe.example\r\nconnection: close\r\n\r\n".as_slice(),
    );
    let whole = format!("{HEAD}content-length: {}\r\n\r\n{body}", body.len());
    cases.accepted("whole", whole.as_str());
    cases.broken("broken", whole.as_bytes(), 40);
    cases
}
