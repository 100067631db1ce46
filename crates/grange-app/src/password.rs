//! Passwords: argon2id, hashed off the async threads, a few at a time.

use argon2::Argon2;
use argon2::password_hash::phc::PasswordHash;
use argon2::password_hash::{PasswordHasher, PasswordVerifier};
use tokio::sync::Semaphore;

use crate::error::Error;

/// Each hash takes 19 MiB and tens of milliseconds by argon2's own defaults (OWASP's first choice). Two at a
/// time bounds what a flood of log-ins can take from the machine.
const HASHES_AT_ONCE: usize = 2;

/// The shortest password taken, in characters. Length is what counts; no rules on kinds of letters (NIST 800-63B).
const CHARS_MIN: usize = 10;
/// Longer ones only cost time to hash.
const BYTES_MAX: usize = 1024;

static HASHING: Semaphore = Semaphore::const_new(HASHES_AT_ONCE);

/// The PHC string of a password, or why it is not taken.
pub(crate) async fn hash(password: String) -> Result<String, Error> {
    if password.chars().count() < CHARS_MIN {
        return Err(Error::PasswordTooShort { chars_min: CHARS_MIN });
    }
    if password.len() > BYTES_MAX {
        return Err(Error::PasswordTooLong { bytes_max: BYTES_MAX });
    }
    off_thread(move || Argon2::default().hash_password(password.as_bytes()).map(|hash| hash.to_string()).ok())
        .await
        .flatten()
        .ok_or(Error::Hashing)
}

/// Whether the password fits. Without a stored hash (no such user) it takes just as long, and the answer is no.
pub(crate) async fn fits(password: String, stored: Option<String>) -> bool {
    let check = move || {
        let no_one = || Argon2::default().hash_password(b"no such user").map(|hash| hash.to_string());
        let Some(phc) = stored.clone().or_else(|| no_one().ok()) else { return false };
        let Ok(parsed) = PasswordHash::new(&phc) else { return false };
        let fits = Argon2::default().verify_password(password.as_bytes(), &parsed).is_ok();
        fits && stored.is_some()
    };
    off_thread(check).await.unwrap_or(false)
}

async fn off_thread<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Option<T> {
    // The semaphore is never closed.
    let _permit = HASHING.acquire().await.ok()?;
    tokio::task::spawn_blocking(work).await.ok()
}

/// A random password people can read aloud: four groups of five, about 98 bits, without look-alikes.
pub(crate) fn make() -> String {
    const LETTERS: &[u8; 31] = b"abcdefghjkmnpqrstuvwxyz23456789";
    let mut text = String::new();
    for group in 0..4 {
        if group > 0 {
            text.push('-');
        }
        for _ in 0..5 {
            text.push(LETTERS[rand::random_range(0..LETTERS.len())] as char);
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn only_the_right_password_fits() {
        let made = make();
        let stored = hash(made.clone()).await.unwrap();
        assert!(stored.starts_with("$argon2id$") && !stored.contains(&made));
        assert!(fits(made.clone(), Some(stored.clone())).await);
        assert!(!fits(made.to_uppercase(), Some(stored)).await);
        assert!(!fits("no such user".to_owned(), None).await);
        assert!(!fits(made, Some("not a hash".to_owned())).await);
    }

    #[tokio::test]
    async fn short_and_huge_ones_are_not_taken() {
        assert!(matches!(hash("ninechars".to_owned()).await, Err(Error::PasswordTooShort { .. })));
        assert!(matches!(hash("x".repeat(1025)).await, Err(Error::PasswordTooLong { .. })));
        assert!(hash("ten chars!".to_owned()).await.is_ok());
    }
}
