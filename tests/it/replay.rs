//! Recorded conversations of the Java system, replayed: its client's messages to our pillars, and its pillars'
//! answers to our client.
//!
//! What differs from the recording is written down in `differences`, with the reason, or it fails; and what is written
//! there must still differ.

mod capture;
mod client;
mod differences;
mod listings;
mod pillars;
mod run;
mod scenes;
mod shape;
mod site;
mod stage;
