//! How channels appear inside PostgreSQL. All nodes must agree on this, whatever their version.

use crate::channel::{Channel, NAME_BYTES_MAX};
use crate::wire::MESSAGE_BYTES_MAX;

/// Bytes of a PostgreSQL identifier (NAMEDATALEN - 1); `pg_notify` refuses longer names.
const IDENTIFIER_BYTES: usize = 63;

// The largest message on the longest name fits: PostgreSQL refuses a payload of 8,000 bytes or more.
const _: () = assert!(NAME_BYTES_MAX + 1 + MESSAGE_BYTES_MAX < 8_000);

/// Ends what is kept of a long name; no channel name contains it.
const CUT: char = '~';

/// The NOTIFY channel of a topic: its own name, or the beginning of it and a hash. Two topics that share one are
/// told apart by the payload.
pub(super) fn notify_name(channel: &Channel) -> String {
    let name = channel.name();
    if name.len() <= IDENTIFIER_BYTES {
        return name.to_owned();
    }
    let hash = format!("{CUT}{:016x}", fnv1a(name));
    // Names are ASCII (see `part`), so any byte is a boundary.
    format!("{}{hash}", &name[..IDENTIFIER_BYTES - hash.len()])
}

/// The first number of a queue's advisory locks. Should two queues of one installation ever share one (a chance of
/// one in 2³² per pair), a hint on either may reach a process that does not listen to it, and is lost.
pub(super) fn queue_key(channel: &Channel) -> u32 {
    let hash = fnv1a(channel.name());
    (hash >> 32) as u32 ^ hash as u32
}

/// The NOTIFY channel of one session; the SQL that publishes to a queue builds the same name.
pub(super) fn inbox_name(inbox: u32) -> String {
    format!("grange_inbox_{inbox}")
}

/// `<channel name>\n<message>`: the name in front, because NOTIFY names may be cut or be an inbox.
pub(super) fn payload(channel: &Channel, message: &str) -> String {
    format!("{channel}\n{message}")
}

pub(super) fn read_payload(payload: &str) -> Option<(&str, &str)> {
    payload.split_once('\n')
}

/// FNV-1a, 64 bits: the same for ever on every machine, which the standard library's hashers do not promise.
fn fnv1a(text: &str) -> u64 {
    text.bytes()
        .fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::channels::Channels;

    #[test]
    fn the_hash_is_fnv1a() {
        // From the reference test vectors.
        assert_eq!(fnv1a(""), 0xcbf2_9ce4_8422_2325);
        assert_eq!(fnv1a("foobar"), 0x8594_4171_f739_67e8);
    }

    #[test]
    fn names_fit_and_stay_apart() {
        let channels = Channels::new("PROD").unwrap();
        assert_eq!(notify_name(&channels.all_ba("TWO").unwrap()), "PROD_ALL_BA_TWO");
        let long = "r".repeat(100);
        let one = notify_name(&channels.all_ba(&format!("{long}1")).unwrap());
        let other = notify_name(&channels.all_ba(&format!("{long}2")).unwrap());
        assert_eq!((one.len(), other.len()), (63, 63));
        assert_ne!(one, other);
    }
}
