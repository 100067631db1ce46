//! Records out of Grange: exported, and served.

use std::io::Write;
use std::net::SocketAddr;
use std::path::PathBuf;

use grange_model::oai::RepositoryId;
use http_body_util::BodyExt;
use serde_json::json;

use super::query;
use crate::cli::Common;
use crate::cmd::harvest::{list as table, read_file, told};
use crate::cmd::up::stop_signal;
use crate::context;
use crate::exit::{Exit, UsageError};

#[derive(Debug, clap::Args)]
pub(crate) struct ExportArgs {
    /// The repository
    id: RepositoryId,
    /// JSON lines, or one XML document
    #[arg(long, value_enum, default_value_t = Form::Jsonl)]
    format: Form,
    /// The metadata format
    #[arg(long, default_value = "oai_dc")]
    prefix: String,
}

#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum Form {
    Jsonl,
    Xml,
}

#[derive(Debug, clap::Args)]
pub(crate) struct ServeArgs {
    /// Where to answer; every path is the base URL
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:7074")]
    listen: SocketAddr,
}

#[derive(Debug, clap::Subcommand)]
pub(crate) enum FilterCommand {
    /// Which records a filter wants
    Test {
        /// A filter file
        #[arg(value_name = "FILTER")]
        file: PathBuf,
        /// Files with one record each
        #[arg(required = true)]
        records: Vec<PathBuf>,
    },
}

pub(super) fn filter(common: &Common, command: FilterCommand) -> anyhow::Result<Exit> {
    let FilterCommand::Test { file, records } = command;
    let filter = read_file(&file)?;
    let mut rows = Vec::new();
    for path in &records {
        let wanted = grange_node::oai::filter_wants(&filter, &read_file(path)?).map_err(UsageError)?;
        rows.push(json!({ "record": path.display().to_string(), "wanted": wanted }));
    }
    table(common, &rows, [("WANTED", "wanted"), ("RECORD", "record")])?;
    Ok(Exit::Ok)
}

pub(super) async fn export(common: &Common, args: ExportArgs) -> anyhow::Result<Exit> {
    let client = context::client(common).await?;
    let form = match args.format {
        Form::Jsonl => "jsonl",
        Form::Xml => "xml",
    };
    let query = query(&[("format", Some(form.to_owned())), ("prefix", Some(args.prefix))]);
    let path = format!("/oai/repositories/{}/export{query}", args.id);
    let (_, mut body) = client.get_bytes(&path).await?;
    let mut out = std::io::BufWriter::with_capacity(1 << 18, crate::output::listing());
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|error| anyhow::anyhow!("the export broke off: {error}"))?;
        if let Some(bytes) = frame.data_ref() {
            out.write_all(bytes)?;
        }
    }
    out.flush()?;
    Ok(Exit::Ok)
}

pub(super) async fn serve(common: &Common, args: ServeArgs) -> anyhow::Result<Exit> {
    let client = context::client(common).await?;
    let stop = stop_signal()?;
    let listener = grange_node::serve::listen(args.listen, "--listen").await?;
    let address = listener.local_addr()?;
    let url = format!("http://{address}/oai");
    told(common, &json!({ "base_url": url }), &format!("OAI-PMH at {url}\nStop with Ctrl-C."))?;
    grange_node::oai::serve(client, listener, stop.listener()).await?;
    Ok(Exit::Ok)
}
