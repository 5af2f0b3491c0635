//! Tokens of an issuer of OpenID Connect that runs here.

use std::sync::{Arc, Mutex, PoisonError};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::rand::SystemRandom;
use ring::signature::{Ed25519KeyPair, KeyPair as _};
use tokio::net::TcpListener;

use super::*;

/// An issuer whose keys can change, and that can be away.
#[derive(Clone)]
struct Issuer {
    url: String,
    inner: Arc<Mutex<Inner>>,
}

struct Inner {
    key: Ed25519KeyPair,
    key_id: u32,
    is_away: bool,
    asked: u32,
}

fn key() -> Ed25519KeyPair {
    let bytes = Ed25519KeyPair::generate_pkcs8(&SystemRandom::new()).expect("a key");
    Ed25519KeyPair::from_pkcs8(bytes.as_ref()).expect("a key")
}

fn text(bytes: &[u8]) -> String {
    URL_SAFE_NO_PAD.encode(bytes)
}

impl Issuer {
    async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let url = format!("http://{}/realm", listener.local_addr().expect("an address"));
        let inner = Inner { key: key(), key_id: 1, is_away: false, asked: 0 };
        let issuer = Self { url, inner: Arc::new(Mutex::new(inner)) };
        let serving = issuer.clone();
        let _ends_with_the_runtime = Env::system().spawn("issuer", async move {
            loop {
                let Ok((mut stream, _)) = listener.accept().await else { return };
                let mut request = [0; 4096];
                let count = stream.read(&mut request).await.unwrap_or_default();
                let request = String::from_utf8_lossy(&request[..count]).into_owned();
                let answer = serving.answer(request.split(' ').nth(1).unwrap_or_default());
                let _ = stream.write_all(answer.as_bytes()).await;
            }
        });
        issuer
    }

    fn inner(&self) -> std::sync::MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn answer(&self, path: &str) -> String {
        let mut inner = self.inner();
        inner.asked += 1;
        let body = match path {
            _ if inner.is_away => {
                return "HTTP/1.1 503 Away\r\ncontent-length: 0\r\nconnection: close\r\n\r\n".to_owned();
            }
            "/realm/.well-known/openid-configuration" => {
                json!({"issuer": self.url, "jwks_uri": format!("{}/keys", self.url)})
            }
            _ => {
                let (id, x) = (inner.key_id.to_string(), text(inner.key.public_key().as_ref()));
                json!({"keys": [{"kty": "OKP", "crv": "Ed25519", "kid": id, "x": x}]})
            }
        };
        let body = body.to_string();
        format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}", body.len())
    }

    /// A token for Ann with changed claims.
    fn token(&self, changes: &Value) -> String {
        let mut claims = json!({"iss": self.url, "aud": "atlas", "sub": "ann", "exp": 4_102_444_800_u64});
        for (name, value) in changes.as_object().into_iter().flatten() {
            claims[name] = value.clone();
        }
        let inner = self.inner();
        let header = json!({"alg": "EdDSA", "kid": inner.key_id.to_string()});
        let message = format!("{}.{}", text(header.to_string().as_bytes()), text(claims.to_string().as_bytes()));
        format!("{message}.{}", text(inner.key.sign(message.as_bytes()).as_ref()))
    }
}

impl Cluster {
    async fn whoami(&self, token: &str) -> Heard {
        self.ask("GET", "/api/auth/whoami", Some(token), &Value::Null).await
    }

    async fn put(&self, path: &str, spec: Value) {
        let heard = self.ask("PUT", &format!("/api/objects/{path}"), Some(&self.root), &json!({"spec": spec})).await;
        assert_eq!(heard.status, 200, "{}", heard.text);
    }
}

#[tokio::test]
async fn tokens_of_issuers_let_people_in() {
    let cluster = Cluster::start(true).await;
    let issuer = Issuer::start().await;
    let token = issuer.token(&json!({}));
    assert_eq!(cluster.whoami(&token).await.code, "E2106", "nobody has named the issuer");
    let metadata = "/.well-known/oauth-protected-resource/mcp";
    assert_eq!(cluster.ask("GET", metadata, None, &Value::Null).await.code, "E1115");
    assert_eq!(issuer.inner().asked, 0, "strangers do not make this controller ask anybody");

    let viewers = json!({"url": issuer.url, "audiences": ["atlas"], "grants": [{"role": "viewer", "namespace": "a"}]});
    cluster.put("issuer/corp", viewers).await;
    let admins = json!({"url": issuer.url, "audiences": ["atlas"], "claims": {"groups": ["ops"]}, "grants": [{"role": "admin"}]});
    cluster.put("issuer/admins", admins).await;
    let heard = cluster.whoami(&token).await.body();
    assert_eq!((&heard["principal"], &heard["grants"][0]["namespace"]), (&json!("corp:ann"), &json!("a")), "{heard}");
    let heard = cluster.whoami(&issuer.token(&json!({"groups": ["dev", "ops"]}))).await.body();
    assert_eq!(
        (&heard["principal"], &heard["grants"][0]["namespace"]),
        (&json!("admins:ann"), &Value::Null),
        "{heard}"
    );
    assert_eq!(issuer.inner().asked, 2, "once for its metadata, once for its keys");
    // A binding of the principal comes on top.
    cluster.put("binding/corp:ann", json!({"grants": [{"role": "submitter", "namespace": "b"}]})).await;
    let heard = cluster.whoami(&token).await.body();
    assert_eq!(heard["grants"].as_array().map(Vec::len), Some(2), "{heard}");
    let resource = cluster.ask("GET", metadata, None, &Value::Null).await.body();
    let expected = json!({
        "resource": "http://localhost/mcp", "authorization_servers": [issuer.url], "bearer_methods_supported": ["header"],
    });
    assert_eq!(resource, expected);

    let says = async |changes: Value| {
        let heard = cluster.whoami(&issuer.token(&changes)).await;
        assert_eq!(heard.status, 401, "{changes}: {}", heard.text);
        heard.text
    };
    assert!(says(json!({"exp": 1_000})).await.contains("the token has expired"));
    assert!(says(json!({"aud": "other"})).await.contains("the token is for another audience"));
    assert!(says(json!({"iss": "http://127.0.0.1:1"})).await.contains("the token is not valid here"));
    assert!(says(json!({"sub": "x".repeat(300)})).await.contains("the token is not valid here"));
    let forged = {
        let good = issuer.token(&json!({}));
        issuer.inner().key = key();
        let other = issuer.token(&json!({}));
        let (head, _) = good.rsplit_once('.').expect("three parts");
        format!("{head}.{}", other.rsplit_once('.').expect("three parts").1)
    };
    assert_eq!(cluster.whoami(&forged).await.code, "E2106");
    cluster.controller.shutdown().await;
}

#[tokio::test]
async fn keys_change_and_issuers_go_away() {
    let cluster = Cluster::start(true).await;
    let issuer = Issuer::start().await;
    cluster.put("issuer/corp", json!({"url": issuer.url, "audiences": ["atlas"]})).await;
    let first = issuer.token(&json!({}));
    assert_eq!(cluster.whoami(&first).await.status, 200);
    issuer.inner().is_away = true;
    assert_eq!(cluster.whoami(&first).await.status, 200, "its keys are known");
    {
        let mut inner = issuer.inner();
        (inner.key, inner.key_id, inner.is_away) = (key(), 2, false);
    }
    let second = issuer.token(&json!({}));
    let accepted = async {
        // The issuer is not asked again at once.
        while cluster.whoami(&second).await.status != 200 {
            Env::system().clock.sleep(Duration::from_millis(200)).await;
        }
    };
    tokio::time::timeout(SOON, accepted).await.expect("the new key is found");
    assert_eq!(cluster.whoami(&first).await.code, "E2106", "the old key is gone");
    assert!(issuer.inner().asked <= 8, "few questions");
    cluster.controller.shutdown().await;
}
