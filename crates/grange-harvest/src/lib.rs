//! A job from its claim to its report: run its engine, document the crawl, deposit every file, tell what came of it.
//!
//! It must never plan: which jobs there are is the scheduler's, and neither names the other.

pub mod oai;
