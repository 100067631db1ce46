//! Exit codes that mean something; scripts may rely on them.

use std::process::ExitCode;

use grange_api::ApiError;
use grange_base::Chain;
use grange_node::StartError;
use grange_node::data::DataError;
use grange_node::settings::Problems;

use crate::output;

/// How a command ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exit {
    Ok = 0,
    /// Tried and failed.
    Failed = 1,
    /// Asked for wrongly: arguments, settings, input.
    Usage = 2,
    /// What was asked for is not there.
    NotFound = 3,
    /// Understood and not allowed.
    Refused = 4,
    /// Done, but with problems that were listed.
    Partial = 5,
    /// A list ended early because its reader had gone; the code of programs that SIGPIPE ends.
    Unread = 141,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit as u8)
    }
}

/// Prints an error as one sentence and gives its exit code.
pub(crate) fn report(error: &anyhow::Error) -> Exit {
    if output::ended_listing(error) {
        return Exit::Unread;
    }
    let cause: &(dyn std::error::Error + 'static) = error.as_ref();
    errln!("grange: {}", Chain(cause));
    code_of(error)
}

fn code_of(error: &anyhow::Error) -> Exit {
    for cause in error.chain() {
        if cause.is::<Problems>() || cause.is::<UsageError>() {
            return Exit::Usage;
        }
        let started = cause.downcast_ref::<StartError>();
        let data = match started {
            Some(StartError::Data(error)) => Some(error),
            _ => cause.downcast_ref::<DataError>(),
        };
        match data {
            Some(DataError::NoArchive { .. } | DataError::NoDatabase { .. }) => return Exit::NotFound,
            Some(DataError::Exists { .. }) => return Exit::Refused,
            _ => {}
        }
        let swap = cause.downcast_ref::<grange_swap::Error>().map(|error| Some(error.status()));
        let api =
            || cause.downcast_ref::<ApiError>().map(|error| error.status().map(|status| status.as_u16()));
        if let Some(status) = swap.or_else(api) {
            return match status {
                Some(404) => Exit::NotFound,
                Some(401 | 403 | 409) => Exit::Refused,
                Some(400 | 422) => Exit::Usage,
                _ => Exit::Failed,
            };
        }
    }
    Exit::Failed
}

/// Something in the arguments that clap could not know.
#[derive(Debug)]
pub(crate) struct UsageError(pub String);

impl std::fmt::Display for UsageError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for UsageError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_of_error_has_its_code() {
        assert_eq!(code_of(&anyhow::anyhow!("x")), Exit::Failed);
        assert_eq!(code_of(&anyhow::Error::from(UsageError("x".into())).context("y")), Exit::Usage);
        assert_eq!(code_of(&Problems(Vec::new()).into()), Exit::Usage);
        let missing = || DataError::NoArchive { path: "x".into(), missing: "y".to_owned() };
        assert_eq!(code_of(&missing().into()), Exit::NotFound);
        assert_eq!(code_of(&StartError::from(missing()).into()), Exit::NotFound);
        assert_eq!(code_of(&DataError::Exists { path: "x".into() }.into()), Exit::Refused);
    }
}
