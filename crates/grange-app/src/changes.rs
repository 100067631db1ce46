//! The record of changes.

use grange_db::AuditFilter;
use grange_model::account::Permission;
use grange_model::audit::AuditEntry;

use crate::{App, Error, Who};

impl App {
    /// Changes, newest first.
    pub async fn changes(
        &self,
        who: &Who,
        by: Option<String>,
        subject: Option<String>,
        before: Option<i64>,
        limit: u32,
    ) -> Result<Vec<AuditEntry>, Error> {
        who.needs(Permission::ReadAudit)?;
        let filter = AuditFilter { who: by, subject, before, limit, ..AuditFilter::default() };
        Ok(self.db.audit().list(&filter).await?)
    }
}
