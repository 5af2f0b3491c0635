mod decode;
mod encode;

use super::*;

fn protocol() -> Anthropic {
    Anthropic { auth: Auth::Key("sk-ant-secret".into()) }
}
