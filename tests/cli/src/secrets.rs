//! Secrets: setting, rotating, listing and removing them, and importing those of a vault.

use std::fs;

use expect_test::expect_file;

use crate::laptop::Laptop;

/// Two secrets that other implementations sealed with the password `correct horse battery staple`.
const VAULT: &str = "\
smtp-password: $VAULT;v1;argon2id;m=64,t=3,p=2;salt=AQIDBAUGBwgJCgsMDQ4PEA==;nonce=AQIDBAUGBwgJCgsMDQ4PEBESExQVFhcY;ct=k1NYeoo9p3TiLQeTaol9mEQo7REBaZuxxAHwAQvLV/i8asSwX6oTsmjK5pSUBA==
EMPTY: $VAULT;v1;argon2id;m=64,t=1,p=1;salt=AgMEBQYHCAkKCwwNDg8QEQ==;nonce=AgMEBQYHCAkKCwwNDg8QERITFBUWFxgZ;ct=ijWDOIJNn6MZNg0LSaM6MQ==
";

const READER: &str = "agent:
  name: reader
  version: 1.0.0
  permissions: { secrets: [openai-key] }
  provider: { type: exec, command: [\"sh\", \"-c\", \"printf '{\\\"length\\\":%d}' ${#OPENAI_KEY}\"] }
";

#[test]
fn secrets_are_set_rotated_listed_and_removed() {
    let laptop = Laptop::with(&[]);
    for name in ["reader", "other"] {
        let folder = laptop.folder().join("agents").join(name);
        fs::create_dir_all(&folder).expect("a folder");
        fs::write(folder.join("agent.yaml"), READER.replace("reader", name)).expect("a contract");
    }
    let file = |name: &str, text: &str| fs::write(laptop.folder().join(name), text).expect("a file");
    file("key.txt", "sk-live-4712\n");
    file("vault.yml", VAULT);
    file("password", "correct horse battery staple\n");
    file("wrong-password", "incorrect horse\n");
    let mut session = laptop.session("Secrets are set, rotated, listed and removed");
    session.quiet("atlasctl deploy agents/reader agents/other");
    session.run("atlasctl secret list");
    session.run("echo sk-live-4711 | atlasctl secret set openai-key -");
    session.run("atlasctl run reader -o jsonpath={.output_data}");
    session.run("atlasctl secret rotate openai-key --file key.txt");
    session.run("atlasctl secret set openai-key sk-live-4713");
    session.run("atlasctl secret set openai-key");
    session.run("printf '' | atlasctl secret set openai-key -");
    session.run("echo sk-live-4714 | atlasctl secret rotate nobody -");
    session.run("echo sk-live-4715 | atlasctl secret set 'no name' -");
    session.run("echo sk-live-4716 | atlasctl --server http://192.0.2.1:7400 secret set openai-key -");
    session.run("echo sk-live-4717 | atlasctl secret set openai-key - --reader reader");
    session.run("atlasctl secret list");
    session.run("atlasctl secret show openai-key | grep -v -e uid -e created -e updated -e revision -e key:");
    session.run("atlasctl model add fast --provider openai --name gpt-4o-mini --key secret://openai-key --no-probe");
    session.run("atlasctl secret who-can-read openai-key");
    session.run("atlasctl run other; echo");
    session.run("atlasctl secret import vault.yml --password-file wrong-password");
    session.run("atlasctl secret import vault.yml --password-file password --dry-run");
    session.run("atlasctl secret import vault.yml --password-file password");
    session.run("atlasctl secret import vault.yml --password-file password");
    session.run("atlasctl secret import vault.yml --password-file password --replace -o name");
    session.run("atlasctl secret import key.txt --password-file password");
    session.run("atlasctl secret list -o name");
    session.run("atlasctl secret remove openai-key EMPTY nobody");
    expect_file!["../transcripts/secrets.txt"].assert_eq(&session.page());
}
