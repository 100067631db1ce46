//! The whole product, tested through its command line and its ports. One binary, so that it links once.

mod archive;
mod archive_bed;
mod archive_faults;
mod archive_kill;
mod cluster;
mod crawl;
mod demo;
mod formats;
mod generated;
mod harness;
mod harvests;
mod health;
mod peers;
mod people;
mod restart;
mod sessions;
mod settings;
mod start;
mod swap;
mod swap_bed;
mod testkit;
