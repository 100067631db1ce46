//! The scripts that replayed pages load from the replay server itself.

/// Where the replay server serves [`asset`]s; no collection may have this name.
pub const STATIC_PREFIX: &str = "/static/";

/// One file under [`STATIC_PREFIX`].
#[derive(Clone, Copy, Debug)]
pub struct Asset {
    pub content_type: &'static str,
    pub body: &'static [u8],
}

/// Why there is no such file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoAsset {
    #[error("there is no such file")]
    Unknown,
    /// Answer 503 with this text.
    #[error(
        "this Grange was built without wombat, the script that keeps archived scripts inside the archive: run \
         `scripts/setup build` in its source folder (it needs npm and the network) and build it again"
    )]
    NotBuiltIn,
}

include!(concat!(env!("OUT_DIR"), "/wombat.rs"));

/// Objects that archived modules see in place of the browser's own. Modules cannot be wrapped in a block as classic
/// scripts are; they import these names instead.
const MODULES: &str = "\
const of = (name) => (self._wb_wombat && self._wb_wombat.local_init && self._wb_wombat.local_init(name)) || self[name];
export const window = of('window'), self_ = of('self'), document = of('document'), location = of('location'), \
top = of('top'), parent = of('parent'), frames = of('frames'), opener = of('opener');
export { self_ as self };
";

/// Sets up wombat in a worker that is a module, from what its own address says.
const WORKER: &str = "\
const asked = new URL(import.meta.url).searchParams;
const prefix = self.origin + asked.get('prefix');
new WBWombat({ prefix, prefixMod: prefix + asked.get('time') + 'wkrf_/', originalURL: asked.get('url') });
self._WB_wombat_location = new URL(asked.get('url'));
";

/// The file `name` under [`STATIC_PREFIX`].
pub fn asset(name: &str) -> Result<Asset, NoAsset> {
    let body = match name {
        "wombat.js" => WOMBAT.ok_or(NoAsset::NotBuiltIn)?,
        "wombatWorkers.js" => WOMBAT_WORKERS.ok_or(NoAsset::NotBuiltIn)?,
        "grange-modules.js" => MODULES.as_bytes(),
        "grange-worker.js" => WORKER.as_bytes(),
        _ => return Err(NoAsset::Unknown),
    };
    Ok(Asset { content_type: "text/javascript; charset=utf-8", body })
}

/// Wombat is part of this program.
pub const fn has_wombat() -> bool {
    WOMBAT.is_some() && WOMBAT_WORKERS.is_some()
}
