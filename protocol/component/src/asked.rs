//! Requests about no collection come on the topic of every collection: each is answered once.

use std::{
    collections::VecDeque,
    sync::{Mutex, PoisonError},
};

use pillarbox_messages::{ComponentId, CorrelationId, Destination, Header};

/// Where requests came first, of the last few.
#[derive(Debug, Default)]
pub struct Asked(Mutex<VecDeque<Request>>);

#[derive(Debug)]
struct Request {
    from: ComponentId,
    correlation: CorrelationId,
    destination: Destination,
}

impl Asked {
    /// Whether this request is to be answered: it is the first of its copies, or comes again where that one came.
    pub fn is_first(&self, header: &Header) -> bool {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let same =
            |it: &&Request| it.from == header.from && it.correlation == header.correlation_id;
        if let Some(first) = known.iter().find(same) {
            return first.destination == header.destination;
        }
        if known.len() == REMEMBERED {
            known.pop_front();
        }
        known.push_back(Request {
            from: header.from.clone(),
            correlation: header.correlation_id.clone(),
            destination: header.destination.clone(),
        });
        true
    }
}

/// More conversations than are in their first seconds at any time.
const REMEMBERED: usize = 256;

#[cfg(test)]
mod tests {
    use pillarbox_messages::ProtocolVersion;

    use super::*;

    fn header(correlation: &str, destination: &str) -> Header {
        Header {
            version: ProtocolVersion::CURRENT,
            correlation_id: correlation.into(),
            collection_id: None,
            destination: destination.parse().unwrap(),
            reply_to: "topic://client".parse().unwrap(),
            from: "client".into(),
            to: None,
        }
    }

    #[test]
    fn a_request_is_answered_on_one_topic_as_often_as_it_comes_there() {
        let asked = Asked::default();
        assert!(asked.is_first(&header("c1", "topic://books")));
        assert!(!asked.is_first(&header("c1", "topic://dvds")));
        assert!(asked.is_first(&header("c1", "topic://books")));
        assert!(asked.is_first(&header("c2", "topic://dvds")));
    }

    #[test]
    fn only_the_last_few_are_remembered() {
        let asked = Asked::default();
        for number in 0..=REMEMBERED {
            assert!(asked.is_first(&header(&number.to_string(), "topic://books")));
        }
        assert_eq!(asked.0.lock().unwrap().len(), REMEMBERED);
        assert!(asked.is_first(&header("0", "topic://dvds")));
    }
}
