//! One OAI-PMH job becomes records on disk. It reaches no db, bus, blob or index.
