mod decode;
mod encode;

use super::*;

fn protocol() -> Cohere {
    Cohere { auth: Auth::Key("co-secret".into()) }
}
