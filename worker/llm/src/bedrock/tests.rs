mod decode;
mod encode;

use super::*;

fn protocol() -> Bedrock {
    with_token(None)
}

fn with_token(session_token: Option<Secret>) -> Bedrock {
    let secret_access_key = "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY".into();
    let access = Access::Signed { access_key_id: "AKIDEXAMPLE".into(), secret_access_key, session_token };
    Bedrock { access, region: "eu-central-1".into() }
}
