//! The claim of a file inside a longer act. The file is given back where the act ends before it has settled the file: at an
//! error, or at a stop, which drops the act where it waits. Else everybody would wait for the lease to end.

use std::sync::{Mutex, PoisonError};

use grange_base::Chain;
use grange_db::Claim;

use crate::archive::Archive;
use crate::error::Error;

/// The file that an act holds, if it holds one. Belongs to the caller of the act, so that it survives the act.
#[derive(Debug, Default)]
pub(crate) struct HeldFile(Mutex<Option<Claim>>);

impl HeldFile {
    fn replace(&self, claim: Option<Claim>) -> Option<Claim> {
        std::mem::replace(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner), claim)
    }
}

impl Archive {
    /// Runs the part of an act that settles the file, or puts it back into the queue: when it succeeds, the file is not held
    /// any more.
    pub(crate) async fn settling<T>(
        &self,
        file: &HeldFile,
        claim: &Claim,
        act: impl Future<Output = Result<T, Error>>,
    ) -> Result<T, Error> {
        file.replace(Some(claim.clone()));
        let settled = self.held(claim, act).await?;
        file.replace(None);
        Ok(settled)
    }

    /// Gives the file back that an act did not settle. It is due at once, wherever there is a worker.
    pub(crate) async fn give_back(&self, file: &HeldFile) {
        let Some(claim) = file.replace(None) else { return };
        match self.0.db.work().release(&claim).await {
            // Somebody took over from us, who were too slow.
            Ok(()) | Err(grange_db::Error::LeaseLost { .. }) => {}
            Err(error) => {
                let error = Chain(&error);
                tracing::warn!(name = claim.key, %error, "cannot give a file back; it is free when its lease ends");
            }
        }
    }
}
