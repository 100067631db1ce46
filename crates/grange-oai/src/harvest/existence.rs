//! Whether a record exists that a complete list lacks, by the repository's response to GetRecord: pure.

use oaipmh::{ErrorCode, OaiError, Record};

/// What a response to GetRecord says of the record that was asked for.
#[derive(Debug)]
pub(super) enum Existence {
    /// The repository says that it does not exist.
    Absent,
    /// The record as it is now; its header may say that it is deleted.
    Present(Box<Record>),
    /// Neither, for this reason.
    Unknown(String),
}

/// Reads a response to GetRecord. Errors other than idDoesNotExist say nothing of the record: cannotDisseminateFormat comes
/// from repositories that lost a format for an hour, too.
pub(super) fn existence(identifier: &str, mut records: Vec<Record>, errors: &[OaiError]) -> Existence {
    if let Some(at) = records.iter().position(|record| record.header.identifier == identifier) {
        return Existence::Present(Box::new(records.swap_remove(at)));
    }
    if let [record] = &mut records[..]
        && record.header.identifier.is_empty()
        && !record.header.deleted
    {
        // Its header was lost on the way.
        identifier.clone_into(&mut record.header.identifier);
        return Existence::Present(Box::new(records.swap_remove(0)));
    }
    if let Some(other) = records.first() {
        let other = &other.header.identifier;
        return Existence::Unknown(format!("GetRecord for {identifier} brought record \"{other}\""));
    }
    match errors.iter().find(|error| error.code != ErrorCode::IdDoesNotExist) {
        Some(error) => Existence::Unknown(format!("GetRecord for {identifier} was answered with {error}")),
        None if errors.is_empty() => {
            Existence::Unknown(format!("GetRecord for {identifier} brought no record and no error"))
        }
        None => Existence::Absent,
    }
}

/// Whether a record of these sets belongs to a list of `set`, or of everything.
pub(super) fn is_listed(sets: &[String], set: Option<&str>) -> bool {
    let Some(set) = set else { return true };
    let below =
        |spec: &str| spec.strip_prefix(set).is_some_and(|rest| rest.is_empty() || rest.starts_with(':'));
    sets.iter().any(|spec| below(spec))
}

#[cfg(test)]
mod tests {
    use oaipmh::Header;

    use super::*;

    fn record(identifier: &str, deleted: bool) -> Record {
        let header = Header { identifier: identifier.to_owned(), deleted, ..Header::default() };
        Record { header, ..Record::default() }
    }

    #[test]
    fn only_a_clear_word_of_the_repository_makes_a_record_absent() {
        let (absent, broken) = (ErrorCode::IdDoesNotExist, ErrorCode::BadVerb);
        for (what, records, codes, expected) in [
            ("does not exist", vec![], vec![absent.clone()], "Absent"),
            ("it is there", vec![record("a", false)], vec![], "Present"),
            ("it is deleted", vec![record("a", true)], vec![], "Present"),
            ("there, beside an error", vec![record("a", false)], vec![absent.clone()], "Present"),
            ("there, beside another", vec![record("b", false), record("a", false)], vec![], "Present"),
            ("without a header", vec![record("", false)], vec![], "Present"),
            ("nobody knows what is deleted", vec![record("", true)], vec![], "Unknown"),
            ("another record", vec![record("b", false)], vec![], "Unknown"),
            ("another deleted record", vec![record("b", true)], vec![absent.clone()], "Unknown"),
            ("nothing at all", vec![], vec![], "Unknown"),
            ("no such verb", vec![], vec![broken.clone()], "Unknown"),
            ("not in this format", vec![], vec![ErrorCode::CannotDisseminateFormat], "Unknown"),
            ("two errors", vec![], vec![absent, broken], "Unknown"),
        ] {
            let errors: Vec<_> = codes.into_iter().map(|code| OaiError::new(code, "")).collect();
            let found = format!("{:?}", existence("a", records, &errors));
            assert!(found.starts_with(expected), "{what}: {found}");
        }
    }

    #[test]
    fn records_are_listed_in_their_sets_and_those_above() {
        let sets = |specs: &[&str]| specs.iter().map(|spec| (*spec).to_owned()).collect::<Vec<_>>();
        for (specs, set, listed) in [
            (sets(&[]), None, true),
            (sets(&["a"]), None, true),
            (sets(&[]), Some("a"), false),
            (sets(&["b", "a"]), Some("a"), true),
            (sets(&["a:b"]), Some("a"), true),
            (sets(&["ab"]), Some("a"), false),
            (sets(&["a"]), Some("a:b"), false),
        ] {
            assert_eq!(is_listed(&specs, set), listed, "{specs:?} {set:?}");
        }
    }
}
