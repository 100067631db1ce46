//! The whole product, tested through its command line and its ports. One binary, so that it links once.

mod archive;
mod archive_bed;
mod archive_faults;
mod archive_kill;
mod cluster;
mod collections;
mod crawl;
mod demo;
mod formats;
mod generated;
mod harness;
mod harvest_bed;
mod harvest_run;
mod harvests;
mod health;
mod oai;
mod peers;
mod people;
mod replay;
mod replay_browser;
mod restart;
mod sessions;
mod settings;
mod start;
mod testkit;
