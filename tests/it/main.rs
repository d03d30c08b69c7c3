//! The whole system: the program as people run it, in processes of its own, and peers that the tests play.

#[cfg(test)]
mod absence;
#[cfg(test)]
mod bad_input;
#[cfg(test)]
mod brokers;
#[cfg(test)]
mod cases;
#[cfg(test)]
mod conformance;
#[cfg(test)]
mod contract;
#[cfg(test)]
mod conversations;
#[cfg(test)]
mod demo;
#[cfg(test)]
mod durability;
#[cfg(test)]
mod hostile;
#[cfg(test)]
mod joining;
mod messages;
#[cfg(test)]
mod processes;
#[cfg(test)]
mod replay;
#[cfg(test)]
mod resume;
#[cfg(test)]
mod simulation;
#[cfg(test)]
mod soak;
#[cfg(test)]
mod stopped_pillar;
#[cfg(test)]
mod support;
#[cfg(test)]
mod three_kinds;
#[cfg(test)]
mod tracing;
#[cfg(test)]
mod upkeep;
