//! Multipart uploads that nobody will complete: begun by an archiver that was killed. S3 bills their parts and shows them
//! in no listing of objects.
//!
//! Only uploads below the two prefixes this backend writes to are looked at (`PREFIX/temp/` for large files on their way,
//! `PREFIX/files/` for copies within the store), and only those older than [`UPLOAD_AGE_MAX_S`].

use jiff::Timestamp;
use object_store::aws::{AmazonS3, AwsAuthorizer};
use object_store::client::{ClientOptions, HttpClient, HttpConnector, HttpRequestBody, ReqwestConnector};
use object_store::multipart::MultipartStore;
use object_store::path::Path;
use url::Url;

use super::{S3, S3Settings};
use crate::error::Error;

/// Seconds after which an upload belongs to nobody. The largest file has 5 GiB; at 15 kB/s, slower than any line worth
/// waiting for, it takes four days.
const UPLOAD_AGE_MAX_S: i64 = 7 * 24 * 60 * 60;

/// Answers of one listing: S3 gives 1,000 uploads per page, so this ends a server that never says that it is done.
const PAGES_MAX: usize = 1000;

/// The requests that `object_store` does not have.
#[derive(Debug)]
pub(super) struct MultipartAccess {
    store: AmazonS3,
    client: HttpClient,
    /// Of the bucket, by path: every server knows that form.
    bucket_url: Url,
    region: String,
}

/// An upload that was begun and neither completed nor aborted.
#[derive(Clone, Debug, PartialEq, Eq)]
struct OpenUpload {
    key: String,
    id: String,
    initiated: Option<Timestamp>,
}

/// One page of the listing.
#[derive(Debug, Default, PartialEq, Eq)]
struct UploadPage {
    uploads: Vec<OpenUpload>,
    /// The key and upload that the next page begins after.
    next: Option<(String, String)>,
}

impl MultipartAccess {
    pub(super) fn new(settings: &S3Settings, place: &str, store: AmazonS3) -> Result<Self, Error> {
        let amazon = || format!("https://s3.{}.amazonaws.com", settings.region);
        let endpoint = settings.endpoint.clone().unwrap_or_else(amazon);
        let bad = |reason: String| Error::Url { given: endpoint.clone(), reason };
        let mut bucket_url = Url::parse(&endpoint).map_err(|error| bad(error.to_string()))?;
        bucket_url
            .path_segments_mut()
            .map_err(|()| bad("the endpoint cannot have a path".to_owned()))?
            .pop_if_empty()
            .push(&settings.bucket);
        let options = ClientOptions::new().with_allow_http(endpoint.starts_with("http://"));
        let client = ReqwestConnector::default().connect(&options).map_err(|source| Error::Remote {
            doing: "open the bucket".to_owned(),
            place: place.to_owned(),
            source: source.into(),
        })?;
        Ok(Self { store, client, bucket_url, region: settings.region.clone() })
    }

    async fn page(&self, prefix: &str, after: Option<&(String, String)>) -> Result<UploadPage, String> {
        let mut url = self.bucket_url.clone();
        url.query_pairs_mut().append_pair("uploads", "").append_pair("prefix", prefix);
        if let Some((key, id)) = after {
            url.query_pairs_mut().append_pair("key-marker", key).append_pair("upload-id-marker", id);
        }
        // The signature is over spaces as %20.
        let url = url.as_str().replace('+', "%20");
        let request = http::Request::builder().uri(url).body(HttpRequestBody::empty());
        let mut request = request.map_err(|error| error.to_string())?;
        let credential =
            self.store.credentials().get_credential().await.map_err(|error| error.to_string())?;
        AwsAuthorizer::new(&credential, "s3", &self.region)
            .try_authorize(&mut request, None)
            .map_err(|error| error.to_string())?;
        let response = self.client.execute(request).await.map_err(|error| error.to_string())?;
        let status = response.status();
        let body = response.into_body().bytes().await.map_err(|error| error.to_string())?;
        let text = String::from_utf8_lossy(&body);
        if !status.is_success() {
            return Err(format!("status {status}: {}", text.chars().take(300).collect::<String>()));
        }
        read_page(&text)
    }
}

/// Aborts the uploads that belong to nobody any more, and gives how many.
pub(super) async fn abort_abandoned(s3: &S3, access: &MultipartAccess) -> Result<u64, Error> {
    let now = s3.clock.now();
    let failed = |doing: &str, reason: String| Error::Remote {
        doing: doing.to_owned(),
        place: s3.place.clone(),
        source: reason.into(),
    };
    let mut aborted = 0;
    for folder in ["temp", "files"] {
        let prefix = format!("{}/", s3.key(&[folder]));
        let mut after = None;
        for _ in 0..PAGES_MAX {
            let page = access.page(&prefix, after.as_ref()).await;
            let page = page.map_err(|reason| failed("list the multipart uploads", reason))?;
            for upload in page.uploads.iter().filter(|upload| abandoned(upload, &prefix, now)) {
                let Ok(key) = Path::parse(&upload.key) else { continue };
                let ended = access.store.abort_multipart(&key, &upload.id).await;
                ended.map_err(|error| failed("abort a multipart upload", error.to_string()))?;
                tracing::info!(
                    place = s3.place,
                    key = upload.key,
                    "an abandoned multipart upload was aborted"
                );
                aborted += 1;
            }
            match page.next {
                Some(next) if Some(&next) != after.as_ref() => after = Some(next),
                _ => break,
            }
        }
    }
    Ok(aborted)
}

/// Whether nobody can be working on it. One whose age is unknown may be under way.
fn abandoned(upload: &OpenUpload, prefix: &str, now: Timestamp) -> bool {
    let age = |since: Timestamp| now.as_second() - since.as_second();
    upload.key.starts_with(prefix) && upload.initiated.is_some_and(|since| age(since) > UPLOAD_AGE_MAX_S)
}

fn read_page(text: &str) -> Result<UploadPage, String> {
    let document = roxmltree::Document::parse(text).map_err(|error| error.to_string())?;
    let root = document.root_element();
    if root.tag_name().name() != "ListMultipartUploadsResult" {
        return Err(format!("the answer is a {}", root.tag_name().name()));
    }
    let child = |node: roxmltree::Node<'_, '_>, name: &str| {
        let found = node.children().find(|child| child.tag_name().name() == name);
        found.and_then(|child| child.text()).map(str::to_owned)
    };
    let uploads = root.children().filter(|child| child.tag_name().name() == "Upload");
    let uploads = uploads.filter_map(|upload| {
        Some(OpenUpload {
            key: child(upload, "Key")?,
            id: child(upload, "UploadId")?,
            initiated: child(upload, "Initiated").and_then(|time| time.parse().ok()),
        })
    });
    let next = (child(root, "IsTruncated").as_deref() == Some("true"))
        .then(|| Some((child(root, "NextKeyMarker")?, child(root, "NextUploadIdMarker").unwrap_or_default())))
        .flatten();
    Ok(UploadPage { uploads: uploads.collect(), next })
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use grange_base::Clock;
    use grange_testkit::TestBucket;

    use super::*;
    use crate::blob::Blob;

    fn upload(key: &str, initiated: Option<&str>) -> OpenUpload {
        let initiated = initiated.map(|time| time.parse().unwrap());
        OpenUpload { key: key.to_owned(), id: "1".to_owned(), initiated }
    }

    #[test]
    fn only_old_uploads_below_our_prefix_are_abandoned() {
        let now: Timestamp = "2026-02-10T00:00:00Z".parse().unwrap();
        for (key, initiated, expected) in [
            ("a/temp/1", Some("2026-02-02T00:00:00Z"), true),
            ("a/temp/1", Some("2026-02-04T00:00:00Z"), false),
            ("a/temp/1", None, false),
            ("b/temp/1", Some("2026-02-02T00:00:00Z"), false),
            ("a/temporary/1", Some("2026-02-02T00:00:00Z"), false),
            ("a/temp/1", Some("2026-03-02T00:00:00Z"), false),
        ] {
            assert_eq!(abandoned(&upload(key, initiated), "a/temp/", now), expected, "{key} {initiated:?}");
        }
    }

    #[test]
    fn a_page_says_where_the_next_one_begins() {
        let text = r#"<?xml version="1.0" encoding="UTF-8"?>
            <ListMultipartUploadsResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/"><Bucket>b</Bucket>
            <NextKeyMarker>a/temp/2</NextKeyMarker><NextUploadIdMarker>two</NextUploadIdMarker>
            <IsTruncated>true</IsTruncated>
            <Upload><Key>a/temp/&amp;1</Key><UploadId>1</UploadId><Initiated>2026-02-02T00:00:00.000Z</Initiated>
            </Upload><Upload><Key>a/temp/2</Key><UploadId>1</UploadId></Upload></ListMultipartUploadsResult>"#;
        let page = read_page(text).unwrap();
        assert_eq!(page.next, Some(("a/temp/2".to_owned(), "two".to_owned())));
        let expected = [upload("a/temp/&1", Some("2026-02-02T00:00:00Z")), upload("a/temp/2", None)];
        assert_eq!(page.uploads, expected);
        assert!(read_page("<Error><Code>NotImplemented</Code></Error>").is_err());
        assert!(read_page("not XML").is_err());
    }

    async fn open(lent: &TestBucket, prefix: &str, clock: Clock) -> S3 {
        let settings = S3Settings {
            bucket: lent.bucket.clone(),
            prefix: prefix.to_owned(),
            endpoint: Some(lent.endpoint.clone()),
            region: "us-east-1".to_owned(),
            access_key: lent.access_key.clone(),
            secret_key: lent.secret_key.clone(),
            checksums: vec![grange_model::Algorithm::Sha512],
            read_only: false,
        };
        S3::open(settings, clock).await.unwrap()
    }

    fn access(s3: &S3) -> &MultipartAccess {
        s3.multipart.as_ref().unwrap()
    }

    async fn open_uploads(s3: &S3, folder: &str) -> usize {
        let prefix = format!("{}/", s3.key(&[folder]));
        access(s3).page(&prefix, None).await.unwrap().uploads.len()
    }

    /// An upload of which a part is there and whose process was killed.
    async fn killed(s3: &S3, folder: &str) {
        let key = s3.key(&[folder, &uuid::Uuid::new_v4().simple().to_string()]);
        let id = access(s3).store.create_multipart(&key).await.unwrap();
        access(s3).store.put_part(&key, &id, 0, vec![7; 5 << 20].into()).await.unwrap();
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn uploads_of_killed_archivers_are_aborted_at_start_and_by_the_sweep_and_others_are_left() {
        let Some(lent) = TestBucket::lend() else { return };
        let now = Timestamp::now();
        let at = |days: u64| Clock::test(now + Duration::from_hours(24 * days)).0;
        let today = open(&lent, &lent.prefix, at(0)).await;
        let other = open(&lent, &format!("{}-other", lent.prefix), at(0)).await;
        killed(&today, "temp").await;
        killed(&today, "files").await;
        killed(&other, "temp").await;
        let count = async || (open_uploads(&today, "temp").await, open_uploads(&today, "files").await);
        assert_eq!(count().await, (1, 1));
        // Somebody may still be sending.
        assert_eq!(today.remove_abandoned_uploads().await.unwrap(), 0);
        drop(open(&lent, &lent.prefix, at(6)).await);
        assert_eq!(count().await, (1, 1));
        // A node that starts a week later, and one that has been running since.
        drop(open(&lent, &lent.prefix, at(8)).await);
        assert_eq!(count().await, (0, 0));
        killed(&today, "temp").await;
        let later = S3 { clock: at(8), ..today };
        assert_eq!(later.remove_abandoned_uploads().await.unwrap(), 1);
        assert_eq!(open_uploads(&other, "temp").await, 1, "another prefix");
    }
}
