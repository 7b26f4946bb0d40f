//! What a bucket's refusal means to us, in words that hold no key.

use std::error::Error;

use crate::StorageError;

/// Codes of S3 that calling again does not heal: what is wrong, and what to do.
const REFUSALS: [(&str, &str, &str); 10] = [
    ("InvalidAccessKeyId", "the store does not know the access key", "correct `access-key-id` of the storage"),
    (
        "SignatureDoesNotMatch",
        "the secret does not belong to the access key",
        "correct `secret-access-key` of the storage",
    ),
    (
        "AccessDenied",
        "the access key may not do this",
        "let the key list, read, write and delete below the storage's prefix",
    ),
    ("AllAccessDisabled", "the bucket is closed", "have the bucket opened, or choose another"),
    ("RequestTimeTooSkewed", "the clocks of store and machine differ too much", "set the clock of this machine"),
    ("NoSuchBucket", "the bucket is not there", "make the bucket, or correct `url` of the storage"),
    ("InvalidBucketName", "the store takes no bucket of this name", "correct `url` of the storage"),
    ("PermanentRedirect", "the bucket is in another region", "correct `region` and `endpoint` of the storage"),
    ("AuthorizationHeaderMalformed", "the bucket is in another region", "correct `region` of the storage"),
    ("NotImplemented", "the store does not offer this call", "choose a store that knows conditional writes and parts"),
];

pub(super) fn failure(action: &'static str, path: &str, error: object_store::Error) -> StorageError {
    let said = error.to_string();
    let code = code_in(&said);
    if let Some((_, reason, instruction)) = REFUSALS.iter().find(|(known, ..)| code == Some(*known)) {
        return StorageError::Denied { path: path.into(), reason: (*reason).into(), instruction };
    }
    match error {
        // Parts that are gone are not the object: it may be there all the same.
        object_store::Error::NotFound { .. } if code != Some("NoSuchUpload") => {
            StorageError::NotFound { path: path.into() }
        }
        object_store::Error::PermissionDenied { .. } | object_store::Error::Unauthenticated { .. } => {
            let reason = "the store lets this access key in nowhere".into();
            let instruction = "correct `access-key-id` and `secret-access-key` of the storage";
            StorageError::Denied { path: path.into(), reason, instruction }
        }
        other => StorageError::Unavailable { action, path: path.into(), source: cause(code, &other).into() },
    }
}

/// Whether a refused creation says that another one is under way, which is no word about the object.
pub(super) fn is_conflict(error: &(dyn Error + Send + Sync + 'static)) -> bool {
    let said = error.to_string();
    said.contains("409 Conflict") || code_in(&said) == Some("ConditionalRequestConflict")
}

/// The code in the answer of a store that speaks S3.
fn code_in(said: &str) -> Option<&str> {
    let (_, rest) = said.split_once("<Code>")?;
    rest.split_once("</Code>").map(|(code, _)| code)
}

/// The innermost cause, which names no address; or the code that the store answered.
fn cause(code: Option<&str>, error: &object_store::Error) -> String {
    if let Some(code) = code {
        return format!("the store answers {code}");
    }
    let mut deepest: &dyn Error = error;
    while let Some(source) = deepest.source() {
        deepest = source;
    }
    let said = deepest.to_string();
    said.split(['<', '\n']).next().unwrap_or_default().chars().take(200).collect()
}
