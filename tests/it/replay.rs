//! Recorded conversations of the Java system, replayed: its client's messages to our pillars, and its pillars'
//! answers to our client.
//!
//! What differs from the recording is written down in `differences`, with the reason, or it fails; and what is written
//! there must still differ.

mod capture;
mod differences;
mod pillars;
mod scenes;
mod shape;
mod site;
