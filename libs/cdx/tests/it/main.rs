//! The crate through its public face.

mod index;
mod lines;
mod lookup;
mod post;
mod samples;
mod sort;
mod warcs;
mod zipnum;
