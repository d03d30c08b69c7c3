//! What every component shares: receive path, sending, status and raising alarms.
