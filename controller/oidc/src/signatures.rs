//! The signatures of tokens, checked by `ring`. Keys that two sides share are not supported: who can check such a signature can also make one.

use std::sync::Once;

use jsonwebtoken::crypto::{CryptoProvider, JwtSigner, JwtVerifier, KeyUtils};
use jsonwebtoken::errors::{ErrorKind, Result};
use jsonwebtoken::{Algorithm, AlgorithmFamily, DecodingKey, DecodingKeyKind, EncodingKey};
use ring::signature::{
    ECDSA_P256_SHA256_FIXED, ECDSA_P384_SHA384_FIXED, ED25519, RSA_PKCS1_2048_8192_SHA256, RSA_PKCS1_2048_8192_SHA384,
    RSA_PKCS1_2048_8192_SHA512, RSA_PSS_2048_8192_SHA256, RSA_PSS_2048_8192_SHA384, RSA_PSS_2048_8192_SHA512,
    RsaParameters, RsaPublicKeyComponents, UnparsedPublicKey, VerificationAlgorithm,
};
use signature::{Error, Verifier};

/// What a token may be signed with, and nothing else.
pub(crate) const ALGORITHMS: [Algorithm; 9] = [
    Algorithm::RS256,
    Algorithm::RS384,
    Algorithm::RS512,
    Algorithm::PS256,
    Algorithm::PS384,
    Algorithm::PS512,
    Algorithm::ES256,
    Algorithm::ES384,
    Algorithm::EdDSA,
];

static PROVIDER: CryptoProvider = CryptoProvider {
    signer_factory: no_signer,
    verifier_factory: verifier,
    // Used to make keys and thumbprints alone, which this program does not.
    key_utils: KeyUtils::new_unimplemented(),
};

/// Makes `jsonwebtoken` use `ring`. Must come before the first token.
pub(crate) fn install() {
    static ONCE: Once = Once::new();
    // Fails only if it is installed already.
    ONCE.call_once(|| {
        let _ = PROVIDER.install_default();
    });
}

fn no_signer(_: &Algorithm, _: &EncodingKey) -> Result<Box<dyn JwtSigner>> {
    Err(ErrorKind::InvalidAlgorithm.into())
}

fn verifier(algorithm: &Algorithm, key: &DecodingKey) -> Result<Box<dyn JwtVerifier>> {
    let check = check_of(*algorithm).ok_or(ErrorKind::InvalidAlgorithm)?;
    let family = match check {
        Check::Rsa(_) => AlgorithmFamily::Rsa,
        Check::Bytes(_) if *algorithm == Algorithm::EdDSA => AlgorithmFamily::Ed,
        Check::Bytes(_) => AlgorithmFamily::Ec,
    };
    if key.family() != family {
        return Err(ErrorKind::InvalidKeyFormat.into());
    }
    Ok(Box::new(Checker { algorithm: *algorithm, check, key: key.clone() }))
}

enum Check {
    Rsa(&'static RsaParameters),
    Bytes(&'static dyn VerificationAlgorithm),
}

fn check_of(algorithm: Algorithm) -> Option<Check> {
    Some(match algorithm {
        Algorithm::RS256 => Check::Rsa(&RSA_PKCS1_2048_8192_SHA256),
        Algorithm::RS384 => Check::Rsa(&RSA_PKCS1_2048_8192_SHA384),
        Algorithm::RS512 => Check::Rsa(&RSA_PKCS1_2048_8192_SHA512),
        Algorithm::PS256 => Check::Rsa(&RSA_PSS_2048_8192_SHA256),
        Algorithm::PS384 => Check::Rsa(&RSA_PSS_2048_8192_SHA384),
        Algorithm::PS512 => Check::Rsa(&RSA_PSS_2048_8192_SHA512),
        Algorithm::ES256 => Check::Bytes(&ECDSA_P256_SHA256_FIXED),
        Algorithm::ES384 => Check::Bytes(&ECDSA_P384_SHA384_FIXED),
        Algorithm::EdDSA => Check::Bytes(&ED25519),
        _ => return None,
    })
}

struct Checker {
    algorithm: Algorithm,
    check: Check,
    key: DecodingKey,
}

impl Verifier<Vec<u8>> for Checker {
    fn verify(&self, message: &[u8], signature: &Vec<u8>) -> std::result::Result<(), Error> {
        let checked = match (&self.check, self.key.kind()) {
            (Check::Rsa(parameters), DecodingKeyKind::RsaModulusExponent { n, e }) => {
                RsaPublicKeyComponents { n, e }.verify(parameters, message, signature)
            }
            (Check::Bytes(algorithm), DecodingKeyKind::SecretOrDer(key)) => {
                UnparsedPublicKey::new(*algorithm, key).verify(message, signature)
            }
            _ => return Err(Error::new()),
        };
        checked.map_err(|_| Error::new())
    }
}

impl JwtVerifier for Checker {
    fn algorithm(&self) -> Algorithm {
        self.algorithm
    }
}
