//! The index against simple models of it.

mod model;
