//! Any bytes as a URL: every dialect answers, and a standard key fits into a line.
#![no_main]

use libfuzzer_sys::fuzz_target;
use urlkey::{Dialect, Keyer, MatchType, Suffixes};

fuzz_target!(|url: &[u8]| {
    let mut key = String::new();
    for dialect in [Dialect::Ia, Dialect::Outback, Dialect::Standard] {
        key.clear();
        Keyer::new(dialect).key_bytes_into(url, &mut key);
    }
    assert!(!key.is_empty() && key.bytes().all(|b| (0x21..=0x7e).contains(&b)));
    let mut general = String::new();
    Keyer::new(Dialect::Standard).general_key_into(url, &mut general);
    assert_eq!(key, general, "the shortcut and the general way differ");

    let Ok(url) = std::str::from_utf8(url) else { return };
    for kind in [MatchType::Exact, MatchType::Prefix, MatchType::Host, MatchType::Domain] {
        let range = urlkey::search_range(url, kind, Dialect::Standard);
        assert!(range.start < range.end);
    }
    if let (Some(prefix), Some(surt)) = (urlkey::SurtPrefix::from_seed(url), urlkey::scope_surt(url)) {
        assert!(prefix.matches(&surt));
    }
    let _ = urlkey::canonical(url);
    let _ = urlkey::check_domain(url, Suffixes::Icann);
    let _ = urlkey::host_to_unicode(url);
});
