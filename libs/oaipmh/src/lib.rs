//! Requests and answers of OAI-PMH 2.0.
