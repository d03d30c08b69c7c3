//! How a component of this process gets to its bus: the one in this process, or another over STOMP.

use std::time::Duration;

use pillarbox_bus::{Broker, Bus, BusError, BusState, ConnectOptions, StompOptions};
use pillarbox_messages::ComponentId;
use pillarbox_settings::BusUrl;
use tracing::info;

/// What leads to the bus.
#[derive(Clone, Debug)]
pub(crate) enum Route {
    /// The embedded queue manager of this process.
    Here(Broker),
    /// A bus elsewhere.
    There(StompOptions),
}

impl Route {
    /// The route to a bus in another process; `None` for `embedded:`.
    pub(crate) fn elsewhere(url: &BusUrl) -> Option<Self> {
        let addresses = addresses(url);
        let mut options = StompOptions::new(addresses.first()?.as_str());
        options.addresses = addresses;
        if let Some(pause) = url.shortest_pause() {
            options.shortest_pause = pause;
        }
        if let Some(pause) = url.longest_pause() {
            options.longest_pause = pause;
        }
        Some(Self::There(options))
    }

    /// Connects under this id. Over STOMP the connection comes about in the background.
    pub(crate) fn connect(&self, id: &ComponentId) -> Result<Bus, BusError> {
        let connect = ConnectOptions {
            client_id: id.as_str().to_owned(),
        };
        match self {
            Self::Here(broker) => Bus::embedded(broker, connect),
            Self::There(options) => Ok(Bus::stomp(options.clone(), connect)),
        }
    }

    /// Connects and waits for the bus as long as it takes.
    ///
    /// # Errors
    /// If the bus refuses the component for good.
    pub(crate) async fn connect_patiently(&self, id: &ComponentId) -> Result<Bus, BusError> {
        let bus = self.connect(id)?;
        loop {
            match bus.ready(NOTICE_INTERVAL).await {
                Ok(()) => return Ok(bus),
                Err(error @ BusError::Unreachable { .. }) if !has_failed(&bus) => {
                    info!(component = id.as_str(), %error, "waiting for the bus");
                }
                Err(error) => return Err(error),
            }
        }
    }
}

/// Whether trying again can't help.
fn has_failed(bus: &Bus) -> bool {
    matches!(*bus.state().borrow(), BusState::Failed(_))
}

fn addresses(url: &BusUrl) -> Vec<String> {
    match url {
        BusUrl::Embedded => Vec::new(),
        BusUrl::Stomp { host, port, .. } if host.contains(':') => vec![format!("[{host}]:{port}")],
        BusUrl::Stomp { host, port, .. } => vec![format!("{host}:{port}")],
        BusUrl::Failover { urls, .. } => urls.iter().flat_map(addresses).collect(),
    }
}

/// How often a person is told that the bus is still away.
const NOTICE_INTERVAL: Duration = Duration::from_secs(10);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_of_urls() {
        let of = |text: &str| addresses(&text.parse::<BusUrl>().unwrap());
        assert!(of("embedded:").is_empty());
        assert_eq!(of("stomp://bus:1234"), ["bus:1234"]);
        assert_eq!(of("stomp://[::1]:1234"), ["[::1]:1234"]);
        assert_eq!(of("failover:(stomp://a:1,stomp://b:2)"), ["a:1", "b:2"]);
    }
}
