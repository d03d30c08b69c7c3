//! The whole system: the program as people run it, in processes of its own, and peers that the tests play.

#[cfg(test)]
mod conversations;
#[cfg(test)]
mod demo;
#[cfg(test)]
mod durability;
mod messages;
#[cfg(test)]
mod processes;
#[cfg(test)]
mod support;
#[cfg(test)]
mod tracing;
