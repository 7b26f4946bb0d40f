//! The bucket's content, and what each call does with it.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::time::SystemTime;

use bytes::Bytes;
use hyper::header::{CONTENT_LENGTH, CONTENT_RANGE, ETAG};
use hyper::{Method, StatusCode};
use sha2::{Digest, Sha256};

use super::answers::{Answer, answer, escaped, iso_date, plain, refusal, with_head, xml};
use super::call::Call;

/// The least that a part has, but for the last one.
const PART_BYTES_MIN: usize = 5 << 20;
/// Keys of a page at most.
const PAGE_MAX: usize = 1_000;

#[derive(Default)]
pub(super) struct Objects {
    objects: BTreeMap<String, Object>,
    /// By id: the key, and the parts by number.
    uploads: BTreeMap<String, (String, BTreeMap<u32, Bytes>)>,
    uploads_begun: u64,
}

struct Object {
    data: Bytes,
    etag: String,
    modified: SystemTime,
}

impl Objects {
    pub(super) fn keys(&self) -> Vec<String> {
        self.objects.keys().cloned().collect()
    }

    pub(super) fn open_uploads(&self) -> usize {
        self.uploads.len()
    }

    /// Objects below a prefix, their keys without it.
    pub(super) fn below<'a>(&'a self, prefix: &'a str) -> impl Iterator<Item = (&'a str, &'a Bytes)> {
        self.objects.iter().filter_map(move |(key, object)| Some((key.strip_prefix(prefix)?, &object.data)))
    }

    pub(super) fn answer(&mut self, call: Call) -> Answer {
        match (call.method.clone(), call.query("uploadId").map(str::to_owned)) {
            (Method::GET, None) if call.key.is_empty() => self.list(&call),
            (Method::GET | Method::HEAD, None) => self.get(&call),
            (Method::PUT, None) => self.put(call),
            (Method::DELETE, None) => {
                self.objects.remove(&call.key);
                plain(StatusCode::NO_CONTENT)
            }
            (Method::POST, None) if call.query("uploads").is_some() => self.begin(call),
            (Method::PUT, Some(id)) => self.part(call, &id),
            (Method::POST, Some(id)) => self.complete(&call, &id),
            (Method::DELETE, Some(id)) => match self.uploads.remove(&id) {
                Some(_) => plain(StatusCode::NO_CONTENT),
                None => refusal(StatusCode::NOT_FOUND, "NoSuchUpload"),
            },
            _ => refusal(StatusCode::NOT_IMPLEMENTED, "NotImplemented"),
        }
    }

    fn get(&self, call: &Call) -> Answer {
        let Some(object) = self.objects.get(&call.key) else {
            return refusal(StatusCode::NOT_FOUND, "NoSuchKey");
        };
        let size = object.data.len();
        let Some(part) = call.part(size) else {
            return refusal(StatusCode::RANGE_NOT_SATISFIABLE, "InvalidRange");
        };
        let status = if call.range.is_some() { StatusCode::PARTIAL_CONTENT } else { StatusCode::OK };
        let shown = format!("bytes {}-{}/{size}", part.start, part.end.saturating_sub(1));
        let mut found = answer(status, object.data.slice(part));
        if call.range.is_some() {
            found.headers_mut().insert(CONTENT_RANGE, shown.parse().expect("numbers are plain text"));
        }
        if call.method == Method::HEAD {
            *found.body_mut() = Bytes::new().into();
            found.headers_mut().insert(CONTENT_LENGTH, size.into());
        }
        with_head(found, &object.etag, object.modified)
    }

    fn put(&mut self, call: Call) -> Answer {
        if call.only_if_absent && self.objects.contains_key(&call.key) {
            return refusal(StatusCode::PRECONDITION_FAILED, "PreconditionFailed");
        }
        tagged(self.store(call.key, call.body))
    }

    /// Puts the object in its place, and gives its tag.
    fn store(&mut self, key: String, data: Bytes) -> String {
        let etag = etag(&data);
        self.objects.insert(key, Object { data, etag: etag.clone(), modified: SystemTime::now() });
        etag
    }

    fn begin(&mut self, call: Call) -> Answer {
        self.uploads_begun += 1;
        let id = format!("upload-{}", self.uploads_begun);
        let body = format!("<InitiateMultipartUploadResult><UploadId>{id}</UploadId></InitiateMultipartUploadResult>");
        self.uploads.insert(id, (call.key, BTreeMap::new()));
        xml(&body)
    }

    fn part(&mut self, call: Call, id: &str) -> Answer {
        let number = call.query("partNumber").and_then(|number| number.parse().ok());
        match (self.uploads.get_mut(id), number) {
            (Some((key, parts)), Some(number)) if *key == call.key => {
                let etag = etag(&call.body);
                parts.insert(number, call.body);
                tagged(etag)
            }
            (Some(_), _) => refusal(StatusCode::BAD_REQUEST, "InvalidArgument"),
            (None, _) => refusal(StatusCode::NOT_FOUND, "NoSuchUpload"),
        }
    }

    fn complete(&mut self, call: &Call, id: &str) -> Answer {
        let Some((key, parts)) = self.uploads.get(id).filter(|(key, _)| *key == call.key) else {
            return refusal(StatusCode::NOT_FOUND, "NoSuchUpload");
        };
        let asked = String::from_utf8_lossy(&call.body);
        let numbers = asked.split("<PartNumber>").skip(1).filter_map(|rest| rest.split('<').next()?.parse().ok());
        let Some(whole) = numbers.map(|number: u32| parts.get(&number)).collect::<Option<Vec<_>>>() else {
            return refusal(StatusCode::BAD_REQUEST, "InvalidPart");
        };
        let before_last = whole.split_last().map(|(_, before)| before).unwrap_or_default();
        if whole.is_empty() || before_last.iter().any(|part| part.len() < PART_BYTES_MIN) {
            return refusal(StatusCode::BAD_REQUEST, "EntityTooSmall");
        }
        let data = whole.into_iter().flatten().copied().collect();
        let etag = self.store(key.clone(), data);
        self.uploads.remove(id);
        let key = escaped(&call.key);
        xml(&format!(
            "<CompleteMultipartUploadResult><Key>{key}</Key><ETag>{}</ETag></CompleteMultipartUploadResult>",
            escaped(&etag)
        ))
    }

    fn list(&self, call: &Call) -> Answer {
        if call.query("list-type") != Some("2") {
            return refusal(StatusCode::NOT_IMPLEMENTED, "NotImplemented");
        }
        let prefix = call.query("prefix").unwrap_or_default();
        let delimiter = call.query("delimiter").filter(|delimiter| !delimiter.is_empty());
        let limit = call.query("max-keys").and_then(|max| max.parse().ok()).unwrap_or(PAGE_MAX).min(PAGE_MAX);
        // The token is the last name of the page before.
        let after = call.query("continuation-token").or(call.query("start-after")).unwrap_or_default();
        let (mut names, mut shown, mut truncated) = (Vec::<String>::new(), String::new(), false);
        let following = self.objects.range::<str, _>((Bound::Excluded(after), Bound::Unbounded));
        for (key, object) in following.filter(|(key, _)| key.starts_with(prefix)) {
            let folder = delimiter.and_then(|delimiter| {
                let end = key[prefix.len()..].find(delimiter)? + prefix.len() + delimiter.len();
                Some(&key[..end])
            });
            let name = folder.unwrap_or(key);
            // A folder that the page before ended with, or that this page has.
            if folder.is_some() && (name == after || names.last().is_some_and(|last| last == name)) {
                continue;
            }
            if names.len() == limit {
                truncated = true;
                break;
            }
            names.push(name.to_owned());
            shown += &match folder {
                Some(folder) => format!("<CommonPrefixes><Prefix>{}</Prefix></CommonPrefixes>", escaped(folder)),
                None => object.listed(key),
            };
        }
        let next = names
            .last()
            .filter(|_| truncated)
            .map_or(String::new(), |last| format!("<NextContinuationToken>{}</NextContinuationToken>", escaped(last)));
        xml(&format!(
            "<ListBucketResult><Name>{}</Name><Prefix>{}</Prefix><KeyCount>{}</KeyCount><MaxKeys>{limit}</MaxKeys>\
             <IsTruncated>{truncated}</IsTruncated>{next}{shown}</ListBucketResult>",
            super::NAME,
            escaped(prefix),
            names.len(),
        ))
    }
}

impl Object {
    fn listed(&self, key: &str) -> String {
        format!(
            "<Contents><Key>{}</Key><LastModified>{}</LastModified><ETag>{}</ETag><Size>{}</Size></Contents>",
            escaped(key),
            iso_date(self.modified),
            escaped(&self.etag),
            self.data.len()
        )
    }
}

fn etag(data: &[u8]) -> String {
    let digest: String = Sha256::digest(data).iter().take(16).map(|byte| format!("{byte:02x}")).collect();
    format!("\"{digest}\"")
}

fn tagged(etag: String) -> Answer {
    let mut done = plain(StatusCode::OK);
    done.headers_mut().insert(ETAG, etag.parse().expect("a tag is hexadecimal digits in quotes"));
    done
}
