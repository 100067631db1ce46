//! Simple Web-Accessible Preservation: plain files spread over machines by one rule, with no catalogue anywhere.
//!
//! The file system and the partition files are the truth; nothing here knows SQL.
