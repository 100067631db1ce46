//! Whole crawls of the synthetic web, held against what it knows a right crawl captures.

mod crawling;
