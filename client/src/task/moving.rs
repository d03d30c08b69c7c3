//! The file on its way to or from the exchange, and being read for its checksum.

use pillarbox_component::Component;
use pillarbox_messages::{ChecksumData, ChecksumSpec, ComponentId, HexBinary};

use super::ConversationTask;
use crate::{
    asking::Asking,
    cargo::Cargo,
    conversation::{Expected, Input, Procedure},
    source,
    transfer::{self, Offered, Place},
};

impl<P: Procedure> ConversationTask<P> {
    /// Begins to compute the file's checksum, if that is wanted.
    pub(super) fn examine(&mut self) {
        let Cargo::Outbound { file, examine, .. } = &mut self.cargo else {
            return;
        };
        let Some(spec) = examine.take() else { return };
        let (file, stop) = (file.try_clone(), self.stop.clone());
        let component = self.surroundings.component.clone();
        self.transfer.spawn(async move {
            let examining = source::examine(file, &spec);
            let examined = stop.run_until_cancelled_owned(examining).await;
            vec![match examined.unwrap_or_else(|| Err(ENDED.to_owned())) {
                Ok(value) => examined_as(&component, spec, value),
                Err(text) => Input::ExamineFailed { text },
            }]
        });
    }

    pub(super) fn offer(&mut self) {
        let Cargo::Outbound {
            file,
            size,
            content,
            address,
            examine,
            ..
        } = &mut self.cargo
        else {
            return self.step(Input::OfferReady);
        };
        let exchange = self.surroundings.exchange.clone();
        let component = self.surroundings.component.clone();
        let spec = examine.take();
        let (size, address) = (*size, address.clone());
        let cargo = match content.take() {
            Some(content) => Ok(Offered::Small(content)),
            None => file.try_clone().map(Offered::Large),
        };
        let stop = self.stop.clone();
        let meter = self.surroundings.meter.clone();
        self.transfer.spawn(async move {
            let offering = transfer::offer(exchange, cargo, size, address, spec.as_ref(), meter);
            let offered = stop.run_until_cancelled_owned(offering).await;
            match offered.unwrap_or_else(|| Err(ENDED.to_owned())) {
                Ok(checksum) => {
                    let examined = spec.zip(checksum);
                    let examined = examined.map(|(spec, it)| examined_as(&component, spec, it));
                    examined.into_iter().chain([Input::OfferReady]).collect()
                }
                Err(text) => vec![Input::OfferFailed { text }],
            }
        });
    }

    pub(super) fn download(&mut self, contributor: ComponentId, expected: Expected) {
        let Cargo::Inbound { address, target } = &self.cargo else {
            let text = "there is no target".to_owned();
            return self.step(Input::DownloadFailed {
                another_may_help: false,
                text,
            });
        };
        let exchange = self.surroundings.exchange.clone();
        let address = address.clone();
        let context = self.conversation.context();
        let place = Place::new(target, &context.correlation);
        let asking = Asking::new(
            &self.surroundings.client,
            context,
            contributor,
            expected.lacks_checksum(),
        );
        let stop = self.stop.clone();
        let meter = self.surroundings.meter.clone();
        self.transfer.spawn(async move {
            let asked_for = stop.run_until_cancelled(asking.ask()).await.flatten();
            vec![transfer::fetch(exchange, address, place, expected, asked_for, meter, stop).await]
        });
    }
}

/// A checksum that was computed just now.
fn examined_as(component: &Component, spec: ChecksumSpec, value: HexBinary) -> Input {
    Input::Examined {
        checksum: ChecksumData {
            checksum_spec: spec,
            checksum_value: value,
            calculation_timestamp: component.timestamp(),
        },
    }
}

const ENDED: &str = "the transfer was ended";
