//! TLS configuration from PEM files.
