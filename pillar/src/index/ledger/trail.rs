//! What is written into the audit trail.

use pillarbox_messages::CollectionId;
use rusqlite::params;

use super::{Counters, Ledger};
use crate::index::{AuditEntry, IndexError};

impl Ledger {
    /// An audit event of its own.
    pub(in crate::index) fn append(
        &mut self,
        collection: CollectionId,
        entry: &AuditEntry,
        now_ms: i64,
    ) -> Result<u64, IndexError> {
        let mut counters = self.counters(&collection)?;
        let number = self.write_event(&mut counters, entry, now_ms)?;
        self.store(collection, counters)?;
        Ok(number)
    }

    /// The next event of a collection; its texts are cut where they are longer than those of an event may be.
    pub(super) fn write_event(
        &self,
        counters: &mut Counters,
        entry: &AuditEntry,
        now_ms: i64,
    ) -> Result<u64, IndexError> {
        counters.audit = counters.audit.saturating_add(1);
        let texts = entry.texts();
        let mut statement = self.connection.prepare_cached(
            "INSERT INTO audit (collection, number, time, file_id, actor, action, info,
                                operation_id, certificate_id, information)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)",
        )?;
        statement.execute(params![
            counters.key,
            counters.audit,
            now_ms,
            texts.file_id,
            texts.actor,
            entry.action.as_str(),
            texts.info,
            texts.operation_id,
            texts.certificate_id,
            texts.audit_trail_information,
        ])?;
        Ok(counters.audit.unsigned_abs())
    }
}
