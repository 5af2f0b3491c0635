//! Whose certificates count: authorities of other programs, those in files, and what else is in their files.

use super::*;

/// An authority as cert-manager makes it: a text of another type, and no limit on the length of chains.
fn foreign_params(name: &str) -> rcgen::CertificateParams {
    let mut params = rcgen::CertificateParams::default();
    params.distinguished_name = rcgen::DistinguishedName::new();
    let name = rcgen::DnValue::PrintableString(name.try_into().expect("a name"));
    params.distinguished_name.push(rcgen::DnType::CommonName, name);
    params.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
    params.key_usages = vec![rcgen::KeyUsagePurpose::KeyCertSign, rcgen::KeyUsagePurpose::DigitalSignature];
    params
}

fn new_pair() -> rcgen::KeyPair {
    rcgen::KeyPair::generate_for(&rcgen::PKCS_ECDSA_P256_SHA256).expect("a key")
}

/// Writes such an authority. Returns its certificate.
fn foreign(dir: &Path, name: &str) -> String {
    let key = new_pair();
    let certificate = foreign_params(name).self_signed(&key).expect("a certificate");
    let certificate = files::pem("CERTIFICATE", certificate.der());
    fs::write(dir.join(AUTHORITY), &certificate).expect("written");
    fs::write(dir.join(AUTHORITY_KEY), files::pem("PRIVATE KEY", &key.serialize_der())).expect("written");
    fs::set_permissions(dir.join(AUTHORITY_KEY), fs::Permissions::from_mode(0o440)).expect("a mode");
    certificate
}

#[tokio::test]
async fn an_authority_of_another_program_issues_if_it_has_our_name() {
    let scene = Scene::new();
    let ours = scene.authority();
    foreign(scene.dir.path(), "Atlas cluster authority");
    let peers = scene.listen(Clients::Controllers).await;
    let name = Some(Some("spiffe://atlas/controller/2".to_owned()));
    assert_eq!(reached(&*peers, scene.dial(&controller(scene.authority(), Some(2), HOUR))).await, name);
    assert_eq!(reached(&*peers, scene.dial(&controller(ours, Some(2), HOUR))).await, None, "the one before");
    foreign(scene.dir.path(), "Another cluster authority");
    assert!(matches!(Authority::read(scene.dir.path()), Err(TlsError::Name { .. })));
}

#[tokio::test]
async fn the_issuer_of_an_authority_makes_no_members() {
    let scene = Scene::new();
    let dir = scene.dir.path();
    let before = scene.authority();
    // An authority that a company's issuer made, with the issuer and the authority before behind it.
    let (issuer_key, own_key) = (new_pair(), new_pair());
    let issuer_params = foreign_params("Company issuer");
    let issuer_certificate = issuer_params.self_signed(&issuer_key).expect("a certificate").der().clone();
    let issuer = rcgen::Issuer::from_params(&issuer_params, &issuer_key);
    let own = foreign_params("Atlas cluster authority").signed_by(&own_key, &issuer).expect("a certificate");
    let texts = [own.der(), &issuer_certificate].map(|der| files::pem("CERTIFICATE", der));
    fs::write(dir.join(AUTHORITY), texts.concat() + &before.pem()).expect("written");
    fs::remove_file(dir.join(AUTHORITY_KEY)).expect("removed");
    write_private(&dir.join(AUTHORITY_KEY), &files::pem("PRIVATE KEY", &own_key.serialize_der())).expect("written");
    let read = scene.authority();
    assert_eq!(read.pem(), texts[0].clone() + &before.pem(), "what nodes are told to trust");
    assert_eq!(authorities(&dir.join(AUTHORITY)).expect("authorities"), read.trusted());

    // Somebody to whom the issuer gave a certificate with the name of a member.
    let (key, der) = authority::new_key().expect("a key");
    let mut params = rcgen::CertificateParams::default();
    let name = Subject::Controller(Some(1)).uri();
    params.subject_alt_names = vec![rcgen::SanType::URI(name.as_str().try_into().expect("a name"))];
    params.extended_key_usages =
        vec![rcgen::ExtendedKeyUsagePurpose::ClientAuth, rcgen::ExtendedKeyUsagePurpose::ServerAuth];
    let shown = params.signed_by(&key, &issuer).expect("a certificate").der().clone();
    let files = Enrolled::in_dir(&dir.join("outsider"));
    files.begin("atn_x").expect("a key");
    fs::write(dir.join("outsider/node.key"), files::pem("PRIVATE KEY", der.secret_der())).expect("written");
    let issued = Issued { certificate: &files::pem("CERTIFICATE", &shown), trusted: &read.pem(), life: HOUR };
    files.store(&issued, now()).expect("stored");
    let outsider = Credentials::of_node(&files, scene.env.clock.clone()).expect("credentials");

    let (peers, workers) = (scene.listen(Clients::Controllers).await, scene.listen(Clients::Nodes).await);
    assert_eq!(reached(&*peers, scene.dial(&outsider)).await, None, "no member");
    let renewed = Enrolled::in_dir(&dir.join("n"));
    let key = renewed.begin("atn_x").expect("a key");
    let certificate = before.issue_to_node("n", &key, now(), HOUR).expect("issued");
    renewed.store(&Issued { certificate: &certificate, trusted: &read.pem(), life: HOUR }, now()).expect("stored");
    let renewed = Credentials::of_node(&renewed, scene.env.clock.clone()).expect("credentials");
    assert!(reached(&*workers, scene.dial(&renewed)).await.is_some(), "a node of the authority before");
    let inner = scene.env.net.listen("127.0.0.1:0".parse().expect("an address")).await.expect("a free port");
    let fake = listener(inner, &outsider, Clients::Nodes, &scene.watch, &scene.env).expect("a listener");
    let all = certificates(&dir.join(AUTHORITY)).expect("certificates");
    let joining = || TlsNet::trusting(scene.env.net.clone(), &all).expect("a network");
    assert_eq!(reached(&*fake, joining()).await, None, "it cannot stand for a controller");
    assert_eq!(reached(&*workers, joining()).await, Some(None), "a node of the group joins");
    fs::write(dir.join(AUTHORITY), &texts[1]).expect("written");
    assert!(matches!(authorities(&dir.join(AUTHORITY)), Err(TlsError::NoAuthority { .. })));
}

#[tokio::test]
async fn a_node_of_a_group_knows_the_cluster_by_a_file() {
    let scene = Scene::new();
    let workers = scene.listen(Clients::Nodes).await;
    let read = |dir: &Path| certificates(&dir.join(AUTHORITY)).expect("certificates");
    let other = tempfile::tempdir().expect("a folder");
    Authority::new(now()).expect("an authority").write(other.path()).expect("written");
    let (own, other) = (read(scene.dir.path()), read(other.path()));
    let net = |trusted: &[_]| TlsNet::trusting(scene.env.net.clone(), trusted).expect("a network");
    assert_eq!(reached(&*workers, net(&own)).await, Some(None), "may join");
    assert_eq!(reached(&*workers, net(&[&other[..], &own[..]].concat())).await, Some(None), "while one is replaced");
    assert_eq!(reached(&*workers, net(&other)).await, None, "another cluster");
}
