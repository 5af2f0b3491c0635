mod decode;
mod encode;

use super::*;

fn protocol() -> Gemini {
    Gemini { auth: Auth::Key("AIza-secret".into()) }
}
