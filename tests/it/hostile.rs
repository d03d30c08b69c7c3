//! What strangers and broken peers send: frames, messages, addresses and HTTP requests. A typed refusal, bounded
//! memory and time, no file touched, and the node goes on.

mod addresses;
mod frames;
mod http;
mod messages;
