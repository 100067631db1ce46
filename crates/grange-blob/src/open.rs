//! From settings to a store: the only place that names the backends.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use grange_base::Clock;

use crate::blob::Blob;
use crate::disk::{Disk, DiskSettings};
use crate::error::Error;
use crate::memory::Memory;
use crate::peer::{Offers, Peer, PeerAuth};
use crate::settings::Settings;
use crate::swap::Swap;

/// What a store needs of its surroundings.
#[derive(Clone, Debug)]
pub struct Context {
    /// Relative paths are below it.
    pub data_folder: PathBuf,
    pub clock: Clock,
    /// How this node proves itself to others; without it no peer can be opened.
    pub auth: Option<Arc<dyn PeerAuth>>,
    /// Where this node lays out local files for peers to fetch; without it their bytes are sent.
    pub offers: Option<Offers>,
}

impl Context {
    /// For stores of this machine alone.
    pub fn local(data_folder: impl Into<PathBuf>, clock: Clock) -> Self {
        Self { data_folder: data_folder.into(), clock, auth: None, offers: None }
    }
}

/// What a URL names.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Address {
    Memory,
    Disk(Vec<PathBuf>),
    Peer { address: String, mount: String },
    S3(Bucket),
    Swap { address: String, namespace: String },
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Bucket {
    pub(crate) name: String,
    pub(crate) prefix: String,
    pub(crate) endpoint: Option<String>,
    pub(crate) region: String,
}

#[cfg(feature = "s3")]
impl Bucket {
    /// What `s3://…` names.
    pub(crate) fn read(url: &str) -> Result<Self, Error> {
        match Address::read(url)? {
            Address::S3(bucket) => Ok(bucket),
            _ => Err(Error::Url { given: url.to_owned(), reason: "it is no bucket".to_owned() }),
        }
    }
}

/// The path below which a node answers for its store of that name.
pub fn mount(store: &str) -> String {
    format!("/peer/v1/blob/{store}")
}

impl Address {
    fn read(url: &str) -> Result<Self, Error> {
        let bad = |reason: &str| Error::Url { given: url.to_owned(), reason: reason.to_owned() };
        let (scheme, rest) = url.split_once(':').ok_or_else(|| bad("it has no scheme"))?;
        match scheme {
            "memory" if rest.is_empty() => Ok(Self::Memory),
            "file" => {
                let bases: Vec<_> = rest.split(',').map(str::trim).map(PathBuf::from).collect();
                if bases.iter().any(|base| base.as_os_str().is_empty()) {
                    return Err(bad("a folder is missing"));
                }
                for (index, base) in bases.iter().enumerate() {
                    if bases[..index].contains(base) {
                        return Err(bad("a folder is named twice"));
                    }
                }
                Ok(Self::Disk(bases))
            }
            "peer" => {
                let rest = rest.strip_prefix("//").ok_or_else(|| bad("the host is missing"))?;
                let (address, store) = rest.split_once('/').ok_or_else(|| bad("the store is missing"))?;
                let plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
                if !address.contains(':') || store.is_empty() || !store.chars().all(plain) {
                    return Err(bad("it needs HOST:PORT and a store of letters, digits, - and _"));
                }
                Ok(Self::Peer { address: address.to_owned(), mount: mount(store) })
            }
            "s3" => {
                let url = url::Url::parse(url).map_err(|error| bad(&error.to_string()))?;
                let name = url.host_str().ok_or_else(|| bad("the bucket is missing"))?.to_owned();
                if url.password().is_some() || !url.username().is_empty() {
                    return Err(bad("keys belong into access_key_file and secret_key_file"));
                }
                let prefix = url.path().trim_matches('/').to_owned();
                let (mut endpoint, mut region) = (None, None);
                for (key, value) in url.query_pairs() {
                    match &*key {
                        "endpoint" => endpoint = Some(value.into_owned()),
                        "region" => region = Some(value.into_owned()),
                        _ => return Err(bad("only endpoint and region may follow the question mark")),
                    }
                }
                let region = region.unwrap_or_else(|| "us-east-1".to_owned());
                Ok(Self::S3(Bucket { name, prefix, endpoint, region }))
            }
            "swap" => {
                let rest = rest.strip_prefix("//").ok_or_else(|| bad("the host is missing"))?;
                let (address, namespace) =
                    rest.split_once('/').ok_or_else(|| bad("the collection is missing"))?;
                let odd = |name: &str| name.is_empty() || name == "." || name == "..";
                if !address.contains(':') || namespace.split('/').any(odd) {
                    return Err(bad("it needs HOST:PORT and a collection such as library/warcs"));
                }
                Ok(Self::Swap { address: address.to_owned(), namespace: namespace.to_owned() })
            }
            _ => Err(bad("this scheme is not known")),
        }
    }
}

/// The node behind `peer://HOST:PORT/NAME`, asked below `/peer/v1/KIND/NAME`; `None` for a URL of another kind.
pub fn peer_at(url: &str, kind: &str, context: &Context) -> Result<Option<Peer>, Error> {
    let Ok(Address::Peer { address, mount }) = Address::read(url) else { return Ok(None) };
    let reason = "this program is no node with a token".to_owned();
    let auth = context.auth.clone().ok_or_else(|| Error::Url { given: url.to_owned(), reason })?;
    let mount = mount.replacen("/blob/", &format!("/{kind}/"), 1);
    Peer::new(&address, &mount, auth, context.clock.clone()).map(Some)
}

/// Opens the store that `settings.url` names.
///
/// A disk that cannot be used or a bucket that cannot be reached is an error: whoever starts a node wants to know.
/// A peer is only asked when it is needed; nodes start in any order.
pub async fn open(settings: &Settings, context: &Context) -> Result<Arc<dyn Blob>, Error> {
    open_with(settings, context, true).await
}

/// The same for a store whose parts bear markers: folders of a disk that are missing are made when it is marked
/// ([`Blob::mark`]), and not before. The disk may not be mounted.
pub async fn open_marked(settings: &Settings, context: &Context) -> Result<Arc<dyn Blob>, Error> {
    open_with(settings, context, false).await
}

async fn open_with(
    settings: &Settings,
    context: &Context,
    make_folders: bool,
) -> Result<Arc<dyn Blob>, Error> {
    let bad = |reason: &str| Error::Url { given: settings.url.clone(), reason: reason.to_owned() };
    let clock = context.clock.clone();
    Ok(match Address::read(&settings.url)? {
        Address::Memory | Address::Peer { .. } if settings.read_only => {
            return Err(bad("read_only is for file: and s3: places"));
        }
        Address::Memory => Arc::new(Memory::new(clock).with_checksums(settings.checksums.clone())),
        Address::Disk(bases) => {
            let disk = DiskSettings { make_folders, ..disk_settings(settings, bases, &context.data_folder) };
            let opened = tokio::task::spawn_blocking(move || Disk::open(disk, clock)).await;
            Arc::new(match opened {
                Ok(opened) => opened?,
                Err(error) => match error.try_into_panic() {
                    Ok(panic) => std::panic::resume_unwind(panic),
                    Err(_) => return Err(bad("the process stops")),
                },
            })
        }
        Address::Peer { address, mount } => {
            let auth = context.auth.clone().ok_or_else(|| bad("this program is no node with a token"))?;
            let peer = Peer::new(&address, &mount, auth, clock)?;
            Arc::new(match &context.offers {
                Some(offers) => peer.offering(offers.clone()),
                None => peer,
            })
        }
        Address::S3(bucket) => open_bucket(settings, bucket, context).await?,
        Address::Swap { address, namespace } => {
            let key = settings.secret_key_file.as_ref().map(|path| {
                let path = context.data_folder.join(path);
                std::fs::read_to_string(&path).map_err(|source| Error::Secret { path, source })
            });
            let key = key.transpose()?;
            let (key, checksums) = (key.as_deref().map(str::trim), settings.checksums.clone());
            Arc::new(Swap::new(&address, &namespace, key, checksums, settings.read_only)?)
        }
    })
}

fn disk_settings(settings: &Settings, bases: Vec<PathBuf>, data_folder: &Path) -> DiskSettings {
    DiskSettings {
        bases: bases.iter().map(|base| data_folder.join(base)).collect(),
        checksums: settings.checksums.clone(),
        placement: settings.placement,
        min_space_left: settings.min_space_left,
        min_space_required: settings.min_space_required,
        read_only: settings.read_only,
        make_folders: true,
    }
}

#[cfg(feature = "s3")]
async fn open_bucket(settings: &Settings, bucket: Bucket, context: &Context) -> Result<Arc<dyn Blob>, Error> {
    let secret = |path: &Option<PathBuf>, setting: &str| {
        let reason = format!("the setting {setting} is missing");
        let path = path.as_ref().ok_or_else(|| Error::Url { given: settings.url.clone(), reason })?;
        let path = context.data_folder.join(path);
        let text = std::fs::read_to_string(&path).map_err(|source| Error::Secret { path, source })?;
        Ok::<_, Error>(text.trim().to_owned())
    };
    let opened = crate::s3::S3Settings {
        bucket: bucket.name,
        prefix: bucket.prefix,
        endpoint: bucket.endpoint,
        region: bucket.region,
        access_key: secret(&settings.access_key_file, "access_key_file")?,
        secret_key: secret(&settings.secret_key_file, "secret_key_file")?,
        checksums: settings.checksums.clone(),
        read_only: settings.read_only,
    };
    Ok(Arc::new(crate::s3::S3::open(opened, context.clock.clone()).await?))
}

#[cfg(not(feature = "s3"))]
fn open_bucket(
    settings: &Settings,
    _: Bucket,
    _: &Context,
) -> std::future::Ready<Result<Arc<dyn Blob>, Error>> {
    let reason = "this program was built without S3".to_owned();
    std::future::ready(Err(Error::Url { given: settings.url.clone(), reason }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_name_places() {
        let disk = |bases: &[&str]| Address::Disk(bases.iter().map(PathBuf::from).collect());
        let bucket = |prefix: &str, endpoint: Option<&str>, region: &str| {
            Address::S3(Bucket {
                name: "bucket".to_owned(),
                prefix: prefix.to_owned(),
                endpoint: endpoint.map(str::to_owned),
                region: region.to_owned(),
            })
        };
        for (url, address) in [
            ("memory:", Address::Memory),
            ("file:archive", disk(&["archive"])),
            ("file:/a, /b,c", disk(&["/a", "/b", "c"])),
            (
                "peer://host:7979/one",
                Address::Peer { address: "host:7979".to_owned(), mount: "/peer/v1/blob/one".to_owned() },
            ),
            (
                "swap://host:8080/library/warcs",
                Address::Swap { address: "host:8080".to_owned(), namespace: "library/warcs".to_owned() },
            ),
            ("s3://bucket", bucket("", None, "us-east-1")),
            ("s3://bucket/a/b/?endpoint=http://h:1&region=eu", bucket("a/b", Some("http://h:1"), "eu")),
        ] {
            assert_eq!(Address::read(url).unwrap(), address, "{url}");
        }
        for url in [
            "archive",
            "memory:x",
            "file:",
            "file:/a,",
            "file:/a,/a",
            "peer://host/one",
            "peer://host:1",
            "peer://host:1/../x",
            "s3:bucket",
            "swap://host/x",
            "swap://host:1",
            "swap://host:1/a/../b",
            "s3://key:secret@bucket/",
            "s3://bucket/?secret=x",
            "ftp://x",
        ] {
            let error = Address::read(url).unwrap_err();
            assert_eq!(error.code(), "blob-url", "{url}");
            assert!(error.to_string().contains(url), "{error}");
        }
    }

    #[tokio::test]
    async fn each_backend_opens_by_its_url() {
        let folder = tempfile::tempdir().unwrap();
        let context = Context::local(folder.path(), Clock::system());
        let with = |url: &str| Settings { url: url.to_owned(), ..Settings::default() };
        let memory = open(&with("memory:"), &context).await.unwrap();
        assert_eq!(memory.place(), "memory");
        open(&with("file:copies"), &context).await.unwrap();
        assert!(folder.path().join("copies/filedir").is_dir());
        let disks = open_marked(&with("file:one,two"), &context).await.unwrap();
        for part in disks.markers().await.unwrap() {
            assert!(!Path::new(&part.part).exists(), "a disk that is not mounted stays so");
            disks.mark(&part.part, "marker").await.unwrap();
        }
        for base in ["one", "two"] {
            for inner in ["filedir", "tempdir", "atticdir"] {
                assert!(folder.path().join(base).join(inner).is_dir());
            }
        }
        let error = open(&with("peer://127.0.0.1:1/one"), &context).await.unwrap_err();
        assert!(error.to_string().contains("no node with a token"), "{error}");
        #[cfg(feature = "s3")]
        {
            let error = open(&with("s3://bucket/x"), &context).await.unwrap_err();
            assert!(error.to_string().contains("access_key_file is missing"), "{error}");
        }
        let read_only = Settings { read_only: true, ..with("memory:") };
        assert_eq!(open(&read_only, &context).await.unwrap_err().code(), "blob-url");
    }
}
