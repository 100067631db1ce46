//! Buckets of others: any keys, read where they lie. Nothing is ever written there.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path as FilePath, PathBuf};
use std::sync::Arc;

use bytes::Bytes;
use futures_util::{StreamExt, TryStreamExt};
use object_store::aws::AmazonS3Builder;
use object_store::path::Path;
use object_store::{Error as S3Error, ObjectStore, ObjectStoreExt};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tokio::io::AsyncRead;
use tokio_util::io::StreamReader;

use crate::error::Error;
use crate::open::Bucket;

/// A bucket whose files may be taken into collections.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct BucketSettings {
    /// `s3://BUCKET?endpoint=URL&region=NAME`; without an endpoint it is Amazon's.
    pub url: String,
    /// File with the access key. Without keys the bucket is read as anybody may.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub access_key_file: Option<PathBuf>,
    /// File with the secret key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret_key_file: Option<PathBuf>,
}

/// The buckets of the settings, by name. Files in them are called `s3://BUCKET/KEY`. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub struct Buckets {
    by_name: Arc<BTreeMap<String, Arc<dyn ObjectStore>>>,
}

/// A file in a bucket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BucketFile {
    /// `s3://BUCKET/KEY`.
    pub url: String,
    pub size: u64,
}

/// Whether a path is one in a bucket.
pub fn is_bucket_url(path: &str) -> bool {
    path.starts_with("s3://")
}

impl Buckets {
    /// Nothing is asked of the buckets yet: one that is away must not keep a node from starting.
    pub fn open(settings: &[BucketSettings], data_folder: &FilePath) -> Result<Self, Error> {
        let mut by_name: BTreeMap<String, Arc<dyn ObjectStore>> = BTreeMap::new();
        for one in settings {
            let bad = |reason: &str| Error::Url { given: one.url.clone(), reason: reason.to_owned() };
            let bucket = Bucket::read(&one.url)?;
            if !bucket.prefix.is_empty() {
                return Err(bad("name the bucket only; prefixes are for imports"));
            }
            let key = |path: &Option<PathBuf>| {
                let path = path.as_ref().map(|path| data_folder.join(path));
                let read = path.map(|path| {
                    std::fs::read_to_string(&path).map_err(|source| Error::Secret { path, source })
                });
                read.transpose().map(|text| text.map(|text| text.trim().to_owned()))
            };
            let mut builder =
                AmazonS3Builder::new().with_bucket_name(&bucket.name).with_region(&bucket.region);
            builder = match (key(&one.access_key_file)?, key(&one.secret_key_file)?) {
                (Some(access), Some(secret)) => {
                    builder.with_access_key_id(access).with_secret_access_key(secret)
                }
                (None, None) => builder.with_skip_signature(true),
                _ => return Err(bad("one of access_key_file and secret_key_file is missing")),
            };
            if let Some(endpoint) = &bucket.endpoint {
                builder = builder.with_endpoint(endpoint).with_allow_http(endpoint.starts_with("http://"));
            }
            let store = builder.build().map_err(|source| remote("open the bucket", &one.url, source))?;
            if by_name.insert(bucket.name, Arc::new(store)).is_some() {
                return Err(bad("a bucket of that name is in the settings already"));
            }
        }
        Ok(Self { by_name: Arc::new(by_name) })
    }

    fn find(&self, url: &str) -> Result<(&Arc<dyn ObjectStore>, Path), Error> {
        let bad = |reason: &str| Error::Url { given: url.to_owned(), reason: reason.to_owned() };
        let rest = url.strip_prefix("s3://").ok_or_else(|| bad("it is in no bucket"))?;
        let (name, key) = rest.split_once('/').unwrap_or((rest, ""));
        let unknown = "this bucket is not in the settings: name it under [[index.buckets]]";
        let store = self.by_name.get(name).ok_or_else(|| bad(unknown))?;
        let key = Path::parse(key.trim_end_matches('/')).map_err(|_| bad("its key cannot be read"))?;
        Ok((store, key))
    }

    /// The file of that name, or all below it, in the order of their keys. `url` may be a file, a prefix or a bucket.
    pub async fn list(&self, url: &str) -> Result<Vec<BucketFile>, Error> {
        let (store, key) = self.find(url)?;
        let bucket = url.trim_start_matches("s3://").split('/').next().unwrap_or_default();
        let as_file = |key: &Path, size| BucketFile { url: format!("s3://{bucket}/{}", key.as_ref()), size };
        if !key.as_ref().is_empty()
            && let Some(size) = self.size(url).await?
        {
            return Ok(vec![as_file(&key, size)]);
        }
        let below = Some(&key).filter(|key| !key.as_ref().is_empty());
        let mut files: Vec<BucketFile> = store
            .list(below)
            .map(|object| object.map(|object| as_file(&object.location, object.size)))
            .try_collect()
            .await
            .map_err(|error| remote("list", url, error))?;
        files.sort_by(|one, other| one.url.cmp(&other.url));
        Ok(files)
    }

    /// How long a file is; `None` if there is none.
    pub async fn size(&self, url: &str) -> Result<Option<u64>, Error> {
        let (store, key) = self.find(url)?;
        match store.head(&key).await {
            Ok(meta) => Ok(Some(meta.size)),
            Err(S3Error::NotFound { .. }) => Ok(None),
            Err(error) => Err(remote("look at", url, error)),
        }
    }

    /// The bytes from `from` to before `to`, which must lie within the file. `None` if there is none.
    pub async fn read(&self, url: &str, from: u64, to: u64) -> Result<Option<Bytes>, Error> {
        let (store, key) = self.find(url)?;
        if from >= to {
            return Ok(Some(Bytes::new()));
        }
        match store.get_range(&key, from..to).await {
            Ok(bytes) => Ok(Some(bytes)),
            Err(S3Error::NotFound { .. }) => Ok(None),
            Err(error) => Err(remote("read", url, error)),
        }
    }

    /// A whole file, read as it comes. `None` if there is none. A connection that is cut is an error of the reader.
    pub async fn reader(&self, url: &str) -> Result<Option<impl AsyncRead + Send + Unpin + use<>>, Error> {
        let (store, key) = self.find(url)?;
        match store.get(&key).await {
            Ok(found) => Ok(Some(StreamReader::new(found.into_stream().map_err(io::Error::other)))),
            Err(S3Error::NotFound { .. }) => Ok(None),
            Err(error) => Err(remote("read", url, error)),
        }
    }
}

fn remote(doing: &str, url: &str, source: S3Error) -> Error {
    Error::Remote { doing: doing.to_owned(), place: url.to_owned(), source: source.into() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(url: &str) -> BucketSettings {
        BucketSettings { url: url.to_owned(), ..BucketSettings::default() }
    }

    #[test]
    fn only_buckets_of_the_settings_are_known() {
        let folder = tempfile::tempdir().unwrap();
        let open = |urls: &[&str]| {
            let settings: Vec<_> = urls.iter().map(|url| named(url)).collect();
            Buckets::open(&settings, folder.path())
        };
        let buckets = open(&["s3://one?endpoint=http://127.0.0.1:1", "s3://two"]).unwrap();
        assert_eq!(buckets.find("s3://one/a/b.warc").unwrap().1.as_ref(), "a/b.warc");
        assert_eq!(buckets.find("s3://two").unwrap().1.as_ref(), "");
        for url in ["s3://three/a", "/a/b", "file:a", "s3://one/a//b"] {
            assert!(buckets.find(url).is_err(), "{url}");
        }
        for urls in [&["s3://one/prefix"][..], &["file:x"], &["s3://one", "s3://one?region=eu"]] {
            assert_eq!(open(urls).unwrap_err().code(), "blob-url", "{urls:?}");
        }
        let half = BucketSettings { access_key_file: Some("none".into()), ..named("s3://one") };
        assert_eq!(Buckets::open(&[half], folder.path()).unwrap_err().code(), "blob-secret");
    }
}
