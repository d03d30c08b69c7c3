//! File bytes between components: HTTP client and built-in exchange server, and file: addresses.
