//! What goes over the wire, by noun. Nouns that are shown as they are come straight from `grange-model`.

pub mod archive;
pub mod changes;
pub mod collections;
pub mod harvests;
pub mod oai;
pub mod system;
pub mod users;
