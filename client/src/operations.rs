//! The operations: one async method of [`Client`] each.

use std::{collections::BTreeMap, path::Path};

use pillarbox_messages::{ChecksumData, CollectionId, FileId};

use crate::{
    cargo::Cargo,
    client::Client,
    conversation::{
        delete_file::DeleteFileProcedure, get_audit_trails::GetAuditTrailsProcedure,
        get_checksums::GetChecksumsProcedure, get_file::GetFileProcedure,
        get_file_ids::GetFileIdsProcedure, get_status::GetStatusProcedure, new_file::NewFile,
        paging::Walks, put_file::PutFileProcedure, replace_file::ReplaceFileProcedure,
    },
    digests::{plain_spec, same_spec},
    error::ClientError,
    request::{
        DeleteFile, GetAuditTrails, GetChecksums, GetFile, GetFileIds, GetStatus, PutFile,
        ReplaceFile, Source,
    },
    running::Running,
    source,
    terms::{Terms, limits},
};

impl Client {
    /// Puts a file on the pillars of a collection. Returns when the operation has started; the file is read for
    /// its checksum meanwhile, if none was given.
    ///
    /// # Errors
    /// What [`PutFile::validate`] finds; no exchange; a bus that can't be subscribed to; the same file is being
    /// changed by this client already.
    pub async fn put_file(&self, request: PutFile) -> Result<Running, ClientError> {
        request.validate(self.repository())?;
        let terms = self.terms(&request.collection)?;
        let (new, cargo) = self
            .new_file(&request.file_id, request.source, request.checksum)
            .await?;
        let procedure = PutFileProcedure {
            request_checksum: request.request_checksum,
            partial_allowed: request.partial_allowed,
            retries: request.retries,
            audit_trail_information: request.audit_trail_information,
            ..PutFileProcedure::new(request.file_id.clone(), new)
        };
        self.start(procedure, terms, Some(request.file_id), cargo, true)
            .await
    }

    /// Replaces a file at one pillar. Returns when the operation has started; the new file is read for its checksum
    /// meanwhile, if none was given, and offered once the pillar is ready.
    ///
    /// # Errors
    /// What [`ReplaceFile::validate`] finds; no exchange; a bus that can't be subscribed to; the same file is being
    /// changed by this client already.
    pub async fn replace_file(&self, request: ReplaceFile) -> Result<Running, ClientError> {
        request.validate(self.repository())?;
        let terms = self.terms(&request.collection)?;
        let terms = terms.only(Some(vec![request.pillar]));
        let (new, cargo) = self
            .new_file(&request.file_id, request.source, request.checksum)
            .await?;
        let procedure = ReplaceFileProcedure {
            file: request.file_id.clone(),
            new,
            existing_checksum: request.existing_checksum,
            request_existing_checksum: request.request_existing_checksum,
            request_checksum: request.request_checksum,
            checksum_pillar: false,
            audit_trail_information: request.audit_trail_information,
        };
        self.start(procedure, terms, Some(request.file_id), cargo, true)
            .await
    }

    /// Deletes a file from one pillar.
    ///
    /// # Errors
    /// What [`DeleteFile::validate`] finds; a bus that can't be subscribed to; the same file is being changed by
    /// this client already.
    pub async fn delete_file(&self, request: DeleteFile) -> Result<Running, ClientError> {
        request.validate(self.repository())?;
        let terms = self.terms(&request.collection)?;
        let terms = terms.only(Some(vec![request.pillar]));
        let procedure = DeleteFileProcedure {
            file: request.file_id.clone(),
            existing_checksum: request.existing_checksum,
            request_checksum: request.request_checksum,
            default_spec: plain_spec(self.repository().default_checksum),
            checksum_pillar: false,
            audit_trail_information: request.audit_trail_information,
        };
        let file = Some(request.file_id);
        self.start(procedure, terms, file, Cargo::Nothing, true)
            .await
    }

    /// Fetches a file, or a part of it.
    ///
    /// # Errors
    /// What [`GetFile::validate`] finds; no exchange; a bus that can't be subscribed to.
    pub async fn get_file(&self, request: GetFile) -> Result<Running, ClientError> {
        request.validate(self.repository())?;
        let terms = self.terms(&request.collection)?;
        let terms = terms.only(request.pillar.map(|it| vec![it]));
        let address = self.offer_address(&request.file_id)?;
        let procedure = GetFileProcedure {
            part: request.part,
            audit_trail_information: request.audit_trail_information,
            ..GetFileProcedure::new(request.file_id.clone(), address.clone())
        };
        let cargo = Cargo::Inbound {
            address,
            target: request.target,
        };
        self.start(procedure, terms, Some(request.file_id), cargo, false)
            .await
    }

    /// Asks which files the pillars have. The items come in events.
    ///
    /// # Errors
    /// What [`GetFileIds::validate`] finds; a bus that can't be subscribed to.
    pub async fn get_file_ids(&self, request: GetFileIds) -> Result<Running, ClientError> {
        request.validate(self.repository())?;
        let terms = self.terms(&request.collection)?.only(request.pillars);
        let procedure = GetFileIdsProcedure {
            file: request.file_id.clone(),
            audit_trail_information: request.audit_trail_information,
            walks: Walks::new(request.page_size),
        };
        self.start(procedure, terms, request.file_id, Cargo::Nothing, false)
            .await
    }

    /// Asks for the checksums of the pillars' files. The items come in events.
    ///
    /// # Errors
    /// What [`GetChecksums::validate`] finds; a bus that can't be subscribed to.
    pub async fn get_checksums(&self, request: GetChecksums) -> Result<Running, ClientError> {
        request.validate(self.repository())?;
        let terms = self.terms(&request.collection)?.only(request.pillars);
        let default_checksum = self.repository().default_checksum;
        let procedure = GetChecksumsProcedure {
            file: request.file_id.clone(),
            spec: request
                .checksum
                .unwrap_or_else(|| plain_spec(default_checksum)),
            audit_trail_information: request.audit_trail_information,
            walks: Walks::new(request.page_size),
        };
        self.start(procedure, terms, request.file_id, Cargo::Nothing, false)
            .await
    }

    /// Asks what was done to files. The events come in pages.
    ///
    /// # Errors
    /// What [`GetAuditTrails::validate`] finds; a bus that can't be subscribed to.
    pub async fn get_audit_trails(&self, request: GetAuditTrails) -> Result<Running, ClientError> {
        request.validate(self.repository())?;
        let terms = self.terms(&request.collection)?;
        let terms = terms
            .and_services(self.repository())
            .only(request.contributors);
        let procedure = GetAuditTrailsProcedure {
            file: request.file_id.clone(),
            first: request.first,
            last: request.last,
            min_time: request.min_time,
            max_time: request.max_time,
            page_size: request.page_size,
            trails: BTreeMap::new(),
        };
        self.start(procedure, terms, request.file_id, Cargo::Nothing, false)
            .await
    }

    /// Asks components how they are.
    ///
    /// # Errors
    /// What [`GetStatus::validate`] finds; a bus that can't be subscribed to.
    pub async fn get_status(&self, request: GetStatus) -> Result<Running, ClientError> {
        request.validate(self.repository())?;
        let named = request.contributors.as_deref();
        let sla = self.shared.sla.as_deref();
        let terms = Terms::of_all(self.repository(), named, self.id(), sla);
        let terms = self.limited(terms);
        self.start(GetStatusProcedure, terms, None, Cargo::Nothing, false)
            .await
    }

    /// What is known of a file that pillars are to store, and what is to be moved for it.
    async fn new_file(
        &self,
        file: &FileId,
        source: Source,
        checksum: Option<ChecksumData>,
    ) -> Result<(NewFile, Cargo), ClientError> {
        let mut new = NewFile {
            checksum,
            ..NewFile::new(plain_spec(self.repository().default_checksum))
        };
        let cargo = match source {
            Source::Address { address, size } => {
                new.size = size.unwrap_or_default();
                new.address = address;
                Cargo::Nothing
            }
            Source::Path(path) => self.outbound(file, &path, &mut new).await?,
        };
        Ok((new, cargo))
    }

    /// Prepares a file to be offered.
    async fn outbound(
        &self,
        file: &FileId,
        path: &Path,
        new: &mut NewFile,
    ) -> Result<Cargo, ClientError> {
        let address = self.offer_address(file)?;
        let given = new.checksum.as_ref().map(|given| &given.checksum_spec);
        let needed = given.is_none_or(|given| !same_spec(given, &new.default_spec));
        let spec = needed.then(|| new.default_spec.clone());
        let opened = source::open(path, spec.as_ref()).await?;
        new.size = opened.size;
        new.address.clone_from(&address);
        new.offer = true;
        new.examining = needed;
        if let Some((spec, value)) = spec.clone().zip(opened.checksum) {
            new.examined(ChecksumData {
                checksum_spec: spec,
                checksum_value: value,
                calculation_timestamp: self.shared.component.timestamp(),
            });
        }
        Ok(Cargo::Outbound {
            path: path.to_path_buf(),
            file: opened.file,
            size: opened.size,
            content: opened.content,
            address,
            examine: spec.filter(|_| new.examining),
        })
    }

    fn offer_address(&self, file: &FileId) -> Result<String, ClientError> {
        let offers = self.shared.offers.as_ref().ok_or(ClientError::NoExchange)?;
        Ok(offers.address_for(file.as_str()))
    }

    pub(crate) fn terms(&self, collection: &CollectionId) -> Result<Terms, ClientError> {
        let sla = self.shared.sla.as_deref();
        let terms = Terms::of(self.repository(), collection, self.id(), sla)?;
        Ok(self.limited(terms))
    }

    /// With the times that this client was given, if it was.
    fn limited(&self, terms: Terms) -> Terms {
        Terms {
            timeouts: limits(self.shared.timeouts.unwrap_or(terms.timeouts)),
            ..terms
        }
    }
}
