mod decode;
mod encode;

use super::*;

fn protocol() -> Bedrock {
    Bedrock {
        access_key_id: "AKIDEXAMPLE".into(),
        secret_access_key: "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY".into(),
        session_token: None,
        region: "eu-central-1".into(),
    }
}
