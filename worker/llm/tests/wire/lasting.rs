//! Failures of connections that come from settings: another try, and waiting, do not help.

use atlas_http::Proxy;
use atlas_llm::client::{Backend, Client, Failure};

use crate::chat::strict;
use crate::client::{LIMIT, asking, at};
use crate::machine::run;
use crate::server::Server;

#[test]
fn settings_that_do_not_fit_are_no_outage() {
    let failure = |served: &'static str, reply: &'static [u8], proxy: Option<&'static str>| {
        run(|env, network| async move {
            let mut arrivals = network.serve(served);
            let _server = env.spawn("server", async move {
                use tokio::io::{AsyncReadExt, AsyncWriteExt};
                while let Some(mut client) = arrivals.0.recv().await {
                    client.read_u8().await.expect("a byte");
                    client.write_all(reply).await.expect("written");
                    // What comes after the answer is read, so that the other side can write it.
                    let _end = tokio::io::copy(&mut client, &mut tokio::io::sink()).await;
                }
            });
            let mut target = at("models.test");
            let Backend::Http(http) = &mut target.backend else { panic!("HTTP") };
            http.plain = true;
            http.proxy = Proxy::choose(proxy, &|_| None, "http://models.test").expect("a proxy");
            let called = Client::new(env).call(&[target], &asking(false), LIMIT, &mut |_| {}).await;
            let Failure { error, lasting, .. } = called.expect_err("an error");
            (error.kind.name(), !lasting.is_empty())
        })
    };
    let locked = b"HTTP/1.1 407 Proxy Authentication Required\r\n\r\n";
    let down = b"HTTP/1.1 503 Service Unavailable\r\n\r\n";
    let proxy = "proxy.test:3128";
    let forbidden = b"HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n";
    let replies: [(&[u8], bool); 4] = [(locked, true), (down, false), (forbidden, true), (b"SSH-2.0-x\r\n\r\n", true)];
    for (reply, is_lasting) in replies {
        assert_eq!(failure(proxy, reply, Some("http://proxy.test:3128")), ("connection", is_lasting), "{reply:?}");
    }
    // Its choice of a login, and its answer to the request to connect: forbidden, or not reached.
    let forbidden = b"\x05\x00\x05\x02\x00\x01\x00\x00\x00\x00\x00\x00";
    let unreached = b"\x05\x00\x05\x04\x00\x01\x00\x00\x00\x00\x00\x00";
    let replies: [(&[u8], bool); 4] =
        [(b"\x05\xff", true), (forbidden, true), (unreached, false), (b"HTTP/1.1 400 Bad Request\r\n\r\n", true)];
    for (reply, is_lasting) in replies {
        assert_eq!(failure(proxy, reply, Some("socks5://proxy.test:3128")), ("connection", is_lasting), "{reply:?}");
    }
    // An alert of TLS where HTTP belongs.
    assert_eq!(failure("models.test:80", b"\x15\x03\x01\x00\x02\x02\x46", Some("-")), ("connection", true));
    assert_eq!(failure("elsewhere.test:80", b"", Some("-")), ("connection", false));
}

#[test]
fn a_server_without_tls_is_no_https_server() {
    let error = run(|env, network| async move {
        let _server = Server::start(&env, &network, "models.test:443", strict, Vec::new());
        let mut target = at("models.test");
        let Backend::Http(http) = &mut target.backend else { panic!("HTTP") };
        http.endpoint.base_url = "https://models.test/v1".to_owned();
        let called = Client::new(env).call(&[target], &asking(false), LIMIT, &mut |_| {}).await;
        called.expect_err("an error")
    });
    let Failure { error, lasting, .. } = error;
    assert_eq!((error.kind.name(), lasting.len()), ("connection", 1), "another try ends in the same way");
    assert!(error.message.starts_with("models.test: client error (Connect)"), "{}", error.message);
}
