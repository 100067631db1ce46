//! The crate through its public face, as tables of cases and as properties.

mod domains;
mod keys;
mod original;
mod properties;
mod ranges;
mod scope;
