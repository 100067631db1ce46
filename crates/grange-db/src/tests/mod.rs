//! What belongs to one engine: files, servers, crashes.
