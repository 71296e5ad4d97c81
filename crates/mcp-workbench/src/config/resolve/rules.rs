//! Resolves clients, permissions, filters for results and the audit log.

use std::path::PathBuf;

use indexmap::IndexMap;

use super::{EntryVariables, Resolver, clean, limits};
use crate::{
    config::{
        as_client::{ClientBudget, ConfiguredClient},
        audit::{Audit, AuditArguments, DEFAULT_FILE, DEFAULT_FILES, DEFAULT_MAX_BYTES},
        permissions::{PermissionRule, Permissions},
        problems::{SourceLocation, ValueFault},
        raw::{
            RawAudit, RawAuditArguments, RawAuditDetails, RawClient, RawLimits, RawPermissions,
            RawServer, Text,
        },
    },
    jq::Filter,
};

impl Resolver<'_> {
    /// Returns the permissions of a server.
    pub(super) fn permissions(
        &mut self,
        variables: &mut EntryVariables,
        raw: &RawPermissions,
    ) -> Permissions {
        Permissions {
            allow: raw.allow.as_ref().map(|rules| self.rules(variables, rules)),
            ask: self.rules(variables, raw.ask.as_deref().unwrap_or_default()),
            deny: self.rules(variables, raw.deny.as_deref().unwrap_or_default()),
            code: raw.code.as_ref().map(|rules| self.rules(variables, rules)),
            client: None,
        }
    }

    /// Returns a client of the configuration.
    pub(super) fn client(
        &mut self,
        raw: &RawClient,
        of_file: Option<&RawLimits>,
    ) -> ConfiguredClient {
        let variables = &mut EntryVariables::default();
        let toolboxes = raw.toolboxes.as_ref();
        let permissions = raw.permissions.as_ref();
        ConfiguredClient {
            toolboxes: toolboxes.map(|names| {
                let names = names.iter().map(|name| name.written.as_str().into());
                names.collect()
            }),
            permissions: permissions
                .map(|it| self.permissions(variables, it))
                .unwrap_or_default(),
            claims: self.claims(raw),
            budget: match raw.max_result_chars {
                Some(limit) => ClientBudget::Own(super::budget(Some(limit))),
                None => ClientBudget::OfServers,
            },
            limits: limits::limits(&[raw.limits.as_ref(), of_file]),
        }
    }

    /// Returns the filters for results by tool, and records invalid ones.
    pub(super) fn result_select(
        &mut self,
        variables: &mut EntryVariables,
        raw: &RawServer,
    ) -> IndexMap<String, Filter> {
        let mut filters = IndexMap::new();
        for (tool, filter) in raw.result_select.iter().flatten() {
            match Filter::new(&self.text(variables, filter)) {
                Ok(read) => drop(filters.insert(tool.clone(), read)),
                Err(error) => {
                    let fault = ValueFault::from(error);
                    self.findings.add(filter.place.clone(), fault);
                }
            }
        }
        filters
    }

    /// Parses the rules of a list, and records invalid ones.
    fn rules(&mut self, variables: &mut EntryVariables, rules: &[Text]) -> Vec<PermissionRule> {
        let mut read = Vec::new();
        for rule in rules {
            let written = self.text(variables, rule);
            match PermissionRule::new(&written) {
                Ok(rule) => read.push(rule),
                Err(fault) => self.findings.add(rule.place.clone(), fault),
            }
        }
        read
    }

    /// Returns the audit log; `None` if it is off.
    pub(super) fn audit(&mut self, raw: &RawAudit) -> Option<Audit> {
        let nothing = RawAuditDetails::default();
        let details = match raw {
            RawAudit::Enabled(false) => return None,
            RawAudit::Enabled(true) => &nothing,
            RawAudit::Details(details) => details,
        };
        let named = self.path(&mut EntryVariables::default(), details.file.as_ref());
        let file = named.or_else(|| self.default_audit_file())?;
        let files = details.files.and_then(|it| u32::try_from(it).ok());
        Some(Audit {
            file: clean(&file),
            max_bytes: details.max_bytes.unwrap_or(DEFAULT_MAX_BYTES),
            files: files.unwrap_or(DEFAULT_FILES),
            arguments: match details.arguments {
                Some(RawAuditArguments::Values) => AuditArguments::Values,
                Some(RawAuditArguments::Shape) | None => AuditArguments::Shape,
            },
        })
    }

    /// Returns the file in the user's state directory, or records that there is none.
    fn default_audit_file(&mut self) -> Option<PathBuf> {
        let folder = self.environment.state_directory();
        if folder.is_none() {
            let place = SourceLocation {
                line: 1,
                column: 1,
                path: "audit".into(),
            };
            let what = "audit log";
            self.findings.add(place, ValueFault::NoFolder { what });
        }
        folder.map(|folder| folder.join(DEFAULT_FILE))
    }
}
