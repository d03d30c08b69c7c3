//! Elements with content of their own that messages and result documents share.

use std::num::NonZeroU64;

use crate::{
    enums::{AlarmCode, ChecksumType, FileAction, StatusCode, TimeMeasureUnit},
    hex_binary::HexBinary,
    ids::{CollectionId, ComponentId, FileId},
    timestamp::Timestamp,
    xml::{
        content::Content,
        reader::{Read, Reader},
        writer::Writer,
    },
};

elements! {
    /// Something that a person should know of (element `Alarm`). [`Message::file_id`](crate::Message::file_id)
    /// of an alarm is the file it concerns.
    Alarm {
        /// When it was noticed (`OrigDateTime`).
        orig_date_time: required Timestamp = "OrigDateTime",
        /// Its kind (`AlarmCode`).
        alarm_code: required AlarmCode = "AlarmCode",
        /// Who raised it (`AlarmRaiser`).
        alarm_raiser: required ComponentId = "AlarmRaiser",
        /// What happened, for people to read (`AlarmText`).
        alarm_text: required String = "AlarmText",
        /// The file it concerns (`FileID`).
        file_id: optional FileId = "FileID",
        /// The collection it concerns (`CollectionID`).
        collection_id: optional CollectionId = "CollectionID",
    }

    /// One thing that was done to a file (element `AuditTrailEvent`).
    AuditTrailEvent {
        /// Number that grows with time within one contributor (`SequenceNumber`); gaps are normal.
        sequence_number: required NonZeroU64 = "SequenceNumber",
        /// The file (`FileID`).
        file_id: required FileId = "FileID",
        /// Who reports it (`ReportingComponent`).
        reporting_component: required ComponentId = "ReportingComponent",
        /// Who did it: a person or a process (`ActorOnFile`).
        actor_on_file: required String = "ActorOnFile",
        /// What was done (`ActionOnFile`).
        action_on_file: required FileAction = "ActionOnFile",
        /// When (`ActionDateTime`).
        action_date_time: required Timestamp = "ActionDateTime",
        /// For people to read (`Info`).
        info: optional String = "Info",
        /// The conversation that caused it (`OperationID`).
        operation_id: optional String = "OperationID",
        /// Fingerprint of the certificate that signed the causing message (`CertificateID`).
        certificate_id: optional String = "CertificateID",
        /// What the actor wanted noted (`AuditTrailInformation`).
        audit_trail_information: optional String = "AuditTrailInformation",
    }

    /// A list of audit trail events (element `AuditTrailEvents`).
    AuditTrailEvents {
        /// The events (`AuditTrailEvent`).
        events: repeated AuditTrailEvent = "AuditTrailEvent",
    }

    /// How a checksum is calculated (schema type `ChecksumSpec_TYPE`: elements `PillarChecksumSpec`,
    /// `ChecksumRequestForNewFile`, `ChecksumRequestForExistingFile`).
    ChecksumSpec {
        /// The algorithm (`ChecksumType`).
        checksum_type: required ChecksumType = "ChecksumType",
        /// The key of an HMAC (`ChecksumSalt`).
        checksum_salt: optional HexBinary = "ChecksumSalt",
        /// The algorithm's name if the type is [`ChecksumType::Other`] (`OtherChecksumType`).
        other_checksum_type: optional String = "OtherChecksumType",
    }

    /// The checksum of the file that a message is about (elements `ChecksumDataForNewFile`,
    /// `ChecksumDataForExistingFile`).
    ChecksumData {
        /// How it was calculated (`ChecksumSpec`).
        checksum_spec: required ChecksumSpec = "ChecksumSpec",
        /// The checksum (`ChecksumValue`).
        checksum_value: required HexBinary = "ChecksumValue",
        /// When it was calculated (`CalculationTimestamp`).
        calculation_timestamp: required Timestamp = "CalculationTimestamp",
    }

    /// The checksum of one file in a list (element `ChecksumDataItems`, which despite its name holds one).
    ChecksumDataItem {
        /// The file (`FileID`).
        file_id: required FileId = "FileID",
        /// The checksum (`ChecksumValue`).
        checksum_value: required HexBinary = "ChecksumValue",
        /// When it was calculated (`CalculationTimestamp`).
        calculation_timestamp: required Timestamp = "CalculationTimestamp",
    }

    /// One file in a list (element `FileIDsDataItem`).
    FileIdsDataItem {
        /// The file (`FileID`).
        file_id: required FileId = "FileID",
        /// Since when the pillar has had it (`LastModificationTime`).
        last_modification_time: required Timestamp = "LastModificationTime",
        /// Its size in bytes (`FileSize`).
        file_size: optional u64 = "FileSize",
    }

    /// A part of a file (element `FilePart`).
    FilePart {
        /// The first byte, from 0 (`PartOffSet`).
        part_offset: required u64 = "PartOffSet",
        /// How many bytes (`PartLength`).
        part_length: required u64 = "PartLength",
    }

    /// How a component is (element `StatusInfo`).
    StatusInfo {
        /// In one word (`StatusCode`).
        status_code: required StatusCode = "StatusCode",
        /// For people to read (`StatusText`).
        status_text: required String = "StatusText",
    }

    /// How a component was at a time (element `ResultingStatus`).
    ResultingStatus {
        /// How (`StatusInfo`).
        status_info: required StatusInfo = "StatusInfo",
        /// When (`StatusTimestamp`).
        status_timestamp: required Timestamp = "StatusTimestamp",
    }

    /// How long a pillar thinks it will take (element `TimeToDeliver`).
    TimeToDeliver {
        /// The unit (`TimeMeasureUnit`).
        time_measure_unit: required TimeMeasureUnit = "TimeMeasureUnit",
        /// How many of it (`TimeMeasureValue`).
        time_measure_value: required u64 = "TimeMeasureValue",
    }
}

impl TimeToDeliver {
    /// So many milliseconds.
    #[must_use]
    pub const fn from_millis(millis: u64) -> Self {
        Self {
            time_measure_unit: TimeMeasureUnit::Milliseconds,
            time_measure_value: millis,
        }
    }

    /// In milliseconds; [`u64::MAX`] if it is longer than that.
    #[must_use]
    pub const fn millis(&self) -> u64 {
        match self.time_measure_unit {
            TimeMeasureUnit::Milliseconds => self.time_measure_value,
            TimeMeasureUnit::Hours => self.time_measure_value.saturating_mul(3_600_000),
        }
    }
}

impl From<ChecksumType> for ChecksumSpec {
    fn from(checksum_type: ChecksumType) -> Self {
        Self {
            checksum_type,
            checksum_salt: None,
            other_checksum_type: None,
        }
    }
}

/// Files in a list with their times (element `FileIDsData`).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FileIdsData {
    /// The files (`FileIDsDataItem`, inside `FileIDsDataItems`).
    pub items: Vec<FileIdsDataItem>,
}

impl Content for FileIdsData {
    fn read(reader: &mut Reader<'_>) -> Read<Self> {
        let items = reader.list("FileIDsDataItems", "FileIDsDataItem")?;
        reader.expect_end()?;
        Ok(Self { items })
    }

    fn write(&self, writer: &mut Writer) {
        writer.open(tags!("FileIDsDataItems"));
        writer.repeated(tags!("FileIDsDataItem"), &self.items);
        writer.close(tags!("FileIDsDataItems"));
    }
}

/// Which files a message is about (element `FileIDs`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FileIds {
    /// One file (`FileID`).
    File(FileId),
    /// All files of the collection (`AllFileIDs`, whatever its text).
    All,
}

impl Content for FileIds {
    fn read(reader: &mut Reader<'_>) -> Read<Self> {
        let ids = if let Some(file) = reader.optional("FileID")? {
            Self::File(file)
        } else {
            let _: AnyText = reader.required("AllFileIDs")?;
            Self::All
        };
        reader.expect_end()?;
        Ok(ids)
    }

    fn write(&self, writer: &mut Writer) {
        match self {
            Self::File(file) => writer.required(tags!("FileID"), file),
            Self::All => writer.required(tags!("AllFileIDs"), &true),
        }
    }

    fn file(&self) -> Option<&FileId> {
        match self {
            Self::File(file) => Some(file),
            Self::All => None,
        }
    }
}

/// Text that means nothing.
struct AnyText;

impl Content for AnyText {
    fn read(reader: &mut Reader<'_>) -> Read<Self> {
        reader.text().map(|_| Self)
    }

    fn write(&self, _: &mut Writer) {}
}

/// The checksums asked for, or where they are (element `ResultingChecksums`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ResultingChecksums {
    /// In a document at this address (`ResultAddress`).
    Address(String),
    /// Here (`ChecksumDataItems`); perhaps none.
    Items(Vec<ChecksumDataItem>),
}

impl Content for ResultingChecksums {
    fn read(reader: &mut Reader<'_>) -> Read<Self> {
        let result = match reader.optional("ResultAddress")? {
            Some(address) => Self::Address(address),
            None => Self::Items(reader.repeated("ChecksumDataItems")?),
        };
        reader.expect_end()?;
        Ok(result)
    }

    fn write(&self, writer: &mut Writer) {
        match self {
            Self::Address(address) => writer.required(tags!("ResultAddress"), address),
            Self::Items(items) => writer.repeated(tags!("ChecksumDataItems"), items),
        }
    }
}

/// The file ids asked for, or where they are (element `ResultingFileIDs`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ResultingFileIds {
    /// In a document at this address (`ResultAddress`).
    Address(String),
    /// Here (`FileIDsData`).
    Data(FileIdsData),
    /// Nothing, which the schema allows.
    Empty,
}

impl Content for ResultingFileIds {
    fn read(reader: &mut Reader<'_>) -> Read<Self> {
        let result = if let Some(address) = reader.optional("ResultAddress")? {
            Self::Address(address)
        } else if let Some(data) = reader.optional("FileIDsData")? {
            Self::Data(data)
        } else {
            Self::Empty
        };
        reader.expect_end()?;
        Ok(result)
    }

    fn write(&self, writer: &mut Writer) {
        match self {
            Self::Address(address) => writer.required(tags!("ResultAddress"), address),
            Self::Data(data) => writer.required(tags!("FileIDsData"), data),
            Self::Empty => {}
        }
    }
}

/// The audit trail events asked for, or where they are (element `ResultingAuditTrails`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ResultingAuditTrails {
    /// In a document at this address (`ResultAddress`).
    Address(String),
    /// Here (`AuditTrailEvent`, inside `AuditTrailEvents`); perhaps none.
    Events(Vec<AuditTrailEvent>),
}

impl Content for ResultingAuditTrails {
    fn read(reader: &mut Reader<'_>) -> Read<Self> {
        let result = if let Some(address) = reader.optional("ResultAddress")? {
            Self::Address(address)
        } else {
            Self::Events(reader.list("AuditTrailEvents", "AuditTrailEvent")?)
        };
        reader.expect_end()?;
        Ok(result)
    }

    fn write(&self, writer: &mut Writer) {
        match self {
            Self::Address(address) => writer.required(tags!("ResultAddress"), address),
            Self::Events(events) => {
                writer.open(tags!("AuditTrailEvents"));
                writer.repeated(tags!("AuditTrailEvent"), events);
                writer.close(tags!("AuditTrailEvents"));
            }
        }
    }
}

#[cfg(test)]
mod samples {
    use super::*;
    use crate::sample::{Sample, Source, repeated, required};

    impl Sample for FileIdsData {
        fn sample(source: &mut Source) -> Self {
            Self {
                items: repeated(source),
            }
        }
    }

    impl Sample for FileIds {
        fn sample(source: &mut Source) -> Self {
            if required(source) {
                Self::File(required(source))
            } else {
                Self::All
            }
        }
    }

    impl Sample for ResultingChecksums {
        fn sample(source: &mut Source) -> Self {
            if required(source) {
                Self::Address(required(source))
            } else {
                Self::Items(repeated(source))
            }
        }
    }

    impl Sample for ResultingFileIds {
        fn sample(source: &mut Source) -> Self {
            match source.byte() % 3 {
                0 => Self::Empty,
                1 => Self::Address(required(source)),
                _ => Self::Data(required(source)),
            }
        }
    }

    impl Sample for ResultingAuditTrails {
        fn sample(source: &mut Source) -> Self {
            if required(source) {
                Self::Address(required(source))
            } else {
                Self::Events(repeated(source))
            }
        }
    }
}
