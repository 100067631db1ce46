//! Stores files to two disk replicas and a checksum replica, each copy proven. For `bench/archive.sh`, which times it.
//!
//! `cargo run --release -p grange-archive --example store_speed -- DATA_FOLDER FILE…`

use std::path::PathBuf;

use grange_archive::{Archive, Parts, ReplicaSettings, Settings, Store, open_places};
use grange_base::{Clock, Size};
use grange_model::ReplicaKind;

#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args_os().skip(1).map(PathBuf::from);
    let data_dir = arguments.next().ok_or("name a data folder and files")?;
    let clock = Clock::system();
    let mut settings = Settings::default();
    for (name, replica) in &mut settings.replicas {
        if replica.kind == ReplicaKind::Bitarchive {
            let url = format!("file:replicas/{name}");
            let place =
                grange_blob::Settings { url, min_space_left: Size(0), ..grange_blob::Settings::default() };
            *replica = ReplicaSettings { at: vec![place], ..ReplicaSettings::default() };
        }
    }
    std::fs::create_dir_all(&data_dir)?;
    let db = grange_db::Db::open(&grange_db::Settings::default(), &data_dir, clock.clone()).await?;
    let context = grange_blob::Context::local(&data_dir, clock.clone());
    let places = open_places(&settings, &context).await?;
    let node = "bench".to_owned();
    let archive = Archive::open(Parts {
        db,
        clock,
        data_dir,
        node,
        settings,
        places,
        announcer: None,
        node_token: None,
    })
    .await?;
    for path in arguments {
        let name = path.file_name().unwrap_or_default().to_string_lossy().parse()?;
        let outcome = archive.store(&path, &Store::new(name, "bench")).await?;
        if !outcome.stored {
            return Err(format!("{} is not proven: {:?}", outcome.name, outcome.unproven).into());
        }
    }
    archive.db().close().await;
    Ok(())
}
