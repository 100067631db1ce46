//! What belongs to one engine: files, servers, crashes; and the texts that people read.

mod backup;
mod clocks;
mod crash;
mod declare;
mod files;
mod full_disk;
mod group_commit;
mod locks;
mod migrations;
mod schema;
mod server;
mod skew;
mod texts;
