//! What every Grange crate stands on: an injected clock, orderly shutdown, the supervised worker loop,
//! retry, throttle, work that outlives its waiter, quantities with units, sealed secrets, the addresses that
//! may be connected to, the opening of files that people name, small files that
//! are whole or absent, telemetry and the printing of error chains.
//!
//! Nothing here knows what Grange is about. No nouns of the archive, no database, no HTTP serving.

pub mod address;
pub mod chain;
pub mod clock;
pub mod detached;
pub mod durable;
pub mod named_file;
pub mod quantity;
pub mod retry;
pub mod shutdown;
pub mod telemetry;
pub mod throttle;
pub mod vault;
pub mod worker;

pub use address::{AddressKind, AddressPolicy, AddressRefused, Network};
pub use chain::Chain;
pub use clock::{Clock, LeadingTime, TestClock};
pub use detached::to_its_end;
pub use named_file::DatabaseInUse;
pub use quantity::{Period, Size};
pub use retry::{Retry, RetryPolicy};
pub use shutdown::{Shutdown, Trigger};
pub use throttle::Throttle;
pub use vault::{Vault, VaultError};
pub use worker::{Worker, WorkerError};
