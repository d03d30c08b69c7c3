//! The message codec against the Java system's schemas, examples and captured traffic.
//!
//! `xmllint` with the reference schemas says what is a message. What it accepts must be read, written again and
//! accepted again; what it refuses must be refused. The few differences are deliberate and counted.

#[cfg(test)]
pub(crate) mod corpus;
#[cfg(test)]
mod differential;
#[cfg(test)]
mod hostile;
#[cfg(test)]
mod meaning;
#[cfg(test)]
mod mutations;
#[cfg(test)]
pub(crate) mod tree;
#[cfg(test)]
mod xmllint;
