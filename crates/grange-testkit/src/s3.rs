//! S3 for tests: the SeaweedFS that `scripts/with-services` started.

use crate::skipped;

/// Where the bucket is, and the keys to it. Each test takes a prefix of its own.
#[derive(Clone, Debug)]
pub struct TestBucket {
    /// `http://127.0.0.1:PORT`
    pub endpoint: String,
    pub bucket: String,
    pub access_key: String,
    pub secret_key: String,
    /// A key prefix that no other test has.
    pub prefix: String,
}

impl TestBucket {
    /// The bucket with a fresh prefix, or `None` (said loudly) when no server was given.
    pub fn lend() -> Option<Self> {
        let Ok(endpoint) = std::env::var("GRANGE_TEST_S3_URL") else {
            skipped("S3 (SeaweedFS)");
            return None;
        };
        let given = |name: &str| {
            std::env::var(name).unwrap_or_else(|_| panic!("GRANGE_TEST_S3_URL is set, {name} is not"))
        };
        Some(Self {
            endpoint,
            bucket: given("GRANGE_TEST_S3_BUCKET"),
            access_key: given("GRANGE_TEST_S3_ACCESS_KEY"),
            secret_key: given("GRANGE_TEST_S3_SECRET_KEY"),
            prefix: format!("test-{}", uuid::Uuid::new_v4().simple()),
        })
    }
}
