//! What belongs to one engine: files, servers, crashes; and the texts that people read.

mod backup;
mod clocks;
mod crash;
mod files;
mod full_disk;
mod group_commit;
mod migrations;
mod schema;
mod server;
mod texts;
