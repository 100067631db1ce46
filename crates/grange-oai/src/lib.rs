//! One OAI-PMH job becomes records on disk. It reaches no db, bus, blob or index.

pub mod filter;
pub mod normalize;
pub mod rules;
pub mod validate;
