//! Whom this process trusts on the wire.
//!
//! Owned here: the TLS configuration of outgoing https connections, made from the operating
//! system's trust store and extra PEM files. Message signatures, client certificates, permissions
//! and the configuration of TLS listeners belong here too, and come with the parts that use them.
//!
//! Refused here: switching verification off, and process-wide defaults. A configuration is a value
//! that is handed to the connection that uses it; the cryptographic provider (ring) is named each
//! time, so nothing has to be installed first.
//!
//! Modules: [`tls`].

pub mod tls;

pub use rustls::ClientConfig;
pub use tls::{TrustError, client_tls, no_tls};
