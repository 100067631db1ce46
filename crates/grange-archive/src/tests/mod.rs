//! Faults, each counted.
