//! What commands share: the settings that hold, and the client that reaches the acts.

use std::path::PathBuf;

use anyhow::Context as _;
use grange_api::{Client, HttpTransport};
use grange_node::settings::{self, Loaded, Settings};

use crate::cli::Common;
use crate::exit::UsageError;
use crate::person;

/// The settings: the files named, or `grange.toml` in the data folder when it is there.
pub(crate) fn load(common: &Common) -> anyhow::Result<Loaded<Settings>> {
    let own = common.data.join("grange.toml");
    let files: Vec<PathBuf> =
        if common.settings.is_empty() && own.exists() { vec![own] } else { common.settings.clone() };
    Ok(settings::load(&files, &common.set)?)
}

/// For commands that read the data folder itself: nobody may name a server or a token, whose rights they would pass by.
pub(crate) fn require_local(common: &Common, act: &str) -> Result<(), UsageError> {
    let named = match (&common.server, &common.token_file) {
        (None, None) => return Ok(()),
        (Some(_), _) => "--server",
        (None, Some(_)) => "--token-file",
    };
    Err(UsageError(format!(
        "cannot {act} with {named}: the command reads the data folder of this machine; leave --server and --token-file \
         (GRANGE_SERVER, GRANGE_TOKEN_FILE) out, as an account that may read the folder"
    )))
}

/// The acts: of the server named, of the node that runs on the data folder, or of the store in it.
pub(crate) async fn client(common: &Common) -> anyhow::Result<Client> {
    if let (Some(server), Some(file)) = (&common.server, &common.token_file) {
        let token = std::fs::read_to_string(file)
            .with_context(|| format!("cannot read the token file {}", file.display()))?;
        return Ok(Client::new(HttpTransport::new(server, token.trim(), None)?));
    }
    if let Some(file) = &common.token_file {
        // Without this the command would act as the account of the system, which may do everything.
        let text = format!(
            "the token in {} is for a server: name it with --server, or leave --token-file out",
            file.display()
        );
        return Err(UsageError(text).into());
    }
    let settings = load(common)?.settings;
    Ok(grange_node::access::client(&settings, &common.data, &person::name()).await?)
}
