//! Lends tests what they need: a database of their own, a NATS server, nginx and clamd, a synthetic web, waiting for
//! a condition.
//!
//! It sits below everything: a testkit that knew the node would be compiled twice, and its types would not match.
//! Services come from `scripts/with-services`, which `make test` runs. Without them a test that needs one says so
//! loudly and passes on a laptop, and fails in CI; the run ends with the list of skipped tests.

pub mod daemon;
pub mod nats;
pub mod port;
pub mod postgres;
pub mod s3;
mod skip;
pub mod sqlite;
pub mod tcp_fault;
pub mod wait;
pub mod web;

pub use daemon::Daemon;
pub use nats::NatsServer;
pub use port::{ReservedPort, ReservedPorts};
pub use postgres::TestDatabase;
pub use s3::TestBucket;
pub use skip::{note_skipped, skipped};
pub use tcp_fault::TcpFault;
pub use wait::{LONGEST, until, wait_for};
