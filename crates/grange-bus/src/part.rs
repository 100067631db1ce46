//! The parts of a channel name, written so that they can be read back.
//!
//! `_` separates parts, so no part contains it: a part is letters, digits and `-`, anything else is `%XX` as in a
//! URL. Both PostgreSQL and NATS take that as it is. The one exception is older than Grange: an IPv4 address is
//! written with `_` for its dots (`130_226_258_7`), as in the documents.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};

const ESCAPED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-');

/// How many groups of digits an IPv4 address has.
const IPV4_GROUPS: usize = 4;

pub(crate) fn encode(text: &str) -> String {
    utf8_percent_encode(text, ESCAPED).to_string()
}

/// `None` when what was escaped is not UTF-8.
pub(crate) fn decode(part: &str) -> Option<String> {
    percent_decode_str(part).decode_utf8().ok().map(Into::into)
}

/// A machine: an IPv4 address group by group, anything else (a host name, an IPv6 address) as one part.
pub(crate) fn encode_machine(machine: &str) -> String {
    if is_ipv4(machine.split('.')) {
        return machine.replace('.', "_");
    }
    let part = encode(machine);
    // A host called "130" would read back as the start of an address.
    match part.as_bytes() {
        [first, ..] if is_octet(&part) => format!("%{first:02X}{}", &part[1..]),
        _ => part,
    }
}

/// Takes the machine from the front of what follows the replica; gives it and the rest.
pub(crate) fn decode_machine(rest: &str) -> Option<(String, &str)> {
    let groups: Vec<&str> = rest.splitn(IPV4_GROUPS + 1, '_').collect();
    if groups.len() >= IPV4_GROUPS && is_ipv4(groups[..IPV4_GROUPS].iter().copied()) {
        let after = groups.get(IPV4_GROUPS).copied().unwrap_or("");
        return Some((groups[..IPV4_GROUPS].join("."), after));
    }
    let (machine, after) = rest.split_once('_').unwrap_or((rest, ""));
    Some((decode(machine)?, after))
}

/// By form, not by value: the documents' own example, 130.226.258.7, is not an address that exists.
fn is_ipv4<'a>(groups: impl Iterator<Item = &'a str>) -> bool {
    let mut count = 0;
    groups.inspect(|_| count += 1).all(is_octet) && count == IPV4_GROUPS
}

fn is_octet(group: &str) -> bool {
    (1..=3).contains(&group.len()) && group.bytes().all(|b| b.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn machines_are_written_so_and_read_back() {
        for (machine, written) in [
            ("130.226.258.7", "130_226_258_7"),
            ("kb-test-acs-001", "kb-test-acs-001"),
            ("node1.kb.dk", "node1%2Ekb%2Edk"),
            ("130", "%3130"),
            ("1.2.3", "1%2E2%2E3"),
            ("1.2.3.4.5", "1%2E2%2E3%2E4%2E5"),
            ("1234", "1234"),
            ("::1", "%3A%3A1"),
            ("my_host", "my%5Fhost"),
        ] {
            assert_eq!(encode_machine(machine), written);
            for after in ["", "ISA", "HCA_HIGH", "9_8_7_6"] {
                let rest = if after.is_empty() { written.to_owned() } else { format!("{written}_{after}") };
                assert_eq!(decode_machine(&rest), Some((machine.to_owned(), after)), "{rest}");
            }
        }
    }

    proptest! {
        #[test]
        fn any_text_survives(machine in "\\PC{1,20}", after in "[A-Z0-9]{1,5}(_[0-9]{1,3}){0,4}") {
            prop_assert_eq!(decode(&encode(&machine)), Some(machine.clone()));
            let rest = format!("{}_{after}", encode_machine(&machine));
            prop_assert_eq!(decode_machine(&rest), Some((machine, after.as_str())));
        }
    }
}
