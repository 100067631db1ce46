//! Serves index folders and files: `cdx_serve ADDRESS:PORT PATH…`. What `grange cdx serve` does, without the rest of Grange.

use std::path::PathBuf;

use grange_base::Shutdown;
use grange_replay::cdx::{self, Options};
use tokio::net::TcpListener;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut words = std::env::args().skip(1);
    let address = words.next().unwrap_or_else(|| "127.0.0.1:8081".to_owned());
    let paths: Vec<PathBuf> = words.map(PathBuf::from).collect();
    let aside = tempfile::tempdir()?;
    let collections = cdx::open(&paths, &aside.path().join(cdx::LOCAL), false)?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(async {
        let listener = TcpListener::bind(&address).await?;
        println!("http://{}", listener.local_addr()?);
        cdx::serve(listener, collections, Options::default(), Shutdown::never()).await
    })?;
    Ok(())
}
