//! A bucket that changes a byte of what is written to it when a test asks for it.

use std::fmt;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use bytes::Bytes;
use futures_util::stream::BoxStream;
use object_store::path::Path;
use object_store::{
    CopyOptions, GetOptions, GetResult, ListResult, MultipartUpload, ObjectMeta, ObjectStore, ObjectStoreExt,
    PutMultipartOptions, PutOptions, PutPayload, PutResult, Result,
};

#[derive(Debug)]
pub(super) struct FaultyBucket {
    inner: Arc<dyn ObjectStore>,
    pub(super) flip_next: AtomicBool,
    /// An object that every read of answers with an error.
    pub(super) unreadable: Mutex<Option<Path>>,
    /// The next object that is copied to the attic is replaced by another one then.
    pub(super) replaced: AtomicBool,
}

impl FaultyBucket {
    pub(super) fn new(inner: Arc<dyn ObjectStore>) -> Self {
        Self {
            inner,
            flip_next: AtomicBool::new(false),
            unreadable: Mutex::new(None),
            replaced: AtomicBool::new(false),
        }
    }

    fn flips(&self, location: &Path) -> bool {
        // Parts on their way are not what is read back.
        location.as_ref().contains("files/") && self.flip_next.swap(false, Ordering::SeqCst)
    }

    /// Changes a byte of an object where it lies.
    pub(super) async fn flip(&self, location: &Path) {
        let bytes = self.inner.get(location).await.unwrap().bytes().await.unwrap();
        self.inner.put(location, flipped(&bytes).into()).await.unwrap();
    }
}

fn flipped(bytes: &Bytes) -> Bytes {
    let mut bytes = bytes.to_vec();
    bytes[0] ^= 1;
    bytes.into()
}

impl fmt::Display for FaultyBucket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.fmt(f)
    }
}

#[async_trait]
impl ObjectStore for FaultyBucket {
    async fn put_opts(&self, location: &Path, payload: PutPayload, opts: PutOptions) -> Result<PutResult> {
        let payload = if self.flips(location) { flipped(&payload.into()).into() } else { payload };
        self.inner.put_opts(location, payload, opts).await
    }

    async fn put_multipart_opts(
        &self,
        location: &Path,
        opts: PutMultipartOptions,
    ) -> Result<Box<dyn MultipartUpload>> {
        self.inner.put_multipart_opts(location, opts).await
    }

    async fn get_opts(&self, location: &Path, options: GetOptions) -> Result<GetResult> {
        if !options.head && self.unreadable.lock().unwrap().as_ref() == Some(location) {
            return Err(object_store::Error::Generic {
                store: "test",
                source: "500 Internal Server Error".into(),
            });
        }
        self.inner.get_opts(location, options).await
    }

    async fn get_ranges(&self, location: &Path, ranges: &[Range<u64>]) -> Result<Vec<Bytes>> {
        self.inner.get_ranges(location, ranges).await
    }

    fn delete_stream(&self, locations: BoxStream<'static, Result<Path>>) -> BoxStream<'static, Result<Path>> {
        self.inner.delete_stream(locations)
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        self.inner.list(prefix)
    }

    fn list_with_offset(
        &self,
        prefix: Option<&Path>,
        offset: &Path,
    ) -> BoxStream<'static, Result<ObjectMeta>> {
        self.inner.list_with_offset(prefix, offset)
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> Result<ListResult> {
        self.inner.list_with_delimiter(prefix).await
    }

    async fn copy_opts(&self, from: &Path, to: &Path, options: CopyOptions) -> Result<()> {
        self.inner.copy_opts(from, to, options).await?;
        if to.as_ref().contains("attic/") && self.replaced.swap(false, Ordering::SeqCst) {
            self.flip(from).await;
        }
        if self.flips(to) {
            self.flip(to).await;
        }
        Ok(())
    }
}
