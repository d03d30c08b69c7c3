//! A file that a request offers: downloaded into the archive's temporary directory, and judged.

use pillarbox_exchange::Download;
use pillarbox_messages::{HexBinary, ResponseCode, wording::count};
use pillarbox_settings::ChecksumDownload;

use crate::{
    archive::{Claim, IncomingFile, ReceivedFile},
    checks,
    context::Context,
    digests::{Checksums, Spec},
    refusal::Refusal,
};

/// What a request says of the file that it offers.
pub(crate) struct Offer<'a> {
    /// Where it is.
    pub(crate) address: &'a str,
    /// Its size in bytes, if that is known.
    pub(crate) size: Option<u64>,
    /// A checksum that it must have.
    pub(crate) given: Option<&'a (Spec, HexBinary)>,
    /// A checksum that the requester wants to know.
    pub(crate) requested: Option<&'a Spec>,
}

/// How the archive takes a file in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Arrival {
    /// As a new one.
    New,
    /// As another's next version.
    Version,
}

impl Offer<'_> {
    /// Downloads into a temporary file, with every checksum that is needed computed on the way. What is not as
    /// offered is refused, and gone from the disk.
    pub(crate) async fn receive(
        &self,
        context: &Context,
        claim: Claim,
        arrival: Arrival,
    ) -> Result<ReceivedFile, Refusal> {
        let claim = match self.believe(context, claim)? {
            Ok(believed) => return Ok(believed),
            Err(claim) => claim,
        };
        let received = self.download(context, claim, arrival).await?;
        match self.judge(&received) {
            Ok(()) => Ok(received),
            Err(refusal) => {
                received.discard().await;
                Err(refusal)
            }
        }
    }

    /// Takes the requester's word for the file, if the pillar is set to; gives the claim back if not.
    fn believe(
        &self,
        context: &Context,
        claim: Claim,
    ) -> Result<Result<ReceivedFile, Claim>, Refusal> {
        let Some((spec, value)) = self.given.filter(|_| believes(context)) else {
            return Ok(Err(claim));
        };
        let checksums = Checksums::given(spec, value).ok_or_else(|| {
            let kind = spec.checksum_type().as_str();
            Refusal::illegal_operation(
                ResponseCode::NewFileChecksumFailure,
                format!("the given checksum {value} is none of type {kind}"),
            )
        })?;
        let size = self.size.unwrap_or(0);
        Ok(context.archive.believe(claim, size, checksums))
    }

    async fn download(
        &self,
        context: &Context,
        claim: Claim,
        arrival: Arrival,
    ) -> Result<ReceivedFile, Refusal> {
        let mut specs = vec![context.default_spec.clone()];
        specs.extend(self.given.map(|(spec, _)| spec.clone()));
        specs.extend(self.requested.cloned());
        let mut download = context.exchange.get(self.address).await?;
        if let Some(offered) = download.length {
            // Known to be wrong before anything is moved.
            self.fits(offered, true)?;
        }
        let announced = self.size.or(download.length);
        let (archive, announced) = (&context.archive, announced.unwrap_or(0));
        let mut incoming = match arrival {
            Arrival::New => archive.receive(claim, announced, specs).await?,
            Arrival::Version => archive.receive_version(claim, announced, specs).await?,
        };
        match self.copy(&mut download, &mut incoming).await {
            Ok(()) => Ok(incoming.finish().await?),
            Err(refusal) => {
                incoming.discard().await;
                Err(refusal)
            }
        }
    }

    async fn copy(
        &self,
        download: &mut Download,
        incoming: &mut IncomingFile,
    ) -> Result<(), Refusal> {
        while let Some(bytes) = download.chunk().await? {
            incoming.write(bytes).await?;
            if self.size.is_some_and(|size| incoming.size() > size) {
                // However much would come still, it is not the file.
                return self.fits(incoming.size(), false);
            }
        }
        self.fits(incoming.size(), true)
    }

    /// Whether so many bytes are what was announced; `whole` if there are no more.
    fn fits(&self, size: u64, whole: bool) -> Result<(), Refusal> {
        match self.size.filter(|&announced| announced != size) {
            None => Ok(()),
            // Not a failed transfer, which would be tried again: the request and the address disagree.
            Some(announced) => Err(Refusal::rejection(
                ResponseCode::Failure,
                format!(
                    "the file at the address has {}{}, announced were {announced}",
                    if whole { "" } else { "at least " },
                    count(size, "byte"),
                ),
            )),
        }
    }

    /// Whether the received bytes are the ones that the client announced.
    fn judge(&self, received: &ReceivedFile) -> Result<(), Refusal> {
        let Some((spec, expected)) = self.given else {
            return Ok(());
        };
        let computed = received.checksums().value(spec);
        if computed == Some(expected) {
            return Ok(());
        }
        let computed = computed.map(ToString::to_string).unwrap_or_default();
        Err(Refusal::illegal_operation(
            ResponseCode::NewFileChecksumFailure,
            format!("the received file has the checksum {computed}, announced was {expected}"),
        ))
    }
}

/// Whether a checksum is as good as the file.
fn believes(context: &Context) -> bool {
    !context.archive.keeps_bytes() && context.settings.download != ChecksumDownload::Always
}

/// The address of an offered file, if it is going to be fetched, is one that this node may use.
pub(crate) fn address(
    context: &Context,
    address: &str,
    given: Option<&(Spec, HexBinary)>,
) -> Result<(), Refusal> {
    if given.is_some() && believes(context) {
        return Ok(());
    }
    checks::address(context, address)
}

/// The announced size. 0 is sent for "unknown" by many clients.
pub(crate) fn announced_size(size: Option<u64>) -> Option<u64> {
    size.filter(|&size| size > 0)
}

/// The checksum that the index keeps.
pub(crate) fn default_checksum(
    context: &Context,
    checksums: &Checksums,
) -> Result<HexBinary, Refusal> {
    checksums
        .value(&context.default_spec)
        .cloned()
        .ok_or_else(|| Refusal::unexpected("the default checksum was not computed"))
}
