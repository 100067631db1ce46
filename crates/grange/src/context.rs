//! What commands share: the settings that hold, and the client that reaches the acts.

use std::path::PathBuf;

use anyhow::Context as _;
use grange_api::{Client, HttpTransport};
use grange_node::settings::{self, Loaded, Settings};

use crate::cli::Common;
use crate::person;

/// The settings: the files named, or `grange.toml` in the data folder when it is there.
pub(crate) fn load(common: &Common) -> anyhow::Result<Loaded<Settings>> {
    let own = common.data.join("grange.toml");
    let files: Vec<PathBuf> =
        if common.settings.is_empty() && own.exists() { vec![own] } else { common.settings.clone() };
    Ok(settings::load(&files, &common.set)?)
}

/// The acts: of the server named, of the node that runs on the data folder, or of the store in it.
pub(crate) async fn client(common: &Common) -> anyhow::Result<Client> {
    if let (Some(server), Some(file)) = (&common.server, &common.token_file) {
        let token = std::fs::read_to_string(file)
            .with_context(|| format!("cannot read the token file {}", file.display()))?;
        return Ok(Client::new(HttpTransport::new(server, token.trim(), None)?));
    }
    let settings = load(common)?.settings;
    Ok(grange_node::access::client(&settings, &common.data, &person::name()).await?)
}
